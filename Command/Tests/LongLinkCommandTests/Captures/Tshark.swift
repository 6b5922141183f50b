// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The program tshark, with a dissector.
struct Tshark {
  private static let program = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
    .map { "\($0)/tshark" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Why nothing can be shown to it here; nil where it can.
  static let problem: String? =
    program == nil ? "there is no program tshark (Debian: apt-get install tshark)" : nil

  private let folder: URL
  private let dissector: URL
  /// What the dissector's fields begin with.
  let name: String

  /// Writes the dissector with `longlink dissector`.
  init(layout: String? = nil, name: String) async throws {
    self.name = name
    folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-tshark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    dissector = folder.appending(path: "dissector.lua")
    let tool = try Tool(["dissector"] + (layout.map { ["--layout", $0] } ?? []))
    let written = await tool.finish()
    guard written.code == 0 else { throw Failure(description: written.errors) }
    try Data(written.output).write(to: dissector)
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// The values of these fields in each packet that the filter lets through; all values of a field
  /// in one packet stand together. Whatever tshark complains of is thrown.
  func rows(_ capture: PacketCapture, where filter: String, _ fields: [String]) async throws
    -> [[[String]]]
  {
    try await rows(in: capture.file, where: filter, fields)
  }

  /// The same of a file in any format that tshark knows.
  func rows(in bytes: [UInt8], where filter: String, _ fields: [String]) async throws
    -> [[[String]]]
  {
    let file = folder.appending(path: "\(UUID().uuidString).pcap")
    try Data(bytes).write(to: file)
    let arguments =
      [
        "-X", "lua_script:\(dissector.path)", "-r", file.path, "-Y", filter, "-T", "fields",
        "-E", "separator=;", "-E", "aggregator=,",
      ] + fields.flatMap { ["-e", $0] }
    let end = try await Tool(arguments, program: URL(filePath: Tshark.program ?? "")).finish()
    let complaints = end.errors.split(separator: "\n").filter { !$0.hasPrefix("Running as user") }
    guard end.code == 0, complaints.isEmpty else {
      throw Failure(description: complaints.joined(separator: "\n"))
    }
    return end.text.split(separator: "\n").map { line in
      line.split(separator: ";", omittingEmptySubsequences: false).map { field in
        field.split(separator: ",").map(String.init)
      }
    }
  }

  /// By connection: the kinds of its frames, in order, and the rules that are told to be broken.
  func findings(_ capture: PacketCapture, rules: [String]) async throws -> [Finding] {
    var findings = Array(repeating: Finding(), count: capture.streams)
    let fields = ["tcp.stream", "\(name).kind"] + rules.map { "\(name).\($0)" }
    for row in try await rows(capture, where: "\(name) or \(name)_end", fields) {
      guard let stream = row[0].first.flatMap({ Int($0) }) else { continue }
      findings[stream].kinds += row[1]
      for (rule, value) in zip(rules, row[2...]) where !value.isEmpty {
        findings[stream].rules.insert(rule)
      }
    }
    return findings
  }

  struct Finding: Equatable {
    var kinds: [String] = []
    var rules: Set<String> = []
  }
}
