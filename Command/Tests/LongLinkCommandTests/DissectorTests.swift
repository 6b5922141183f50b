// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkTestSupport
import Testing

@testable import LongLinkCommand

/// What tshark makes of a dissector.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(Tshark.problem))
struct DissectorTests {
  static let dialects = ["bare", "framed", "guarded", "lines", "mixed", "small"]

  /// Every rule that can be told from a capture.
  private static let rules = Violation.Rule.allCases
    .filter { DissectorNote.text(of: $0) != nil }.map(\.rawValue)

  private static func tshark(_ dialect: String?) async throws -> Tshark {
    try await Tshark(
      layout: dialect.map { VectorStream.layout($0).path }, name: dialect ?? "longlink")
  }

  private static func judge(
    _ streams: [VectorStream], _ findings: [Tshark.Finding]
  ) {
    for (stream, finding) in zip(streams, findings) {
      let broken = Set(stream.broken)
      if broken.isEmpty, stream.expected != ["nothing"] {
        #expect(finding.rules == [], "\(stream.name)")
      } else if !broken.isEmpty {
        #expect(broken.isSubset(of: finding.rules), "\(stream.name): \(finding)")
      } else {
        #expect(finding.rules == [Violation.Rule.truncatedFrame.rawValue], "\(stream.name)")
      }
    }
  }

  @Test(arguments: dialects, [60_000, 3])
  func `every test vector of a dialect is checked as by a decoder`(
    dialect: String, size: Int
  ) async throws {
    let tshark = try await DissectorTests.tshark(dialect)
    defer { tshark.remove() }
    let streams = try VectorStream.all(in: "Dialects/\(dialect).txt")
    var capture = PacketCapture()
    for stream in streams {
      // A decoder knows nothing of the requests that responses belong to.
      capture.add(stream.parts(of: max(size, stream.bytes.count / 500)), isWhole: false)
    }
    let findings = try await tshark.findings(capture, rules: DissectorTests.rules)
    DissectorTests.judge(streams, findings)
    for (stream, finding) in zip(streams, findings) where stream.broken.isEmpty {
      let kinds = stream.expected.filter { $0 != "nothing" }
        .compactMap { $0.split(separator: " ").first.map(String.init) }
      #expect(finding.kinds == kinds, "\(stream.name)")
    }
  }

  @Test func `every test vector of the native protocol is checked as by a connection`()
    async throws
  {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    let files = [
      "control", "fragments", "frames", "handshake", "headers", "metadata", "once", "serials",
    ]
    let streams = try files.flatMap { try VectorStream.all(in: "\($0).txt") }
      .filter { !$0.hasMore && $0.bytes.count < 100_000 && !$0.state.hasPrefix("short") }
      // A capture may begin within a connection, so that nobody knows which frame is the first.
      .filter { $0.name != "first-frame-too-large" }
    var capture = PacketCapture()
    for stream in streams { capture.add(DissectorTests.greeted(stream)) }
    let findings = try await tshark.findings(capture, rules: DissectorTests.rules)
    DissectorTests.judge(streams, findings)
  }

  @Test func `every test vector of streams is shown, and damage to its frames is flagged`()
    async throws
  {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    // What only the state of an exchange tells is not judged.
    let told: Set<String> = [
      "flagNotAllowed", "tagNotAllowed", "sizeNotAllowed", "serialOutOfRange",
    ]
    let streams = try VectorStream.all(in: "streams.txt")
      .filter { $0.state == "welcomed" && $0.bytes.count < 100_000 }
    var capture = PacketCapture()
    for stream in streams { capture.add(DissectorTests.greeted(stream)) }
    let findings = try await tshark.findings(capture, rules: DissectorTests.rules)
    for (stream, finding) in zip(streams, findings) {
      // A frame that is over the receiver's limit is not whole in its vector.
      let cut: Set = [Violation.Rule.truncatedFrame.rawValue]
      let found = finding.rules.subtracting(stream.broken.isEmpty ? [] : cut)
      #expect(found == told.intersection(stream.broken), "\(stream.name)")
    }
    #expect(streams.count { !told.isDisjoint(with: $0.broken) } >= 15 && streams.count > 80)
  }

