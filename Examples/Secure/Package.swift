// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Secure",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [.package(name: "longlink", path: "../..")],
  targets: [
    .executableTarget(
      name: "SecureServer",
      dependencies: [
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTLS", package: "longlink"),
      ]),
    .executableTarget(
      name: "SecureClient",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkTLS", package: "longlink"),
      ]),
  ]
)
