// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Hello",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [.package(name: "longlink", path: "../..")],
  targets: [
    .executableTarget(
      name: "HelloServer", dependencies: [.product(name: "LongLinkServer", package: "longlink")]),
    .executableTarget(
      name: "HelloClient", dependencies: [.product(name: "LongLink", package: "longlink")]),
  ]
)
