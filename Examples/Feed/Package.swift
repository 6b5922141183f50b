// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Feed",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [
    .package(name: "longlink", path: "../..", traits: ["HTTP"]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    // What both sides know.
    .target(
      name: "FeedMessages", dependencies: [.product(name: "LongLinkJSON", package: "longlink")]
    ),
    .executableTarget(
      name: "FeedServer",
      dependencies: [
        "FeedMessages", .product(name: "LongLinkHTTPServer", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkUploadsServer", package: "longlink"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .executableTarget(
      name: "Feed",
      dependencies: [
        "FeedMessages", .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkHTTP", package: "longlink"),
        .product(name: "LongLinkUploads", package: "longlink"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .testTarget(
      name: "FeedTests",
      dependencies: [
        "Feed", "FeedMessages", "FeedServer",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
      ]
    ),
  ]
)
