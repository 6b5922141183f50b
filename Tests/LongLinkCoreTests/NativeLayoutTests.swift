// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct NativeLayoutTests {
  private func sealed(_ head: FrameHead, _ body: [UInt8]) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: NativeLayout.headerLength) + body
    unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe NativeLayout.seal(head, at: buffer.baseAddress!)
    }
    return bytes
  }

  private func head(_ bytes: [UInt8]) throws(Violation) -> FrameHead {
    let result = unsafe bytes.withUnsafeBytes { buffer in
      Result { () throws(Violation) in
        try unsafe NativeLayout.head(at: buffer.baseAddress!)
      }
    }
    return try result.get()
  }

  private func isIntact(_ bytes: [UInt8]) -> Bool {
    unsafe bytes.withUnsafeBytes { buffer in
      unsafe NativeLayout.isIntact(at: buffer.baseAddress!, length: bytes.count - 16)
    }
  }

  @Test func `the bytes of a frame are those of the examples`() {
    let hello: [UInt8] = [0x68, 0x65, 0x6C, 0x6C, 0x6F]
    #expect(
      sealed(FrameHead(.request, tag: 1, serial: 50, length: 5), hello) == [
        0, 0, 0, 1, 0, 0, 0, 0x32, 0, 0, 0, 5, 0x08, 0x58, 0x02, 0x4D,
      ] + hello)
    #expect(
      sealed(
        FrameHead(.request, flags: [.metadata, .more], tag: 0xFF_FFFF, serial: .max, length: 0), []
      ).prefix(12) == [0xC0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])
    #expect(
      sealed(FrameHead(.goaway, flags: .more, serial: 4, length: 1), [0]).prefix(4) == [
        0x4C, 0, 0, 0,
      ])
    #expect(
      sealed(FrameHead(.ping, flags: .metadata, length: 0), []).prefix(4) == [0x88, 0, 0, 0])
  }

  @Test(arguments: 0..<200)
  func `what is written is read`(seed: Int) throws {
    var dice = Seeded(UInt64(seed))
    let kind = FrameKind.allCases[dice.below(FrameKind.allCases.count)]
    let body = dice.bytes(dice.below(300))
    let written = FrameHead(
      kind, flags: FrameFlags(rawValue: UInt8(dice.below(4))), tag: UInt32(dice.below(1 << 24)),
      serial: UInt32(truncatingIfNeeded: dice.next()), length: body.count)
    let bytes = sealed(written, body)
    #expect(try head(bytes) == written)
    #expect(isIntact(bytes))
    let raw = RawFrame(
      kind, flags: written.flags, tag: written.tag, serial: written.serial, body: body)
    #expect(bytes == raw.bytes)
    // A flipped bit anywhere is found.
    var damaged = bytes
    damaged[dice.below(damaged.count)] ^= UInt8(1 << dice.below(8))
    #expect(!isIntact(damaged) || RawFrame.number(damaged[8..<12]) != UInt32(body.count))
  }

  @Test func `each of the 64 kinds is known, ignored or neither`() {
    for value: UInt8 in 0..<64 {
      let bytes = RawFrame(wire: value, serial: 7).bytes
      let kind = FrameKind(wire: value)
      switch value {
      case 0...0x0C: #expect(kind?.rawValue == value)
      case 0x30...0x3F: #expect(kind == .ignorable)
      default:
        #expect(kind == nil)
        #expect(throws: Violation(.unknownKind, kind: value, serial: 7)) { try head(bytes) }
        continue
      }
      #expect((try? head(bytes))?.kind == kind)
    }
  }

  @Test func `a length of any size is read without a trap`() throws {
    let bytes = RawFrame(.request, serial: 50).headerBytes(length: .max)
    #expect(try head(bytes).length == 4_294_967_295)
  }

  @Test func `a serial shows which side made the request`() {
    #expect(Role.client.owns(50) && Role.client.owns(0x7FFF_FFFF))
    #expect(!Role.client.owns(49) && !Role.client.owns(0x8000_0032) && !Role.client.owns(0))
    #expect(Role.server.owns(0x8000_0032) && Role.server.owns(.max))
    #expect(!Role.server.owns(0x8000_0031) && !Role.server.owns(50))
  }

  @Test func `every violation describes what is known of it`() {
    func text(
      _ rule: Violation.Rule, _ kind: UInt8? = nil, _ serial: UInt32? = nil,
      _ value: UInt64? = nil, expected: UInt64? = nil
    ) -> String {
      Violation(rule, kind: kind, serial: serial, value: value, expected: expected).description
    }
    #expect(
      text(.lengthOverLimit, 0x0C, 4, 70_000)
        == "lengthOverLimit: goaway with serial 4 has 70000 bytes")
    #expect(text(.truncatedFrame) == "truncatedFrame")
    #expect(
      text(.typeNotAllowed, 1, 7, 6, expected: 5)
        == "typeNotAllowed: response to request 7 has type 6, not 5")
    #expect(text(.checksumMismatch, 0, 7) == "checksumMismatch: request 7")
    #expect(text(.serialInUse, 0, 7) == "serialInUse: request 7")
    #expect(
      text(.serialOutOfRange, 0, nil, 1 << 40)
        == "serialOutOfRange: request with serial 1099511627776")
    #expect(text(.unknownKind, 0x2F, 7) == "unknownKind: frame of kind 0x2f with serial 7")
    #expect(
      text(.fieldMismatch, nil, 7, 10, expected: 76)
        == "fieldMismatch: frame with serial 7 has 0xa, not 0x4c")
    #expect(
      text(.fieldMismatch, nil, nil, 10, expected: 76) == "fieldMismatch: frame has 0xa, not 0x4c")
  }
}
