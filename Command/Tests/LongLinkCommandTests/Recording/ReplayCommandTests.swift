// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLinkCore
import LongLinkScenarios
import Testing

/// `longlink replay`.
@Suite(.timeLimit(.minutes(15))) struct ReplayCommandTests {
  /// Recordings of a run of clients and servers in a simulated network.
  private static func run(_ seed: UInt64 = 1) async throws -> [[UInt8]] {
    try await Scenario(seed: seed).run(recording: true).recordings
      .map { RecordingWriter.file([$0], names: [1: "Echo"]) }
  }

  private static func replay(_ file: [UInt8], _ options: String...) async throws -> Finished {
    try await Tool(["replay", "-"] + options, input: file).finish()
  }

  @Test func `what a loop has recorded is shown, and replays`() async throws {
    for file in try await Self.run() {
      let recording = try RecordingFile(file)
      let end = try await Self.replay(file)
      #expect(end.code == 0 && end.errors.isEmpty, "\(end.errors)")
      #expect(end.lines.count == recording.packets.count + 1)
      #expect(end.lines.first?.hasPrefix("   0.000000 ") == true)
      #expect(end.lines.last?.wholeMatch(of: /replayed: [1-9][0-9]* steps/) != nil)
      let connection = try #require(recording.packets.map(\.connection).max())
      let one = try await Self.replay(file, "--connection", "\(connection)")
      #expect(one.code == 0 && one.lines.count < end.lines.count)
    }
  }

  @Test func `JSON has one object a line`() async throws {
    let file = try #require(try await Self.run().first)
    let recording = try RecordingFile(file)
    let end = try await Self.replay(file, "--json")
    let records = try end.lines.map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
    #expect(end.code == 0 && records.count == recording.packets.count + 1)
    for (record, packet) in zip(records, recording.packets) {
      #expect(record["at"] as? Int64 == packet.time)
      #expect(record["connection"] as? UInt32 == packet.connection)
      #expect(["frame", "event"].contains(record["kind"] as? String))
      #expect(record["name"] is String)
    }
    let effects = records.filter { $0["name"] as? String == "effect" }
    #expect(effects.contains { $0["effect"] as? String == "established" })
    #expect(records.contains { $0["type_name"] as? String == "Echo" && $0["type"] as? Int == 1 })
    #expect(records.last?["result"] as? String == "replayed")
    #expect(records.last?["steps"] as? Int ?? 0 > 10)
  }

  @Test func `a decision that was recorded otherwise is the difference`() async throws {
    var file = try #require(try await Self.run().first)
    // The number of accepted frames in an effect is its last number.
    let head: [UInt8] = [RecordedEvent.effect.rawValue]
    let place = try #require(
      file.indices.dropFirst(400).first { place in
        file[place...].starts(with: head) && file[(place + 2)...].starts(with: [0, 4])
          && file[(place + 4)...].starts(with: [0, 0, 0, 0, 0, 0, 0, 5])
      })
    file[place + 35] ^= 64
    let end = try await Self.replay(file)
    #expect(end.code == 1 && end.errors.isEmpty)
    let last = try #require(end.lines.last)
    #expect(
      last.wholeMatch(
        of: /differs at [0-9]+\.[0-9]{6} s, connection [0-9]+: effect: .*established.*/) != nil,
      "\(last)")
    let drawn = try await Self.replay(file, "--svg")
    #expect(drawn.code == 1 && drawn.text.contains("the replay differs: effect"))
    #expect(drawn.errors.contains("differs at"))
  }

  @Test func `SVG is a document`() async throws {
    let file = try #require(try await Self.run().first)
    let end = try await Self.replay(file, "--svg")
    #expect(end.code == 0 && end.errors.contains("replayed: "))
    #expect(end.text.hasPrefix("<?xml") && end.text.hasSuffix("</svg>\n"))
    #expect(end.text.contains("this side") && end.text.contains("connection 1"))
  }

  @Test func `connections without a beginning have a timeline only`() async throws {
    var recording = MadeRecording()
    recording.goOn()
    recording.note(.connected, [])
    let why = "timeline only: it does not reach back to the connection's beginning"
    let alone = try await Self.replay(recording.file)
    #expect(alone.code == 0 && alone.lines.count == 3)
    #expect(alone.lines[1] == "   0.000000  1  -   connected")
    #expect(alone.lines.last == why)
    recording.begin()
    let both = try await Self.replay(recording.file)
    #expect(both.code == 0)
    #expect(both.lines.suffix(2) == ["connection 1: \(why)", "replayed: 0 steps"])
    let json = try await Self.replay(recording.file, "--json")
    #expect(json.lines.last?.contains(#""timeline_only":["connection 1: "#) == true)
  }

  @Test func `damage and what is no recording have their exit codes`() async throws {
    let file = try #require(try await Self.run().first)
    let cut = try await Self.replay(Array(file.dropLast(3)))
    #expect(cut.code == 6)
    #expect(cut.lines.last?.hasPrefix("damaged: the file is cut off, at byte ") == true)
    let json = try await Self.replay(Array(file.dropLast(3)), "--json")
    #expect(json.code == 6 && json.lines.last?.contains(#""result":"damaged""#) == true)
    for (input, options, word) in [
      (Array("GET /".utf8), [], "standard input is no recording"),
      (file, ["--connection", "99999"], "has no connection 99999"),
      ([], ["--json", "--svg"], "exclude each other"),
    ] {
      let end = try await Tool(["replay", "-"] + options, input: input).finish()
      #expect(end.code == 64 && end.errors.contains(word) && end.output.isEmpty, "\(end.errors)")
    }
    #expect(try await Tool.run("replay", "/nowhere/at.all").code == 64)
  }
}
#endif
