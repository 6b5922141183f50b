// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let cSettings: [CSetting] = [
  .unsafeFlags(["-std=gnu17", "-Wall", "-Wextra", "-O3", "-D_GNU_SOURCE"])
]

// To the compiler one package with the library, as Command is: a peer makes its certificate with what
// the library keeps for itself.
let folder = Context.packageDirectory.split(separator: "/").dropLast().last ?? "longlink"
let name = folder.lowercased().enumerated().map { index, character in
  character.isLetter || index > 0 && character.isNumber ? String(character) : "_"
}.joined()
let swiftSettings: [SwiftSetting] = [
  .unsafeFlags(["-package-name", name]),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "longlink-benchmarks",
  platforms: [.macOS(.v15)],
  traits: [
    .trait(name: "GRPC", description: "Measures grpc-swift too, which takes minutes to build.")
  ],
  dependencies: [
    .package(name: "longlink", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
    .package(
      url: "https://github.com/HdrHistogram/hdrhistogram-swift", .upToNextMinor(from: "0.2.0")),
  ],
  targets: [
    // LongLink's checksum, which it does not offer as a product, to be measured by itself.
    .target(name: "CMeasuredAdler32", cSettings: cSettings),
    .target(name: "CFloor", cSettings: cSettings),
    .target(name: "CCount", cSettings: cSettings),
    .target(
      name: "BenchSupport",
      dependencies: [
        "CCount",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .systemLibrary(
      name: "CBenchProtobufC",
      pkgConfig: "libprotobuf-c",
      providers: [.apt(["libprotobuf-c-dev"]), .brew(["protobuf-c"])]
    ),
    .target(name: "CQuote", dependencies: ["CBenchProtobufC"]),
    .executableTarget(
      name: "FloorPeer",
      dependencies: [
        "BenchSupport", "CFloor",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "LongLinkPeer",
      dependencies: [
        "BenchSupport", "CQuote",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkOnce", package: "longlink"),
        .product(name: "LongLinkTLS", package: "longlink"),
        .product(name: "LongLinkCertificates", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "Logging", package: "swift-log"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "NIOPeer",
      dependencies: [
        "BenchSupport", "CFloor",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "GRPCPeer",
      dependencies: [
        "BenchSupport",
        .product(
          name: "ArgumentParser", package: "swift-argument-parser",
          condition: .when(traits: ["GRPC"])),
        .product(
          name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["GRPC"])),
        .product(
          name: "GRPCNIOTransportHTTP2", package: "grpc-swift-nio-transport",
          condition: .when(traits: ["GRPC"])),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .systemLibrary(
      name: "CBenchExpat",
      pkgConfig: "expat",
      providers: [.apt(["libexpat1-dev"]), .brew(["expat"])]
    ),
    .target(name: "CReadersFloor", dependencies: ["CBenchExpat"], cSettings: cSettings),
    .executableTarget(
      name: "ReadersBench",
      dependencies: [
        "CReadersFloor",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "LongLinkReaders", package: "longlink"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .target(
      name: "BenchDriver",
      dependencies: ["BenchSupport", "CMeasuredAdler32"],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "bench",
      dependencies: [
        "BenchDriver", "BenchSupport",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "BenchTests",
      dependencies: ["BenchDriver", "BenchSupport", "CFloor"],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
  ],
  swiftLanguageModes: [.v6]
)
