// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// What is generated where everything is called by a word that Swift or C has a meaning for. The
// .proto files come from protos.py, and their code from the command: Scripts/words.sh.
var swiftSettings: [SwiftSetting] = [
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

let package = Package(
  name: "Words",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "longlink", path: "../../..", traits: ["SwiftProtobuf"]),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
  ],
  targets: [
    .target(
      name: "CWords",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .target(
      name: "Words",
      dependencies: ["CWords", .product(name: "LongLinkProtobufC", package: "longlink")],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "CEnums",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .target(
      name: "Enums",
      dependencies: [
        "CEnums",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
      ],
      // As applications are that do most on the main actor.
      swiftSettings: swiftSettings + [.defaultIsolation(MainActor.self)]
    ),
    .target(
      name: "Stubs",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobuf", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      // What protoc-gen-swift generates is not marked for strict memory safety.
      swiftSettings: [.enableUpcomingFeature("MemberImportVisibility")]
    ),
  ]
)
