// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Runs protoc with the plug-in; the variable names it, since it is built by another package.
struct Protoc {
  private let plugin: String

  let folder: URL

  /// Writes .proto files into a new folder.
  init(_ files: [String: String]) throws {
    plugin = try #require(
      ProcessInfo.processInfo.environment["PROTOC_GEN_LONGLINK"],
      "PROTOC_GEN_LONGLINK does not say where the plug-in is: run make check-generator")
    folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-\(UInt64.random(in: 0 ... .max))")
    try FileManager.default.createDirectory(
      at: folder.appending(path: "out"), withIntermediateDirectories: true)
    for (name, text) in files {
      let file = folder.appending(path: name)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try "syntax = \"proto3\";\n\(text)".write(to: file, atomically: true, encoding: .utf8)
    }
  }

  /// What protoc said, and its status.
  func run(_ options: String, _ files: [String]) throws -> (status: Int32, text: String) {
    let options = options.isEmpty ? "Messages=M,C=C,Client=M,Server=M,Simulated=T" : options
    let protocols = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Protocols")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.currentDirectoryURL = folder
    process.arguments =
      [
        "protoc", "--plugin=protoc-gen-longlink=\(plugin)", "--longlink_out=out",
        "--longlink_opt=\(options)", "--proto_path=.", "--proto_path=\(protocols.path)",
      ] + files
    let pipe = Pipe()
    process.standardError = pipe
    try process.run()
    let text = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }

  func output(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: "out/\(name)"), encoding: .utf8)
  }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
  }

  /// What begins a file with services or pushes.
  static let imported = "import \"longlink/options.proto\";\n"

  /// What is said about one file.
  static func findings(
    _ text: String, options: String = "", others: [String: String] = [:]
  ) throws -> String {
    let protoc = try Protoc(others.merging(["bad.proto": text]) { $1 })
    defer { protoc.remove() }
    let (status, said) = try protoc.run(options, ["bad.proto"])
    #expect(status != 0, "it was generated")
    return said
  }
}
