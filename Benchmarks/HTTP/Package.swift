// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
  name: "longlink-http-benchmark",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "longlink", path: "../..", traits: ["HTTP"]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
  ],
  targets: [
    .executableTarget(
      name: "HTTPRate",
      dependencies: [
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "LongLinkHTTP", package: "longlink"),
      ])
  ]
)
