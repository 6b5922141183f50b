// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
  name: "Payments",
  platforms: [.macOS(.v15)],
  // Your own application has .package(url: "https://github.com/longlink/longlink", …) here.
  dependencies: [
    .package(name: "longlink", path: "../..", traits: ["SQLite"]),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // Generated from Protos/payments.proto: the messages in C, and the client and server in Swift.
    .target(
      name: "CPayments",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]),
    .target(
      name: "Payments",
      dependencies: [
        "CPayments",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
      ]),
    .executableTarget(
      name: "PaymentServer",
      dependencies: [
        "Payments",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "LongLinkOnce", package: "longlink"),
        .product(name: "LongLinkOnceSQLite", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
      ]),
    .executableTarget(
      name: "PaymentClient",
      dependencies: ["Payments", .product(name: "LongLink", package: "longlink")]),
    .testTarget(
      name: "PaymentTests",
      dependencies: [
        "PaymentServer", "Payments",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
      ]),
  ]
)
