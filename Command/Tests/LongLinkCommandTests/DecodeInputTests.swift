// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkTestSupport
import Testing

@testable import LongLinkCommand

/// What `longlink decode` takes for input.
@Suite(.timeLimit(.minutes(15))) struct DecodeInputTests {
  private static let asked =
    ScriptedConnection.frame(kind: 0, tag: 7, serial: 50, body: Array("hello".utf8))
  private static let answered =
    ScriptedConnection.frame(kind: 1, tag: 200, serial: 50, body: Array("world".utf8))

  private static let capture: [UInt8] = {
    var capture = PacketCapture()
    for _ in 0..<2 { capture.add([(.client, asked), (.server, answered)]) }
    return capture.file
  }()

  private func temporary(_ bytes: [UInt8], _ name: String) throws -> URL {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "longlink \(UUID().uuidString) \(name)")
    try Data(bytes).write(to: file)
    return file
  }

  @Test(arguments: [
    ("pcap", [0xA1, 0xB2, 0xC3, 0xD4]), ("pcap", [0xD4, 0xC3, 0xB2, 0xA1]),
    ("pcap", [0xA1, 0xB2, 0x3C, 0x4D]), ("pcap", [0x4D, 0x3C, 0xB2, 0xA1]),
    ("pcapng", [0x0A, 0x0D, 0x0D, 0x0A]),
  ])
  func `a capture file is recognized by its first bytes`(
    format: String, magic: [UInt8]
  ) async throws {
    let decoded = try await Tool.run("decode", input: magic + [UInt8](repeating: 0, count: 40))
    #expect(decoded.code == 64)
    #expect(decoded.output.isEmpty)
    #expect(decoded.errors.contains("standard input is a capture file (\(format))"))
    #expect(decoded.errors.contains("tshark -r FILE -Y "))
  }

  @Test(.unless(Tshark.problem))
  func `the advised command decodes both directions of each connection`() async throws {
    let file = try temporary(DecodeInputTests.capture, "Ann's capture.pcap")
    defer { try? FileManager.default.removeItem(at: file) }
    let refused = try await Tool.run("decode", file.path)
    let command = try #require(
      refused.errors.split(separator: "\n").first { $0.hasPrefix("  tshark ") })
    // The program itself need not be where shells look.
    let script = String(command).replacing("| longlink ", with: "| '\(Tool.program.path)' ")
    let decoded = try await Tool(["-c", script], program: URL(fileURLWithPath: "/bin/sh")).finish()
    #expect(decoded.code == 0, "\(decoded.errors)")
    #expect(
      decoded.lines
        == (0..<2).flatMap { number in
          [
            "# connection \(number), port \(20_000 + number) > 9000, from the client",
            "00000000  request type=7 serial=50 body=5 68656c6c6f",
            "# connection \(number), port 9000 > \(20_000 + number), from the server",
            "00000000  response code=200 (OK) serial=50 body=5 776f726c64",
          ]
        })
  }

  @Test(.unless(Tshark.problem), arguments: [0, 4, 14, 16])
  func `packets that tshark prints in hexadecimal are joined`(header: Int) async throws {
    // The types of links with so many bytes in front of IP, and what these say of it.
    let links: [Int: (type: UInt32, header: [UInt8])] = [
      0: (101, []), 4: (0, [2, 0, 0, 0]), 14: (1, [UInt8](repeating: 0x45, count: 12) + [8, 0]),
      16: (113, [UInt8](repeating: 0, count: 14) + [8, 0]),
    ]
    let link = try #require(links[header])
    var capture = PacketCapture()
    capture.add([(.client, DecodeInputTests.asked), (.server, DecodeInputTests.answered)])
    let file = try temporary(capture.file(link: link.type, header: link.header), "capture.pcap")
    defer { try? FileManager.default.removeItem(at: file) }
    let script = "tshark -r '\(file.path)' -P -x | '\(Tool.program.path)' decode"
    let decoded = try await Tool(["-c", script], program: URL(fileURLWithPath: "/bin/sh")).finish()
    #expect(decoded.code == 0, "\(decoded.errors)")
    #expect(
      decoded.lines == [
        "# 127.0.0.1:20000 > 127.0.0.1:9000, from the client",
        "00000000  request type=7 serial=50 body=5 68656c6c6f",
        "# 127.0.0.1:9000 > 127.0.0.1:20000, from the server",
        "00000000  response code=200 (OK) serial=50 body=5 776f726c64",
      ])
  }

  @Test func `columns of tshark are joined by sender, without retransmissions`() throws {
    let text = """
      0\t40000\t9000\t100\t010203
      0\t9000\t40000\t7\t09
      0\t40000\t9000\t102\t03:04
      1\t40000\t9000\t102\t05
      0\t40000\t9000\t110\t08

      """
    let streams = try HexDump.streams(Array(text.utf8))
    #expect(
      streams == [
        HexDump.Stream(
          label: "connection 0, port 40000 > 9000", bytes: [1, 2, 3, 4, 8], gaps: [4]),
        HexDump.Stream(label: "connection 0, port 9000 > 40000", bytes: [9]),
        HexDump.Stream(label: "connection 1, port 40000 > 9000", bytes: [5]),
      ])
  }

  /// The bytes of one sender, from the first byte of its stream on, in the order of the capture.
  private func streams(
    _ pieces: [(offset: Int, bytes: [UInt8])], from start: UInt32
  ) throws -> [HexDump.Stream] {
    let text = pieces.map { piece in
      let sequence = start &+ UInt32(piece.offset)
      return "0\t40000\t9000\t\(sequence)\t\(piece.bytes.hex)\n"
    }.joined()
    return try HexDump.streams(Array(text.utf8))
  }

  /// Sequence numbers wrap within the stream in the second case.
  @Test(arguments: [1_000, UInt32.max - 4])
  func `reordered segments leave no gap`(start: UInt32) throws {
    let bytes = (0..<UInt8(12)).map { $0 }
    func piece(_ range: Range<Int>) -> (Int, [UInt8]) { (range.lowerBound, Array(bytes[range])) }
    let whole = HexDump.Stream(label: "connection 0, port 40000 > 9000", bytes: bytes)
    let captures: [[Range<Int>]] = [
      [0..<3, 6..<9, 9..<12, 3..<6],
      [3..<6, 0..<3, 9..<12, 6..<9],
      // Sent again with more, with less, and across the hole.
      [0..<3, 6..<9, 2..<7, 6..<9, 8..<12, 0..<12],
      [0..<12, 2..<4, 11..<12],
    ]
    for capture in captures {
      #expect(try streams(capture.map(piece), from: start) == [whole], "\(capture)")
    }
  }

  @Test func `only bytes that no segment carries are missing`() throws {
    let found = try streams([(0, [0, 1]), (8, [8]), (5, [5, 6]), (2, [2])], from: 7)
    #expect(found[0].bytes == [0, 1, 2, 5, 6, 8])
    #expect(found[0].gaps == [3, 5])
  }

  @Test func `a repeated SYN counts once, and another SYN ends the connection before it`() throws {
    func segment(_ sequence: UInt8, begins: Bool = false, _ payload: [UInt8]) throws -> TCPSegment {
      let ip: [UInt8] = [0x45, 0, 0, UInt8(40 + payload.count), 0, 0, 0, 0, 64, 6, 0, 0]
      let hosts: [UInt8] = [10, 0, 0, 1, 10, 0, 0, 2]
      let tcp: [UInt8] = [
        0, 5, 0, 9, 0, 0, 0, sequence, 0, 0, 0, 0, 0x50, begins ? 2 : 0x18, 0, 9, 0, 0, 0, 0,
      ]
      return try #require(TCPSegment(packet: ip + hosts + tcp + payload))
    }
    var streams = TCPStreams()
    streams.add(try segment(99, begins: true, []))
    streams.add(try segment(102, [3, 4]))
    // The answer to it was lost; the next one is a probe of an idle connection.
    streams.add(try segment(99, begins: true, []))
    streams.add(try segment(99, [0]))
    streams.add(try segment(100, [1, 2]))
    streams.add(try segment(9, begins: true, []))
    streams.add(try segment(11, [8]))
    let label = "10.0.0.1:5 > 10.0.0.2:9"
    #expect(
      try streams.joined() == [
        HexDump.Stream(label: label, bytes: [1, 2, 3, 4]),
        HexDump.Stream(label: label, bytes: [8], gaps: [0]),
      ])
  }

  @Test(arguments: ["", "\n \n", "12:00:00.0 IP a > b: Flags [S]\n\t0x0000:  4500 0014\n"])
  func `an input without a byte to decode is an error`(text: String) async throws {
    let decoded = try await Tool.run("decode", input: Array(text.utf8))
    #expect(decoded.code == 64)
    #expect(decoded.output.isEmpty)
    #expect(decoded.errors.hasPrefix("longlink: standard input"), "\(decoded.errors)")
  }
}
