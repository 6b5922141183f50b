// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import Testing

/// What `longlink decode` prints of a recording.
@Suite(.timeLimit(.minutes(15))) struct RecordedDecodeTests {
  private static let request = ScriptedConnection.frame(
    kind: 0x80, tag: 7, serial: 50, body: [0, 3, 8, 0xDC, 0x0B] + Array("hello".utf8))
  private static let response = ScriptedConnection.frame(
    kind: 1, tag: 200, serial: 50, body: Array("hello".utf8))

  private static func exchange(bodies: Bool) -> MadeRecording {
    var recording = MadeRecording(bodies: bodies)
    recording.begin()
    recording.moved(request, received: true)
    recording.moved(response, received: false)
    return recording
  }

  @Test func `frames are printed by connection and direction, and bodies may be left out`()
    async throws
  {
    let decoded = try await Tool.run("decode", input: Self.exchange(bodies: false).file)
    #expect(
      decoded.lines == [
        "# connection 1, received from 10.0.0.1:5000, from the client",
        "00000000  request type=7 serial=50 metadata=3 body=5 (left out)",
        "# connection 1, sent, from the server",
        "00000000  response code=200 (OK) serial=50 body=5 (left out)",
      ])
    #expect(decoded.code == 0 && decoded.errors.isEmpty)
    let json = try await Tool.run("decode", "--json", input: Self.exchange(bodies: false).file)
    #expect(json.lines.count == 2 && json.lines.allSatisfy { $0.contains(#""body":null"#) })
    #expect(json.lines[0].contains(#""metadata":"CNwL""#), "\(json.text)")
  }

  @Test func `bodies that were recorded are shown, and their checksums are checked`()
    async throws
  {
    let good = try await Tool.run("decode", "-v", input: Self.exchange(bodies: true).file)
    #expect(good.code == 0 && good.text.contains("(right)") && good.text.contains("hello"))
    var recording = MadeRecording(bodies: true)
    recording.begin()
    var damaged = Self.response
    damaged[18] ^= 1
    recording.moved(damaged, received: false)
    let bad = try await Tool.run("decode", input: recording.file)
    #expect(bad.code == 6)
    #expect(
      bad.lines.last
        == "00000000  error: checksumMismatch in response code=200 (OK) serial=50")
  }

  @Test func `the verdict of the recorded side is damage`() async throws {
    var recording = MadeRecording()
    recording.begin()
    let cancel = ScriptedConnection.frame(kind: 4, tag: 0, serial: 50)
    recording.moved(Self.request + cancel, received: true)
    recording.breaks(.checksumMismatch, after: 1)
    let decoded = try await Tool.run("decode", input: recording.file)
    #expect(decoded.code == 6)
    #expect(decoded.lines.last == "0000001a  error: checksumMismatch in cancel serial=50")
    var other = MadeRecording()
    other.begin()
    other.moved(Self.request, received: true)
    other.breaks(.frameTimeout, after: 1)
    let late = try await Tool.run("decode", input: other.file)
    #expect(late.code == 6 && late.lines.last == "0000001a  error: frameTimeout")
  }

  @Test func `a broken rule is damage, and so is a file that is cut off within a block`()
    async throws
  {
    var recording = MadeRecording()
    recording.begin()
    recording.moved(ScriptedConnection.frame(kind: 11, tag: 0, serial: 3), received: true)
    let broken = try await Tool.run("decode", input: recording.file)
    #expect(broken.code == 6 && broken.text.contains("error: unexpectedWelcome"))
    let whole = Self.exchange(bodies: false).file
    let cut = try await Tool.run("decode", input: Array(whole.dropLast(5)))
    #expect(cut.code == 6 && cut.errors.contains("standard input: the file is cut off, at byte"))
    #expect(cut.lines.count == 2)
    // The last block is the packet of the response.
    let size = whole.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    let shorter = try await Tool.run("decode", input: Array(whole.dropLast(size)))
    #expect(shorter.code == 0 && shorter.lines.count == 2 && shorter.errors.isEmpty)
  }

  @Test func `a capture gets the advice, and a recording has no layout`() async throws {
    // A section and an interface of Ethernet.
    let capture = Self.exchange(bodies: false).file.prefix(44)
    let section = Array(capture.prefix(Int(capture[4])))
    let interface: [UInt8] = [1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0]
    let advice = try await Tool.run("decode", input: section + interface)
    #expect(advice.code == 64 && advice.errors.contains("is a capture file (pcapng)"))
    let layout = try await Tool.run(
      "decode", "--layout", VectorStream.layout("small").path,
      input: Self.exchange(bodies: false).file)
    #expect(layout.code == 64 && layout.errors.contains("not for recordings"))
  }

  @Test func `what peers say reaches no terminal raw`() async throws {
    var recording = MadeRecording()
    recording.begin(peer: "\u{1B}[2Jx")
    recording.moved(Self.request, received: true)
    for command in ["decode", "replay"] {
      let end = try await Tool(
        command == "decode" ? ["decode"] : ["replay", "-"], input: recording.file
      ).finish()
      #expect(!end.output.contains(0x1B) && end.text.contains(#"\u{1B}[2Jx"#), "\(end.text)")
    }
  }
}
