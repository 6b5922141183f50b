// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

/// What `Protocols/dialects.md` shows is what the library does.
@Suite struct DialectPageTests {
  private func page() throws -> String {
    let file = Vector.directory.deletingLastPathComponent().appending(path: "dialects.md")
    return try String(contentsOf: file, encoding: .utf8)
  }

  /// The code blocks of a language.
  private func blocks(_ language: String) throws -> [Substring] {
    try page().split(separator: "\n```\(language)\n").dropFirst()
      .compactMap { $0.split(separator: "\n```\n").first }
  }

  @Test func `the description in JSON is the one in Swift`() throws {
    let front: [FrameLayout.Field] = [.constant(2, 0xC0DE).named("magic"), .type(2), .serial(4)]
    let sum: [FrameLayout.Field] = [.checksum(4, .crc32, over: .headerAndBody)]
    let layout = try FrameLayout(
      byteOrder: .little,
      request: FrameLayout.Shape(header: front + [.length(4)], trailer: sum),
      response: FrameLayout.Shape(header: front + [.code(2), .length(4)], trailer: sum))
    let parcels = try FrameDialect(
      name: "parcels",
      layout: layout,
      serials: FrameDialect.Serials(client: 1...0x7FFF_FFFF),
      heartbeat: FrameDialect.HeartbeatFrames(client: FrameDialect.Ping(type: 0, serials: 0...0)),
      pushes: FrameDialect.Pushes(fromServer: [0xF000...0xF0FF]),
      codes: FrameDialect.Codes(
        success: [0], failure: 1,
        errors: [DialectErrorCode(4, "noSuchType", native: .unknownType)]),
      maximumBody: 1 << 20)
    let text = try #require(try blocks("json").first)
    #expect(try JSONDecoder().decode(FrameDialect.self, from: Data(text.utf8)) == parcels)
  }

  @Test func `the diagrams are those of the dialects`() throws {
    let text = try page()
    #expect(text.contains("\n```\n\(try FrameDialect.guarded().layout.diagram)```\n"))
    #expect(text.contains("\n```\n\(FrameDialect.bare.layout.diagram)```\n"))
  }

  @Test func `the table of codes is the library's`() throws {
    let text = try page()
    for entry in try #require(FrameDialect.bare.codes).errors {
      let native = try #require(entry.native ?? ResponseCode(rawValue: entry.code))
      #expect(text.contains("| \(entry.code) | \(entry.name) | \(entry.text) | \(native) |"))
    }
  }
}
