// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// What shows that the generator works, and that both of its runtimes agree. It is a package of its
// own since it needs swift-protobuf, which LongLink itself does not.
var swiftSettings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
if Context.environment["LONGLINK_WARNINGS_AS_ERRORS"] != nil {
  swiftSettings.append(.treatAllWarnings(as: .error))
  // It is all that a new release of a dependency may add.
  swiftSettings.append(.treatWarning("DeprecatedDeclaration", as: .warning))
}

let package = Package(
  name: "Generator",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "longlink", path: "../..", traits: ["SwiftProtobuf"]),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
  ],
  targets: [
    // Generated from Protos by Scripts/protocols.sh, and not committed. With libprotobuf-c: what a
    // user of LongLink has.
    .target(
      name: "CParcels",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .target(
      name: "Parcels",
      dependencies: [
        "CParcels",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
      ],
      // As in a package that asks for nothing.
      swiftSettings: [.swiftLanguageMode(.v6)]
    ),
    .target(
      name: "CCorpus",
      dependencies: [.product(name: "LongLinkProtobufC", package: "longlink")]
    ),
    .target(
      name: "Corpus",
      dependencies: [
        "CCorpus", .product(name: "LongLinkProtobufC", package: "longlink"),
      ],
      swiftSettings: swiftSettings
    ),
    // The same with SwiftProtobuf: messages by protoc-gen-swift, the rest by protoc-gen-longlink.
    .target(
      name: "ParcelsOfSwift",
      dependencies: [
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobuf", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      // What protoc-gen-swift generates is not marked for strict memory safety.
      swiftSettings: [.swiftLanguageMode(.v6), .enableUpcomingFeature("MemberImportVisibility")]
    ),
    .target(
      name: "CorpusOfSwift",
      dependencies: [.product(name: "SwiftProtobuf", package: "swift-protobuf")]
    ),
    .executableTarget(
      name: "CodecBenchmark",
      dependencies: [
        "Corpus", "CorpusOfSwift",
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ParcelTests",
      dependencies: [
        "Parcels",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "SwiftProtobufTests",
      dependencies: [
        "ParcelsOfSwift",
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkProtobuf", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "AgreementTests",
      dependencies: [
        "Corpus", "CorpusOfSwift",
        .product(name: "LongLinkProtobuf", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Vectors"],
      swiftSettings: swiftSettings
    ),
    .testTarget(name: "GeneratorTests", swiftSettings: swiftSettings),
  ]
)
