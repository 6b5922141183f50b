// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Hub",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [.package(name: "longlink", path: "../..")],
  targets: [
    // Generated from Protos/telemetry.proto: the messages in C, and the client and server in Swift.
    .target(
      name: "CTelemetry",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]),
    .target(
      name: "Telemetry",
      dependencies: [
        "CTelemetry",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
      ]),
    .executableTarget(
      name: "HubServer",
      dependencies: ["Telemetry", .product(name: "LongLinkServer", package: "longlink")]),
    .executableTarget(
      name: "HubClient",
      dependencies: ["Telemetry", .product(name: "LongLink", package: "longlink")]),
    .testTarget(
      name: "HubTests",
      dependencies: ["HubServer", .product(name: "LongLinkTesting", package: "longlink")]),
  ]
)
