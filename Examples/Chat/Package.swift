// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Chat",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [
    .package(name: "longlink", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    // Generated from Protos/chat.proto, except for the errors.
    .target(
      name: "CChatMessages",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .target(
      name: "ChatMessages",
      dependencies: ["CChatMessages", .product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .executableTarget(
      name: "Chat",
      dependencies: [
        "ChatMessages", .product(name: "LongLinkCalls", package: "longlink"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .executableTarget(
      name: "ChatServer",
      dependencies: [
        "ChatMessages", .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .testTarget(
      name: "ChatTests",
      dependencies: [
        "Chat", "ChatMessages", "ChatServer",
        .product(name: "LongLinkTesting", package: "longlink"),
      ]
    ),
  ]
)
