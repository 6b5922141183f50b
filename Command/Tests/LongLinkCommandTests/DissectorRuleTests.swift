// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkTestSupport
import Testing

@testable import LongLinkCommand

/// Rules that only the exchange which a frame belongs to can tell, as tshark shows them.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(Tshark.problem))
struct DissectorRuleTests {
  /// A connection, and the error that its last frame has; nil where it has none.
  private struct Case {
    let connection: RecordedRun.Connection
    let error: String?
    let warning: String?
    let isWhole: Bool

    init(
      _ parts: (Role, [UInt8])..., error: String? = nil, warning: String? = nil,
      isWhole: Bool = true
    ) {
      connection = parts.map { (sender: $0.0, bytes: $0.1) }
      self.error = error
      self.warning = warning
      self.isWhole = isWhole
    }
  }

  /// Shows all connections, each with its frames in packets of their own, and compares what is
  /// noted at the last frame of each.
  private func judge(_ cases: [Case], _ dialect: String?) async throws {
    let tshark = try await Tshark(
      layout: dialect.map { VectorStream.layout($0).path }, name: dialect ?? "longlink")
    defer { tshark.remove() }
    var capture = PacketCapture()
    for each in cases { capture.add(each.connection, isWhole: each.isWhole) }
    let severities = ["error": 0x80_0000, "warning": 0x60_0000]
    let rows = try await tshark.rows(
      capture, where: tshark.name, ["tcp.stream", "_ws.expert.severity", "_ws.expert.message"])
    for (index, each) in cases.enumerated() {
      let frames = rows.filter { $0[0] == ["\(index)"] }
      func messages(_ severity: String, in row: [[String]]) -> [String] {
        zip(row[1], row[2]).filter { Int($0.0) == severities[severity] }.map(\.1)
      }
      let last = try #require(frames.last, "connection \(index)")
      for row in frames.dropLast() { #expect(messages("error", in: row) == [], "\(index)") }
      #expect(messages("error", in: last) == (each.error.map { [$0] } ?? []), "\(index)")
      #expect(messages("warning", in: last) == (each.warning.map { [$0] } ?? []), "\(index)")
    }
  }

  @Test func `a response with the wrong type for its request breaks a rule`() async throws {
    let bare = try VectorStream.dialect("bare")
    let (client, server) = (
      try DialectFrames(bare, from: .client), try DialectFrames(bare, from: .server)
    )
    let request = client.request(1025, 1030)
    try await judge(
      [
        Case((.client, request), (.server, server.response(to: 1025, 1030))),
        Case(
          (.client, request), (.server, server.response(to: 1026, 1030)),
          error: "A type that is not allowed here (1026 in place of 1025)"),
      ], "bare")

    let small = try VectorStream.dialect("small")
    let (asking, answering) = (
      try DialectFrames(small, from: .server), try DialectFrames(small, from: .client)
    )
    let serial: UInt32 = 0x8000_0001
    try await judge(
      [
        Case((.server, asking.request(5, serial)), (.client, answering.response(to: 5, serial))),
        Case(
          (.server, asking.request(5, serial)), (.client, answering.response(to: 6, serial)),
          error: "A type that is not allowed here (16390 in place of 16389)"),
      ], "small")
  }

  @Test func `an unsolicited response is treated as the dialect says`() async throws {
    let small = try VectorStream.dialect("small")
    var (client, server) = (
      try DialectFrames(small, from: .client), try DialectFrames(small, from: .server)
    )
    let (request, response) = (client.request(5, 1), server.response(to: 5, 1))
    try await judge(
      [
        Case(
          (.server, response), error: "A serial that is not allowed here (no request has it)"),
        // Of what came before the capture nothing is known.
        Case((.server, response), warning: "No request with this serial was seen", isWhole: false),
        Case(
          (.client, request), (.server, response), (.server, response),
          error: "A serial that is not allowed here (the first is in frame 16)"),
        // One answer may cross the cancel.
        Case((.client, request), (.client, client.cancel(1)), (.server, response)),
      ], "small")

    let bare = try VectorStream.dialect("bare")
    client = try DialectFrames(bare, from: .client)
    server = try DialectFrames(bare, from: .server)
    let late = server.response(to: 1025, 1030)
    try await judge(
      [
        Case((.server, late), warning: "No request with this serial was seen"),
        Case(
          (.client, client.request(1025, 1030)), (.server, late), (.server, late),
          warning: "This request has been answered before (the first is in frame 12)"),
      ], "bare")
  }

  @Test func `a request with the serial of a running request breaks a rule`() async throws {
    let small = try VectorStream.dialect("small")
    let client = try DialectFrames(small, from: .client)
    let server = try DialectFrames(small, from: .server)
    let request = client.request(5, 1)
    try await judge(
      [
        Case(
          (.client, request), (.client, request),
          error: "A request with this serial is under way (since frame 4)"),
        Case((.client, request), (.client, client.cancel(1)), (.client, request)),
        Case((.client, request), (.server, server.response(to: 5, 1)), (.client, request)),
      ], "small")
  }

  @Test func `a cancel by body names a serial that a request can have`() async throws {
    let client = try DialectFrames(VectorStream.dialect("lines"), from: .client)
    try await judge(
      [
        Case((.client, client.request(9, 3)), (.client, client.cancel(3))),
        Case(
          (.client, client.request(9, 3)), (.client, client.cancel(5000)),
          error: "A serial that is not allowed here (5000)"),
      ], "lines")
  }

  @Test func `pings of a dialect are counted`() async throws {
    let guarded = try VectorStream.dialect("guarded")
    let server = try DialectFrames(guarded, from: .server)
    // Any response that nobody asked for is a ping there; the capture takes no time over them.
    let beat = (Role.server, server.response(to: 261, 7))
    let most = [(Role, [UInt8])](repeating: beat, count: 100)
    func connection(_ parts: [(Role, [UInt8])]) -> RecordedRun.Connection {
      parts.map { (sender: $0.0, bytes: $0.1) }
    }
    let tshark = try await Tshark(layout: VectorStream.layout("guarded").path, name: "guarded")
    defer { tshark.remove() }
    var capture = PacketCapture()
    capture.add(connection(most))
    capture.add(connection(most + [beat]))
    let findings = try await tshark.findings(capture, rules: ["tooManyPings", "serialOutOfRange"])
    #expect(findings[0].rules == [])
    #expect(findings[1].rules == ["tooManyPings"])
  }

  private static func hello(_ limit: [UInt8] = []) -> [UInt8] {
    ScriptedConnection.frame(kind: 10, tag: 0, serial: 3, body: [16, 3] + limit)
  }

  private static let welcome = ScriptedConnection.frame(
    kind: 11, tag: 0, serial: 3, body: [16, 3])

  @Test func `the total size of a message's fragments is limited by its receiver`() async throws {
    func fragment(_ kind: UInt32, _ tag: UInt32, more: Bool) -> [UInt8] {
      ScriptedConnection.frame(
        kind: kind | (more ? 0x40 : 0), tag: tag, serial: 50,
        body: [UInt8](repeating: 7, count: 60))
    }
    // The client takes 100 bytes.
    let greeting = (Role.client, DissectorRuleTests.hello([24, 100]))
    let answer = (Role.server, DissectorRuleTests.welcome)
    let request = (Role.client, ScriptedConnection.frame(kind: 0, tag: 7, serial: 50))
    try await judge(
      [
        Case(
          greeting, answer, request, (.server, fragment(1, 200, more: true)),
          (.server, fragment(1, 200, more: false)), error: "The length is over the limit (120)"),
        // The server has named no limit; a request over it would be refused, and break no rule.
        Case(
          greeting, answer,
          (.client, fragment(0, 7, more: true)), (.client, fragment(0, 7, more: false))),
      ], nil)
  }

  @Test func `an unsolicited welcome breaks a rule`() async throws {
    let welcome = (Role.server, DissectorRuleTests.welcome)
    try await judge(
      [
        Case(welcome, error: "A welcome that was not asked for"),
        Case(welcome, isWhole: false),
        Case((.client, DissectorRuleTests.hello()), welcome),
      ], nil)
  }

  @Test func `metadata and payload are counted separately, and fragments are numbered`()
    async throws
  {
    func frame(_ kind: UInt32, _ serial: UInt32, _ body: [UInt8]) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: 7, serial: serial, body: body)
    }
    var capture = PacketCapture()
    capture.add([
      (.client, DissectorRuleTests.hello()), (.server, DissectorRuleTests.welcome),
      (.client, frame(0x80, 50, [0, 3, 8, 0xDC, 0x0B] + Array("hello".utf8))),
      (.client, frame(0xC0, 51, [0, 3, 8])), (.client, frame(0x40, 51, [0xDC, 0x0B, 1])),
      (.client, frame(0, 51, [2, 3])),
    ])
    let tshark = try await Tshark(name: "longlink")
    defer { tshark.remove() }
    let rows = try await tshark.rows(capture, where: "longlink", ["_ws.col.Info"])
    #expect(
      rows.dropFirst(2).map { $0[0].joined() } == [
        "request type=7 serial=50 metadata=3 body=5",
        "request type=7 serial=51 fragment=1 more metadata=1",
        "request type=7 serial=51 fragment=2 more metadata=2 body=1",
        "request type=7 serial=51 fragment=3 last body=2",
      ])
  }
}
