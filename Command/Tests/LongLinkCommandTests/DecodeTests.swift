// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import Testing

@testable import LongLinkCommand

/// What `longlink decode` prints.
@Suite(.timeLimit(.minutes(15))) struct DecodeTests {
  private static let frames =
    ScriptedConnection.frame(kind: 0, tag: 7, serial: 50, body: Array("hello".utf8))
    + ScriptedConnection.frame(kind: 4, tag: 0, serial: 50)

  private static let lines = [
    "00000000  request type=7 serial=50 body=5 68656c6c6f", "00000015  cancel serial=50",
  ]

  @Test func `each frame has a line that begins with its offset`() async throws {
    let decoded = try await Tool.run("decode", input: DecodeTests.frames)
    #expect(decoded.lines == ["# from the client"] + DecodeTests.lines)
    #expect(decoded.code == 0)
  }

  @Test func `damage is reported with its offset and its reason, and changes the exit code`()
    async throws
  {
    var bytes = DecodeTests.frames + DecodeTests.frames.prefix(20)
    bytes[18] ^= 1
    let decoded = try await Tool.run("decode", input: bytes)
    #expect(
      decoded.lines == [
        "# from the client",
        "00000000  error: checksumMismatch in request type=7 serial=50",
        DecodeTests.lines[1],
        "00000025  error: the stream ends within a frame, with 20 of 21 bytes",
      ])
    #expect(decoded.code == 6)
  }

  private struct Record: Decodable, Equatable {
    var stream: String?
    var from: String
    var offset: Int
    var length: Int
    var kind: String?
    var type: UInt32?
    var serial: UInt64?
    var code: UInt32?
    var refused: Bool
    var fragment: Int?
    var more = false
    var metadata: Data?
    var body: Data?
    var error: String?
  }

  @Test func `JSON has one object per line`() async throws {
    let decoded = try await Tool.run("decode", "--json", input: DecodeTests.frames + [1])
    let records = try decoded.lines.map {
      try JSONDecoder().decode(Record.self, from: Data($0.utf8))
    }
    #expect(
      records == [
        Record(
          from: "client", offset: 0, length: 21, kind: "request", type: 7, serial: 50,
          refused: false, body: Data("hello".utf8)),
        Record(
          from: "client", offset: 21, length: 16, kind: "cancel", serial: 50, refused: false,
          body: Data()),
        Record(from: "client", offset: 37, length: 1, refused: false, error: "truncatedFrame"),
      ])
  }

  @Test func `metadata and payload are shown separately, also in fragments`() async throws {
    func frame(_ kind: UInt32, _ serial: UInt32, _ body: [UInt8]) -> [UInt8] {
      ScriptedConnection.frame(kind: kind, tag: 7, serial: serial, body: body)
    }
    let bytes =
      frame(0x80, 50, [0, 3, 8, 0xDC, 0x0B, 1]) + frame(0xC0, 51, [0, 3, 8])
      + frame(0x40, 51, [0xDC, 0x0B, 1]) + frame(0, 52, [4]) + frame(0, 51, [2, 3])
    let decoded = try await Tool.run("decode", input: bytes)
    #expect(
      decoded.lines == [
        "# from the client",
        "00000000  request type=7 serial=50 metadata=3 body=1 01",
        "00000016  request type=7 serial=51 fragment=1 more metadata=1",
        "00000029  request type=7 serial=51 fragment=2 more metadata=2 body=1 01",
        "0000003c  request type=7 serial=52 body=1 04",
        "0000004d  request type=7 serial=51 fragment=3 last body=2 0203",
      ])
    #expect(decoded.code == 0)
    let json = try await Tool.run("decode", "--json", input: frame(0xC0, 51, [0, 3, 8, 9, 9, 7]))
    let record = try JSONDecoder().decode(Record.self, from: Data(json.output))
    #expect(record.fragment == 1 && record.more)
    #expect(record.metadata == Data([8, 9, 9]) && record.body == Data([7]))
  }

  @Test(
    arguments: [
      // Metadata that is longer than its message; another type, or metadata again, later.
      ([(0x80, 7, [0, 3, 8])], "metadataTooLong"),
      ([(0xC0, 7, [0, 3, 8]), (0, 7, [1])], "metadataTooLong"),
      ([(0x40, 7, [1]), (0, 8, [1])], "fragmentMismatch"),
      ([(0x40, 7, [1]), (0x80, 7, [0, 0])], "fragmentMismatch"),
      ([(0x40, 7, [])], "sizeNotAllowed"),
    ] as [([(UInt32, UInt32, [UInt8])], String)])
  func `a fragment that does not belong to its message is damage`(
    frames: [(kind: UInt32, tag: UInt32, body: [UInt8])], rule: String
  ) async throws {
    let bytes = frames.flatMap {
      ScriptedConnection.frame(kind: $0.kind, tag: $0.tag, serial: 50, body: $0.body)
    }
    let decoded = try await Tool.run("decode", input: bytes)
    #expect(decoded.code == 6)
    #expect(decoded.lines.last?.contains("error: \(rule) in request") == true, "\(decoded.text)")
  }

  @Test func `serials are those of the wire`() async throws {
    let small = try VectorStream.dialect("small")
    let (client, server) = (
      try DialectFrames(small, from: .client), try DialectFrames(small, from: .server)
    )
    func decode(_ layout: String, _ bytes: [UInt8]) async throws -> [String] {
      try await Tool.run("decode", "--layout", VectorStream.layout(layout).path, input: bytes).lines
    }
    #expect(
      try await decode("small", server.push(0xF001, [9]))
        == ["# from the server", "00000000  push type=61441 serial=0 body=1 09"])
    #expect(
      try await decode("small", client.cancel(3))
        == ["# from the client", "00000000  cancel serial=3"])
    let lines = try DialectFrames(VectorStream.dialect("lines"), from: .client)
    #expect(
      try await decode("lines", lines.cancel(3))
        == ["# from the client", "00000000  cancel serial=0 body=4 00000003"])
    // No serial is shown that no frame has.
    let noise = try await decode("lines", Array("GET / HTTP/1.1\r\n\r\n".utf8))
    #expect(!noise.joined().contains("4294967295"), "\(noise)")
  }

  @Test func `every field can be shown`() async throws {
    let decoded = try await Tool.run("decode", "--verbose", input: DecodeTests.frames)
    for field in ["kind: 0x0 (request)", "serial: 50", "length: 5", "(right)", "hello"] {
      #expect(decoded.text.contains(field), "\(decoded.text)")
    }
    let dialect = try await Tool.run(
      "decode", "-v", "--layout", VectorStream.layout("small").path,
      input: HexBytes.of("5301263a0d00020103000000aa"))
    for field in ["checksum: 0x3a260153", "length: 13", "type: 258"] {
      #expect(dialect.text.contains(field), "\(dialect.text)")
    }
  }

  @Test func `dumps are read as the bytes that they show`() throws {
    let bytes = DecodeTests.frames
    let rows = stride(from: 0, to: bytes.count, by: 16).map { start in
      (start, Array(bytes[start..<min(start + 16, bytes.count)]))
    }
    func offset(_ place: Int, _ width: Int) -> String {
      let digits = String(place, radix: 16)
      return String(repeating: "0", count: width - digits.count) + digits
    }
    let plain = rows.map { $0.1.hex }.joined(separator: "\n")
    let xxd = rows.map { place, row in
      let words = stride(from: 0, to: row.count, by: 2).map { index in
        Array(row[index..<min(index + 2, row.count)]).hex
      }
      return "\(offset(place, 8)): \(words.joined(separator: " "))  .ab cd  ef."
    }.joined(separator: "\n")
    let canonical =
      rows.map { place, row in
        let pairs = row.map { [$0].hex }
        let halves = [pairs.prefix(8), pairs.dropFirst(8)].map { $0.joined(separator: " ") }
        return "\(offset(place, 8))  \(halves.joined(separator: "  "))  |12:34|"
      }.joined(separator: "\n") + "\n\(offset(bytes.count, 8))\n"
    for dump in [plain, xxd, canonical] {
      #expect(try HexDump.streams(Array(dump.utf8)) == [HexDump.Stream(bytes: bytes)], "\(dump)")
    }
    #expect(try HexDump.streams(bytes) == [HexDump.Stream(bytes: bytes)])
    #expect(throws: HexDump.Failure.self) { try HexDump.streams(Array("abcd\nwhat?\n".utf8)) }
  }

  @Test func `packets of tcpdump are joined by sender, without retransmissions`() throws {
    func packet(_ from: UInt8, _ to: UInt8, _ sequence: UInt8, _ payload: [UInt8]) -> String {
      let ip: [UInt8] = [0x45, 0, 0, UInt8(40 + payload.count), 0, 0, 0, 0, 64, 6, 0, 0]
      let hosts: [UInt8] = [10, 0, 0, 1, 10, 0, 0, 1]
      let tcp: [UInt8] = [
        0, from, 0, to, 0, 0, 0, sequence, 0, 0, 0, 0, 0x50, 0x18, 0, 9, 0, 0, 0, 0,
      ]
      let bytes = ip + hosts + tcp + payload
      let rows = stride(from: 0, to: bytes.count, by: 16).map { start in
        let digits = String(start, radix: 16)
        return "\t0x\(String(repeating: "0", count: 4 - digits.count))\(digits):  "
          + Array(bytes[start..<min(start + 16, bytes.count)]).hex
      }
      return (["12:00:00.0 IP a > b: Flags [P.], length \(payload.count)"] + rows)
        .joined(separator: "\n")
    }
    let dump = [
      packet(5, 9, 100, [1, 2, 3]), packet(9, 5, 7, [9]), packet(5, 9, 100, [1, 2, 3]),
      packet(5, 9, 102, [3, 4]), packet(5, 9, 110, [8]),
    ].joined(separator: "\n")
    let streams = try HexDump.streams(Array(dump.utf8))
    #expect(
      streams == [
        HexDump.Stream(label: "10.0.0.1:5 > 10.0.0.1:9", bytes: [1, 2, 3, 4, 8], gaps: [4]),
        HexDump.Stream(label: "10.0.0.1:9 > 10.0.0.1:5", bytes: [9]),
      ])
  }

  @Test(arguments: DissectorTests.dialects)
  func `test vectors of dialects are decoded, and damage is found`(name: String) throws {
    let dialect = try VectorStream.dialect(name)
    for stream in try VectorStream.all(in: "Dialects/\(name).txt") {
      let (_, items) = try FrameDecoder.items(in: stream.bytes, of: dialect, from: stream.sender)
      let isRight = stream.broken.isEmpty && stream.expected != ["nothing"]
      #expect(items.contains(where: \.isDamage) != isRight, "\(stream.name)")
      let place = items.reduce(0) { place, item in
        #expect(item.offset == place, "\(stream.name)")
        return place + item.length
      }
      #expect(place == stream.bytes.count, "\(stream.name)")
    }
  }

  @Test func `test vectors of the native protocol are decoded, and damage is found`() throws {
    // What a header and a checksum tell by themselves.
    let told: Set<String> = [
      "checksumMismatch", "unknownKind", "tagNotAllowed", "serialOutOfRange", "kindNotAgreed",
    ]
    var (right, wrong) = (0, 0)
    for file in ["control", "frames", "handshake", "headers", "once", "serials"] {
      for stream in try VectorStream.all(in: "\(file).txt") where !stream.hasMore {
        let (_, items) = try FrameDecoder.items(in: stream.bytes, of: nil, from: stream.sender)
        let isDamaged = items.contains(where: \.isDamage)
        if stream.broken.isEmpty, !stream.expected.contains("nothing") {
          #expect(!isDamaged, "\(stream.name)")
          right += 1
        } else if !stream.needsGreeting, !told.isDisjoint(with: stream.broken) {
          #expect(isDamaged, "\(stream.name)")
          wrong += 1
        }
      }
    }
    #expect(right > 30 && wrong > 20)
  }

  @Test func `test vectors of streams are decoded, and damage is found`() throws {
    // What the other side has sent, or the receiver's limits, would tell these.
    let untold: Set<String> = [
      "item-over-limit", "item-not-asked-for", "item-for-plain-request", "credit-exceeded",
      "credit-exceeded-by-fragment", "credit-exceeded-by-empty-items", "credit-exceeded-down",
      "credit-overflow", "credit-of-hello-too-large", "credit-not-announced",
      "credit-for-plain-request",
    ]
    var wrong = 0
    for stream in try VectorStream.all(in: "streams.txt") {
      let (_, items) = try FrameDecoder.items(in: stream.bytes, of: nil, from: stream.sender)
      let isDamaged = items.contains(where: \.isDamage)
      let isTold = !stream.broken.isEmpty && !untold.contains(stream.name)
      #expect(isDamaged == isTold, "\(stream.name)")
      if isDamaged { wrong += 1 }
    }
    #expect(wrong > 35)
  }

  @Test func `the sender of the bytes is detected`() throws {
    let dialect = try VectorStream.dialect("guarded")
    for stream in try VectorStream.all(in: "Dialects/guarded.txt") where stream.broken.isEmpty {
      guard stream.expected != ["nothing"] else { continue }
      let (sender, _) = try FrameDecoder.items(in: stream.bytes, of: dialect, from: nil)
      #expect(sender == stream.sender, "\(stream.name)")
    }
    let answer = ScriptedConnection.frame(kind: 1, tag: 200, serial: 50)
    #expect(try FrameDecoder.items(in: answer, of: nil, from: nil).sender == .server)
    let welcome = ScriptedConnection.frame(kind: 0x0B, tag: 0, serial: 3)
    #expect(try FrameDecoder.items(in: welcome, of: nil, from: nil).sender == .server)
    let hello = ScriptedConnection.frame(kind: 0x0A, tag: 0, serial: 3)
    #expect(try FrameDecoder.items(in: hello, of: nil, from: nil).sender == .client)
  }
}

extension VectorStream {
  /// Whether it has a frame of streams that were not agreed, or metadata of requests that run once
  /// and were, which only both greetings tell.
  fileprivate var needsGreeting: Bool {
    name == "once-replayed-refused"
      || broken == ["kindNotAgreed"]
        && ["item-", "end-", "credit-", "renewal-"].contains { name.hasPrefix($0) }
  }
}