  @Test func `items are numbered, linked to their request, and counted at the response`()
    async throws
  {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    func frame(_ kind: UInt32, _ tag: UInt32 = 0, _ body: [UInt8] = []) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: tag, serial: 50, body: body)
    }
    let stream = VectorStream.greeting(of: 7)
    let parts: RecordedRun.Connection = [
      (.client, frame(0x80, 6, [0, 4, 0x30, 0x7F, 0x38, 1])), (.client, frame(2, 0, [1])),
      (.server, frame(0x42, 0, [2])), (.client, frame(2)), (.server, frame(2, 0, [3])),
      (.server, frame(5, 0, [0, 0, 0, 9])), (.client, frame(3)), (.server, frame(1, 1042)),
    ]
    var capture = PacketCapture()
    capture.add(stream + parts)
    let rows = try await tshark.rows(
      capture, where: "longlink.serial == 50",
      ["kind", "request_in", "item", "items_up", "items_down"].map { "longlink.\($0)" })
    #expect(
      rows.map { $0[0] } == [
        ["request"], ["item"], ["item"], ["item"], ["item"], ["credit"], ["end"], ["response"],
      ])
    #expect(Set(rows.dropFirst().map { $0[1] }) == [["6"]])
    #expect(rows.map { $0[2] } == [[], ["1"], [], ["2"], ["1"], [], [], []])
    #expect(rows.last?.suffix(2) == [["2"], ["1"]])
  }

  @Test func `requests that run once are shown with where their keys are kept`() async throws {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    func frame(_ kind: UInt32, _ tag: UInt32, _ serial: UInt32, _ metadata: [UInt8]) -> [UInt8] {
      ScriptedConnection.frame(
        kind: kind, tag: tag, serial: serial, body: [0, UInt8(metadata.count)] + metadata)
    }
    let space = [UInt8](repeating: 1, count: 16)
    let terms = [0x4A, 16] + space + [0x50, 9]
    let parts: RecordedRun.Connection = [
      (.client, frame(0x80, 10, 50, [0x1A, 1, 7] + terms)),
      (.server, frame(0x81, 412 | 1 << 23, 50, terms)),
      (.client, frame(0x80, 10, 51, [0x1A, 1, 7] + terms)),
      (.server, frame(0x81, 410, 51, [0x58, 1])),
    ]
    var capture = PacketCapture()
    capture.add(VectorStream.greeting(of: 17) + parts)
    let fields = ["welcome.key_space", "welcome.key_retention", "welcome.key_time"]
    #expect(
      try await tshark.rows(
        capture, where: "longlink.kind == \"welcome\"", fields.map { "longlink.\($0)" })
        == [[[String(repeating: "01", count: 16)], ["1"], ["1"]]])
    let answers = try await tshark.rows(
      capture, where: "longlink.kind == \"response\"",
      ["longlink.metadata.key_time", "longlink.metadata.replayed", "_ws.expert.message"])
    #expect(answers.map { Array($0.prefix(2)) } == [[["9"], []], [[], ["1"]]])
    let reasons = ["other key space or time", "no longer kept"]
    for (answer, reason) in zip(answers, reasons) {
      #expect(answer[2].contains { $0.contains(reason) }, "\(answer)")
    }
  }

  /// A vector's bytes behind what has been said before.
  private static func greeted(_ stream: VectorStream) -> RecordedRun.Connection {
    var parts: RecordedRun.Connection = []
    if stream.state == "welcomed" {
      parts = VectorStream.greeting(of: stream.features)
    } else if stream.sender == .server {
      parts = [VectorStream.greeting(of: stream.asksForOnce ? 16 : 0)[0]]
    }
    let receiver = stream.sender.peer
    for serial in stream.waiting {
      parts.append((receiver, ScriptedConnection.frame(kind: 0, tag: 1, serial: serial)))
    }
    for (serial, metadata) in stream.asked {
      let block = [0, UInt8(metadata.count)] + metadata
      let request = ScriptedConnection.frame(kind: 0x80, tag: 1, serial: serial, body: block)
      parts.append((receiver, request))
    }
    return parts + stream.parts(of: 60_000)
  }

  // MARK: - Real runs

  struct Spoken: Sendable, CustomTestStringConvertible {
    let dialect: String?
    let echo: UInt32
    let push: UInt32
    let largest: Int

    var testDescription: String { dialect ?? "native" }

    func record() async throws -> RecordedRun.Connection {
      try await RecordedRun.connection(
        dialect.map(VectorStream.dialect), echo: MessageType(tag: echo),
        push: MessageType(tag: push), largest: largest)
    }
  }

  static let spoken = [
    Spoken(dialect: nil, echo: 7, push: 5, largest: 200_000),
    Spoken(dialect: "guarded", echo: 261, push: 1, largest: 20_000),
    Spoken(dialect: "bare", echo: 1025, push: 5, largest: 100_000),
    Spoken(dialect: "small", echo: 258, push: 0xF000, largest: 4096),
    Spoken(dialect: "lines", echo: 9, push: 2, largest: 64),
  ]

  @Test(arguments: spoken)
  func `a real run is shown without an error, and damage to it is flagged`(
    spoken: Spoken
  ) async throws {
    let tshark = try await DissectorTests.tshark(spoken.dialect)
    defer { tshark.remove() }
    let run = try await spoken.record()
    var capture = PacketCapture()
    capture.add(run)
    // Cut in another way, it is the same.
    capture.add(DissectorTests.cut(run, by: 977))
    let damages = DissectorTests.damages(of: run, hasChecksum: spoken.dialect != "bare")
    for damage in damages { capture.add(damage.connection) }
    let findings = try await tshark.findings(capture, rules: DissectorTests.rules)
    #expect(findings[0].rules == [])
    #expect(findings[0].kinds.count(where: { $0 == "request" }) >= 9)
    #expect(findings[1] == findings[0])
    for (damage, finding) in zip(damages, findings[2...]) {
      #expect(!finding.rules.isEmpty, "\(damage.name)")
    }
    let loud = try await tshark.rows(
      capture, where: "tcp.stream < 2 and \(tshark.name) and _ws.expert.severity >= warning",
      ["frame.number", "_ws.expert.message"])
    #expect(loud == [])
  }

  private struct Damage {
    let name: String
    let connection: RecordedRun.Connection
  }

  private static func cut(_ run: RecordedRun.Connection, by size: Int) -> RecordedRun.Connection {
    run.flatMap { part in
      stride(from: 0, to: part.bytes.count, by: size).map { start in
        (part.sender, Array(part.bytes[start..<min(start + size, part.bytes.count)]))
      }
    }
  }

  /// The same connection, each time with another thing wrong.
  private static func damages(
    of run: RecordedRun.Connection, hasChecksum: Bool
  ) -> [Damage] {
    var damages: [Damage] = []
    func add(_ name: String, _ change: (inout RecordedRun.Connection) -> Void) {
      var connection = run
      change(&connection)
      damages.append(Damage(name: name, connection: connection))
    }
    if hasChecksum {
      let inBodies = run.enumerated().flatMap { index, part in
        part.bytes.indices.filter { part.bytes[$0] == RecordedRun.filler }.map { (index, $0) }
      }
      for place in [1, 2, 3] {
        let (part, offset) = inBodies[inBodies.count * place / 4]
        add("a bit at \(offset) of part \(part)") { $0[part].bytes[offset] ^= 4 }
      }
    }
    add("the last byte is missing") { connection in
      let last = connection.lastIndex { $0.sender == .server && !$0.bytes.isEmpty } ?? 0
      connection[last].bytes.removeLast()
    }
    add("nothing but noise from the server") { connection in
      let first = connection.firstIndex { $0.sender == .server } ?? 0
      connection[first].bytes = [UInt8](repeating: 0xEE, count: 200)
    }
    return damages
  }

  @Test func `requests and answers are linked, with the time between them`() async throws {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    func frame(_ kind: UInt32, _ tag: UInt32, _ serial: UInt32) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: tag, serial: serial, body: [1])
    }
    var capture = PacketCapture()
    // Behind the three packets that open the connection.
    capture.add([
      (.client, frame(0, 7, 50) + frame(0, 7, 51)), (.server, frame(1, 200, 51)),
      (.server, frame(1, 0x80_01F7, 50)), (.client, frame(8, 0, 0)), (.server, frame(9, 0, 0)),
    ])
    let fields = ["kind", "response_in", "request_in", "time", "code", "refused"]
    let rows = try await tshark.rows(capture, where: "longlink", fields.map { "longlink.\($0)" })
    let microseconds = rows.map { row in row[3].map { Int((Double($0) ?? 0) * 1e6 + 0.5) } }
    #expect(rows[0][0] == ["request", "request"])
    #expect(rows[1][2] == ["4"] && rows[2][2] == ["4"] && rows[4][2] == ["7"])
    #expect(microseconds == [[], [250], [500], [], [250]])
    #expect(rows[1][4] == ["200"] && rows[2][4] == ["503"])
    #expect(rows[1][5] == ["0"] && rows[2][5] == ["1"])
    // What comes later is known only the second time round.
    let linked = try await tshark.rows(
      capture, where: "longlink.request_in == 4", ["frame.number"])
    #expect(linked == [[["5"]], [["6"]]])
  }

  @Test func `frames of equal size are separated, however the stream is cut`() async throws {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    func frames(_ kind: UInt32, _ tag: UInt32) -> [UInt8] {
      (50..<58).flatMap { ScriptedConnection.frame(kind: kind, tag: tag, serial: $0, body: [1]) }
    }
    let parts: RecordedRun.Connection = [(.client, frames(0, 7)), (.server, frames(1, 200))]
    var capture = PacketCapture()
    for size in [8, 17, 25, 26, 34, 42] { capture.add(DissectorTests.cut(parts, by: size)) }
    let rows = try await tshark.rows(
      capture, where: "longlink",
      ["tcp.stream", "longlink.request_in", "longlink.unknownSerial", "longlink.serialInUse"])
    for stream in 0..<capture.streams {
      let own = rows.filter { $0[0] == ["\(stream)"] }
      #expect(own.reduce(0) { $0 + $1[1].count } == 8)
      #expect(own.allSatisfy { $0[2].isEmpty && $0[3].isEmpty })
    }
  }

  @Test func `the fragments of a message are joined`() async throws {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    let more: UInt32 = 0x40
    let metadata: UInt32 = 0x80
    func frame(_ kind: UInt32, _ body: [UInt8]) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: 7, serial: 50, body: body)
    }
    let greeting: RecordedRun.Connection = [
      (.client, ScriptedConnection.frame(kind: 10, tag: 0, serial: 3, body: [16, 3])),
      (.server, ScriptedConnection.frame(kind: 11, tag: 0, serial: 3, body: [16, 3])),
    ]
    var capture = PacketCapture()
    capture.add(
      greeting + [
        (.client, frame(metadata | more, [0, 3, 8])), (.client, frame(more, [0xDC, 0x0B, 1])),
        (.client, frame(0, [])),
        (.server, ScriptedConnection.frame(kind: 1, tag: 200, serial: 50)),
      ])
    let findings = try await tshark.findings(capture, rules: DissectorTests.rules)
    #expect(findings[0].rules == [])
    let rows = try await tshark.rows(
      capture, where: "longlink.metadata.remaining",
      ["frame.number", "longlink.metadata.remaining"])
    #expect(rows == [[["8"], ["1500"]]])
  }

  @Test func `late, repeated and unsolicited responses are noted`() async throws {
    let tshark = try await DissectorTests.tshark(nil)
    defer { tshark.remove() }
    func frame(_ kind: UInt32, _ tag: UInt32, _ serial: UInt32) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: tag, serial: serial)
    }
    var capture = PacketCapture()
    capture.add([
      (.client, frame(0, 7, 50)), (.server, frame(1, 200, 50)), (.server, frame(1, 200, 50)),
      (.server, frame(1, 200, 60)), (.client, frame(0, 7, 51)), (.client, frame(4, 0, 51)),
      (.server, frame(1, 200, 51)), (.client, frame(4, 0, 99)), (.server, frame(9, 0, 0)),
      (.client, frame(0x30, 5, 5)),
    ])
    let notes = [
      "lateReply", "unknownSerial", "answerToCancelled", "cancelOfNothing", "unsolicitedPong",
      "ignoredKind",
    ]
    let rows = try await tshark.rows(
      capture, where: "longlink", ["frame.number"] + notes.map { "longlink.\($0)" })
    let noted = notes.indices.map { index in rows.filter { !$0[index + 1].isEmpty }.map { $0[0][0] }
    }
    #expect(noted == [["6"], ["7"], ["10"], ["11"], ["12"], ["13"]])
  }
}
