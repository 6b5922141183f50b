// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

var swiftSettings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
var cSettings: [CSetting] = []
// The project's own checks take no warning; a newer compiler's must not keep users from building.
// A deprecation stays a warning: it is all that a new release of a dependency may add to a clone
// that did not change, since the ranges below end where one may break what is used of it.
if Context.environment["LONGLINK_WARNINGS_AS_ERRORS"] != nil {
  swiftSettings.append(.treatAllWarnings(as: .error))
  swiftSettings.append(.treatWarning("DeprecatedDeclaration", as: .warning))
  cSettings.append(.treatAllWarnings(as: .error))
}
// Requests are waited for by documented functions of Swift alone; slower. Scripts/portable.sh tests
// it.
if Context.environment["LONGLINK_PORTABLE"] != nil {
  swiftSettings.append(.define("LONGLINK_PORTABLE"))
  cSettings.append(.define("LONGLINK_PORTABLE"))
}

let package = Package(
  name: "LongLink",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "LongLink", targets: ["LongLink"]),
    .library(name: "LongLinkCalls", targets: ["LongLinkCalls"]),
    .library(name: "LongLinkDialects", targets: ["LongLinkDialects"]),
    .library(name: "LongLinkServer", targets: ["LongLinkServer"]),
    .library(name: "LongLinkOnce", targets: ["LongLinkOnce", "LongLinkOnceStore"]),
    .library(name: "LongLinkOnceSQLite", targets: ["LongLinkOnceSQLite"]),
    .library(name: "LongLinkTesting", targets: ["LongLinkTesting"]),
    .library(name: "LongLinkProtobufC", targets: ["LongLinkProtobufC"]),
    .library(name: "LongLinkProtobuf", targets: ["LongLinkProtobuf"]),
    .library(name: "LongLinkReaders", targets: ["LongLinkReaders"]),
    .library(name: "LongLinkJSON", targets: ["LongLinkJSON"]),
    .library(name: "LongLinkUploads", targets: ["LongLinkUploads"]),
    .library(name: "LongLinkUploadsServer", targets: ["LongLinkUploadsServer"]),
    .library(name: "LongLinkTLS", targets: ["LongLinkTLS"]),
    .library(name: "LongLinkHTTP", targets: ["LongLinkHTTP"]),
    .library(name: "LongLinkHTTPServer", targets: ["LongLinkHTTPServer"]),
    .library(name: "LongLinkLifecycle", targets: ["LongLinkLifecycle"]),
    .library(name: "LongLinkConfiguration", targets: ["LongLinkConfiguration"]),
    .library(name: "LongLinkObservability", targets: ["LongLinkObservability"]),
    .library(name: "LongLinkOps", targets: ["LongLinkOps"]),
    // For the package in Command alone.
    .library(name: "LongLinkDemoMessages", targets: ["LongLinkDemoMessages"]),
    .library(name: "LongLinkUploadMessages", targets: ["LongLinkUploadMessages"]),
    .library(name: "LongLinkCertificates", targets: ["LongLinkCertificates"]),
    .library(name: "LongLinkScenarios", targets: ["LongLinkScenarios"]),
    .library(name: "LongLinkTestSupport", targets: ["LongLinkTestSupport"]),
    .executable(name: "protoc-gen-longlink", targets: ["protoc-gen-longlink"]),
    .plugin(name: "GenerateLongLink", targets: ["GenerateLongLink"]),
  ],
  traits: [
    .trait(
      name: "SwiftProtobuf",
      description: "What needs swift-protobuf: the generator, and the product LongLinkProtobuf."
    ),
    .trait(
      name: "HTTP",
      description: "What needs async-http-client and swift-nio: LongLinkHTTP, LongLinkHTTPServer."
    ),
    .trait(name: "SQLite", description: "What needs GRDB and SQLite: LongLinkOnceSQLite."),
    .trait(
      name: "Operations",
      description: """
        What operates services: LongLinkLifecycle, LongLinkConfiguration, LongLinkObservability, \
        LongLinkOps.
        """
    ),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    // Neither fetched nor built without their traits.
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
  ],
  targets: [
    // C: checksums, what Swift cannot call of the system or of its own runtime, generated
    // messages, and what reads documents.
    .target(name: "CLongLinkAdler32", cSettings: cSettings),
    .target(name: "CLongLinkSystem", cSettings: cSettings),
    // The C library of the platform, by one name.
    .target(name: "LongLinkCLibrary", swiftSettings: swiftSettings),
    .systemLibrary(
      name: "CProtobufC",
      pkgConfig: "libprotobuf-c",
      providers: [.apt(["libprotobuf-c-dev"]), .brew(["protobuf-c"])]
    ),
    .target(name: "CLongLinkWellKnown", dependencies: ["CProtobufC"]),
    .target(
      name: "CLongLinkReaders",
      cSettings: cSettings,
      linkerSettings: [
        .linkedLibrary("expat"),
        // Elsewhere it is part of the C library.
        .linkedLibrary("iconv", .when(platforms: [.macOS, .iOS, .tvOS, .watchOS, .visionOS])),
      ]
    ),
    // It links libcrypto alone, which is all that hashes need.
    .systemLibrary(
      name: "COpenSSL",
      pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
    ),
    .target(
      name: "CLongLinkTLS",
      dependencies: ["COpenSSL"],
      cSettings: cSettings,
      linkerSettings: [.linkedLibrary("ssl")]
    ),

    // The pure core, and the world it runs in.
    .target(
      name: "LongLinkCore",
      dependencies: ["CLongLinkAdler32"],
      swiftSettings: swiftSettings
    ),
    // Protocols with frames of their own, as data.
    .target(
      name: "LongLinkDialects",
      dependencies: ["LongLinkCore"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkTransport",
      dependencies: ["CLongLinkSystem", "LongLinkCLibrary", "LongLinkCore"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkProtobufC",
      dependencies: ["CLongLinkWellKnown", "CProtobufC", "LongLinkCLibrary", "LongLinkCore"],
      swiftSettings: swiftSettings
    ),

    // Documents that are read while they arrive, and what needs Foundation's coders for that.
    .target(
      name: "LongLinkReaders",
      dependencies: ["CLongLinkReaders", "LongLinkCore"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkJSON",
      dependencies: ["LongLinkCore", "LongLinkReaders"],
      swiftSettings: swiftSettings
    ),

    // Without the trait these are empty.
    .target(
      name: "LongLinkProtobuf",
      dependencies: [
        "LongLinkCore",
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf",
          condition: .when(traits: ["SwiftProtobuf"])),
      ],
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "protoc-gen-longlink",
      dependencies: [
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf",
          condition: .when(traits: ["SwiftProtobuf"])),
        .product(
          name: "SwiftProtobufPluginLibrary", package: "swift-protobuf",
          condition: .when(traits: ["SwiftProtobuf"])),
      ],
      swiftSettings: swiftSettings
    ),
    .plugin(
      name: "GenerateLongLink",
      capability: .command(
        intent: .custom(
          verb: "generate-longlink",
          description: "Generates Swift and C from .proto files."),
        permissions: [
          .writeToPackageDirectory(reason: "The generated code is kept with the sources.")
        ]),
      dependencies: [
        "protoc-gen-longlink",
        .product(
          name: "protoc-gen-swift", package: "swift-protobuf",
          condition: .when(traits: ["SwiftProtobuf"])),
      ]
    ),

    // The two roles over one driver.
    .target(
      name: "LongLinkDriver",
      dependencies: [
        "CLongLinkSystem", "LongLinkCore", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Throughput/Throughput.md"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLink",
      dependencies: [
        "LongLinkDriver", "LongLinkCore", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    // What applications call, above the client.
    .target(
      name: "LongLinkCalls",
      dependencies: ["LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkTransport"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkServer",
      dependencies: [
        "LongLinkDriver", "LongLinkCore", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    // Requests that run once: what keeps their records, and the server's side.
    .target(
      name: "LongLinkOnceStore",
      dependencies: ["LongLinkCore"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkOnce",
      dependencies: [
        "COpenSSL", "LongLinkDriver", "LongLinkCore", "LongLinkOnceStore", "LongLinkServer",
        "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    // Empty without the trait.
    .target(
      name: "LongLinkOnceSQLite",
      dependencies: [
        "LongLinkCLibrary", "LongLinkCore", "LongLinkOnceStore", "LongLinkTransport",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["SQLite"])),
        .product(name: "GRDBSQLite", package: "GRDB.swift", condition: .when(traits: ["SQLite"])),
      ],
      swiftSettings: swiftSettings
    ),
    // Uploads: the messages and the hash that both sides share, and the server's side.
    .target(
      name: "LongLinkUploadMessages",
      dependencies: ["COpenSSL", "LongLinkCore"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkUploads",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkTransport",
        "LongLinkUploadMessages",
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkUploadsServer",
      dependencies: [
        "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore", "LongLinkServer",
        "LongLinkTransport", "LongLinkUploadMessages",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkTLS",
      dependencies: [
        "CLongLinkTLS", "COpenSSL", "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore",
        "LongLinkTransport",
      ],
      swiftSettings: swiftSettings
    ),
    // HTTP: empty without the trait.
    .systemLibrary(
      name: "CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    .target(
      name: "LongLinkHTTP",
      dependencies: [
        .target(name: "CZlib", condition: .when(traits: ["HTTP"])),
        "LongLink", "LongLinkCalls", "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore",
        "LongLinkTransport", "LongLinkUploadMessages", "LongLinkUploads",
        .product(name: "Logging", package: "swift-log"),
        .product(
          name: "AsyncHTTPClient", package: "async-http-client",
          condition: .when(traits: ["HTTP"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["HTTP"])),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkHTTPServer",
      dependencies: [
        "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore", "LongLinkServer",
        "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["HTTP"])),
      ],
      swiftSettings: swiftSettings
    ),
    // Operations: empty without the trait.
    .target(
      name: "LongLinkLifecycle",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkServer", "LongLinkTransport",
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle",
          condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkConfiguration",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkServer", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
        .product(
          name: "Configuration", package: "swift-configuration",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "UnixSignals", package: "swift-service-lifecycle",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "SystemPackage", package: "swift-system",
          condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkObservability",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkServer", "LongLinkTransport",
        .product(
          name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Operations"])),
        .product(
          name: "Tracing", package: "swift-distributed-tracing",
          condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkOps",
      dependencies: [
        "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore", "LongLinkServer",
        "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Operations"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Operations"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkTesting",
      dependencies: [
        "CLongLinkSystem", "LongLink", "LongLinkCLibrary", "LongLinkDriver", "LongLinkCore",
        "LongLinkOnceStore", "LongLinkServer", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    // Random worlds that show whether the promises are kept.
    .target(
      name: "LongLinkScenarios",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkOnce", "LongLinkOnceStore",
        "LongLinkServer", "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Scenarios.md"],
      swiftSettings: swiftSettings
    ),
    // What several test targets share, those of the command among them, and the certificates and
    // messages of tests.
    .target(
      name: "LongLinkTestSupport",
      dependencies: [
        "LongLinkCore", "LongLinkDialects", .product(name: "Logging", package: "swift-log"),
      ],
      path: "Tests/LongLinkTestSupport",
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LongLinkCertificates",
      dependencies: ["COpenSSL", "LongLinkTransport"],
      path: "Tests/LongLinkCertificates",
      swiftSettings: swiftSettings
    ),
    .target(
      name: "CLongLinkDemo",
      dependencies: ["CProtobufC"],
      path: "Tests/CLongLinkDemo"
    ),
    .target(
      name: "LongLinkDemoMessages",
      dependencies: ["CLongLinkDemo", "CProtobufC", "LongLinkCore", "LongLinkProtobufC"],
      path: "Tests/LongLinkDemoMessages",
      swiftSettings: swiftSettings
    ),

    // What fuzzers run, and the tests with what has been kept of it.
    .target(
      name: "LongLinkFuzz",
      dependencies: [
        "LongLinkCertificates", "LongLinkDriver", "LongLinkCore", "LongLinkDemoMessages",
        "LongLinkDialects", "LongLinkProtobufC", "LongLinkReaders", "LongLinkScenarios",
        "LongLinkServer", "LongLinkTLS", "LongLinkTransport", "LongLinkUploadMessages",
      ],
      path: "Tests/LongLinkFuzz",
      exclude: ["Found"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkFuzzTests",
      dependencies: ["LongLinkCore", "LongLinkFuzz", "LongLinkScenarios"],
      swiftSettings: swiftSettings
    ),

    .testTarget(
      name: "LongLinkCoreTests",
      dependencies: [
        "CLongLinkAdler32", "LongLinkCore", "LongLinkDialects", "LongLinkTestSupport",
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkTransportTests",
      dependencies: [
        "CLongLinkSystem", "LongLinkCore", "LongLinkTestSupport", "LongLinkTransport",
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "CLongLinkControl",
      dependencies: ["CProtobufC"],
      path: "Tests/CLongLinkControl"
    ),
    .target(
      name: "CLongLinkProbe",
      dependencies: ["CProtobufC"],
      path: "Tests/CLongLinkProbe",
      exclude: ["probe.proto"]
    ),
    .testTarget(
      name: "LongLinkProtobufCTests",
      dependencies: [
        "CLongLinkControl", "CLongLinkDemo", "CLongLinkProbe", "CProtobufC", "LongLinkDriver",
        "LongLinkCore", "LongLinkDemoMessages", "LongLinkProtobufC",
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkReadersTests",
      dependencies: [
        "CLongLinkReaders", "LongLink", "LongLinkCore", "LongLinkJSON", "LongLinkReaders",
        "LongLinkServer", "LongLinkTesting",
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkTestingTests",
      dependencies: [
        "LongLink", "LongLinkCore", "LongLinkServer", "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkOnceTests",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkOnce", "LongLinkOnceStore",
        "LongLinkServer", "LongLinkTestSupport", "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkSimulationTests",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkScenarios", "LongLinkServer",
        "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkTests",
      dependencies: [
        "CLongLinkDemo", "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkDemoMessages",
        "LongLinkDialects", "LongLinkProtobufC", "LongLinkServer", "LongLinkTestSupport",
        "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkUploadsTests",
      dependencies: [
        "LongLink", "LongLinkDriver", "LongLinkCore", "LongLinkServer", "LongLinkTesting",
        "LongLinkTransport", "LongLinkTestSupport", "LongLinkUploadMessages", "LongLinkUploads",
        "LongLinkUploadsServer",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkTLSTests",
      dependencies: [
        "CLongLinkSystem", "COpenSSL", "LongLink", "LongLinkCertificates", "LongLinkDriver",
        "LongLinkCore", "LongLinkScenarios", "LongLinkServer", "LongLinkTLS", "LongLinkTestSupport",
        "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Peers"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkHTTPTests",
      dependencies: [
        "LongLink", "LongLinkCalls", "LongLinkDriver", "LongLinkCore", "LongLinkCertificates",
        "LongLinkHTTP", "LongLinkHTTPServer", "LongLinkJSON", "LongLinkReaders", "LongLinkServer",
        "LongLinkTestSupport", "LongLinkTransport", "LongLinkUploadMessages", "LongLinkUploads",
        .product(
          name: "AsyncHTTPClient", package: "async-http-client",
          condition: .when(traits: ["HTTP"])),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOEmbedded", package: "swift-nio", condition: .when(traits: ["HTTP"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["HTTP"])),
      ],
      exclude: ["Plain/Peers"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkOnceSQLiteTests",
      dependencies: [
        "LongLinkCLibrary", "LongLinkCore", "LongLinkOnceSQLite", "LongLinkOnceStore",
        "LongLinkTesting", "LongLinkTestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["SQLite"])),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkOperationsTests",
      dependencies: [
        "LongLink", "LongLinkConfiguration", "LongLinkDriver", "LongLinkCore", "LongLinkLifecycle",
        "LongLinkServer", "LongLinkTesting", "LongLinkTestSupport", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
        .product(
          name: "Configuration", package: "swift-configuration",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle",
          condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkObservabilityTests",
      dependencies: [
        "LongLink", "LongLinkObservability", "LongLinkDriver", "LongLinkCore", "LongLinkServer",
        "LongLinkTesting", "LongLinkTestSupport", "LongLinkTransport",
        .product(
          name: "MetricsTestKit", package: "swift-metrics",
          condition: .when(traits: ["Operations"])),
        .product(
          name: "InMemoryTracing", package: "swift-distributed-tracing",
          condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkRecordingTests",
      dependencies: [
        "LongLink", "LongLinkCore", "LongLinkDriver", "LongLinkScenarios", "LongLinkServer",
        "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkOpsTests",
      dependencies: [
        "LongLink", "LongLinkCLibrary", "LongLinkOps", "LongLinkDriver", "LongLinkCore",
        "LongLinkScenarios", "LongLinkServer", "LongLinkTestSupport", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Operations"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Operations"])),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkCallsTests",
      dependencies: [
        "LongLink", "LongLinkCalls", "LongLinkDriver", "LongLinkCore", "LongLinkServer",
        "LongLinkTesting", "LongLinkTransport",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: swiftSettings
    ),
  ]
)

// A sanitizer builds only the tests that it runs: Scripts/sanitize.sh.
if let chosen = Context.environment["LONGLINK_TESTS"]?.split(separator: " ").map(String.init) {
  package.targets.removeAll { $0.type == .test && !chosen.contains($0.name) }
}

// A fuzzer links everything into one program of its own: Scripts/fuzz.sh.
if Context.environment["LONGLINK_FUZZING"] != nil {
  package.products.append(
    .library(name: "LongLinkFuzz", type: .static, targets: ["LongLinkFuzz"]))
}
