// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// The command `longlink`: a package of its own, so that programs that link the library fetch
// nothing for it.
var swiftSettings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
// To the compiler one package with the library, under the name that SwiftPM makes of the folder
// above: what decodes frames, simulates policies and relays bytes uses what the library says to
// itself.
let folder = Context.packageDirectory.split(separator: "/").dropLast().last ?? "longlink"
let name = folder.lowercased().enumerated().map { index, character in
  character.isLetter || index > 0 && character.isNumber ? String(character) : "_"
}.joined()
swiftSettings.append(.unsafeFlags(["-package-name", name]))
if Context.environment["LONGLINK_WARNINGS_AS_ERRORS"] != nil {
  swiftSettings.append(.treatAllWarnings(as: .error))
  swiftSettings.append(.treatWarning("DeprecatedDeclaration", as: .warning))
}

let package = Package(
  name: "longlink-command",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "longlink", targets: ["LongLinkCommand"]),
    // The project's own: it is built, but not installed.
    .executable(name: "longlink-soak", targets: ["LongLinkSoak"]),
  ],
  traits: [
    .trait(name: "HTTP", description: "Commands that go over HTTP: --http, and `fetch`."),
    .trait(
      name: "SQLite",
      description: "Answers in a file: `serve --once FILE`; the soak's payments over SQLite files."),
    .trait(
      name: "Operations",
      description: "A port for operators: `serve --ops`; with the trait HTTP also `top`."),
  ],
  dependencies: [
    .package(
      name: "longlink", path: "..",
      traits: [
        .trait(name: "HTTP", condition: .when(traits: ["HTTP"])),
        .trait(name: "SQLite", condition: .when(traits: ["SQLite"])),
        .trait(name: "Operations", condition: .when(traits: ["Operations"])),
      ]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(
      url: "https://github.com/HdrHistogram/hdrhistogram-swift", .upToNextMinor(from: "0.2.0")),
    // Neither fetched nor built without the trait SQLite.
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .target(
      name: "LongLinkCommandSupport",
      dependencies: [
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "Logging", package: "swift-log"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "LongLinkCommand",
      dependencies: [
        "LongLinkCommandSupport",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkCertificates", package: "longlink"),
        .product(name: "LongLinkDemoMessages", package: "longlink"),
        .product(name: "LongLinkDialects", package: "longlink"),
        .product(
          name: "LongLinkHTTP", package: "longlink", condition: .when(traits: ["HTTP"])),
        .product(
          name: "LongLinkHTTPServer", package: "longlink", condition: .when(traits: ["HTTP"])),
        .product(name: "LongLinkOnce", package: "longlink"),
        .product(
          name: "LongLinkOnceSQLite", package: "longlink",
          condition: .when(traits: ["SQLite"])),
        .product(
          name: "LongLinkOps", package: "longlink", condition: .when(traits: ["Operations"])),
        .product(
          name: "LongLinkReaders", package: "longlink", condition: .when(traits: ["HTTP"])),
        .product(name: "LongLinkScenarios", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTLS", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "LongLinkUploads", package: "longlink"),
        .product(name: "LongLinkUploadsServer", package: "longlink"),
        .product(name: "Logging", package: "swift-log"),
      ],
      resources: [
        .embedInCode("Dissector/fields.lua"), .embedInCode("Dissector/framing.lua"),
        .embedInCode("Dissector/exchanges.lua"), .embedInCode("Dissector/display.lua"),
        .embedInCode("Dissector/recording.lua"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "LongLinkSoak",
      dependencies: [
        "LongLinkCommandSupport",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["SQLite"])),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkOnce", package: "longlink"),
        .product(
          name: "LongLinkOnceSQLite", package: "longlink", condition: .when(traits: ["SQLite"])),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "Logging", package: "swift-log"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LongLinkCommandTests",
      dependencies: [
        "LongLinkCommand", "LongLinkCommandSupport", "LongLinkSoak",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
        .product(name: "LongLink", package: "longlink"),
        .product(name: "LongLinkDemoMessages", package: "longlink"),
        .product(name: "LongLinkDialects", package: "longlink"),
        .product(name: "LongLinkProtobufC", package: "longlink"),
        .product(name: "LongLinkScenarios", package: "longlink"),
        .product(name: "LongLinkServer", package: "longlink"),
        .product(name: "LongLinkTestSupport", package: "longlink"),
        .product(name: "LongLinkTesting", package: "longlink"),
        .product(name: "LongLinkUploads", package: "longlink"),
        .product(name: "LongLinkUploadsServer", package: "longlink"),
        .product(name: "LongLinkUploadMessages", package: "longlink"),
        .product(name: "Logging", package: "swift-log"),
      ],
      packageAccess: false,
      swiftSettings: swiftSettings
    ),
  ]
)
