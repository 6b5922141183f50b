// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Service",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [.package(name: "longlink", path: "../..", traits: ["Operations"])],
  targets: [
    .executableTarget(
      name: "EchoService",
      dependencies: [
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkConfiguration", package: "longlink"),
        .product(name: "LongLinkLifecycle", package: "longlink"),
        .product(name: "LongLinkOps", package: "longlink"),
      ]),
    .testTarget(
      name: "EchoServiceTests",
      dependencies: ["EchoService", .product(name: "LongLink", package: "longlink")]),
  ]
)
