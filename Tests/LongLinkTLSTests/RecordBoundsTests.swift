// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTLS

/// What is read of the headers of a stranger's records, byte by byte.
@Suite struct RecordBoundsTests {
  private static func record(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
    [kind, 3, 3, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
  }

  /// The header of a handshake's message, with a body of this many bytes.
  private static func header(_ kind: UInt8, _ length: Int) -> [UInt8] {
    [kind, UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
  }

  private static func length(_ bytes: [UInt8]) -> Int { RecordBounds.length(of: bytes.span) }

  // MARK: Lengths

  @Test(arguments: [20, 21, 22, 23] as [UInt8])
  func `a record is whole with its last byte`(kind: UInt8) {
    let record = Self.record(kind, [UInt8](repeating: 7, count: 300))
    for count in 0..<record.count { #expect(Self.length(Array(record[..<count])) == 0) }
    #expect(Self.length(record) == 305 && Self.length(record + record) == 305)
    #expect(Self.length(Self.record(kind, [])) == 5)
  }

  @Test func `what can be no record is passed on as a whole`() {
    for kind in [0, 19, 24, 255] as [UInt8] {
      #expect(Self.length([kind]) == 1 && Self.length([kind, 3, 3, 0, 1, 0, 9]) == 7)
    }
    // Another version than those of TLS is found as soon as its byte is there.
    #expect(Self.length([22]) == 0 && Self.length([22, 3]) == 0)
    #expect(Self.length([22, 2]) == 2 && Self.length([22, 4, 0, 0, 1, 0, 9]) == 7)
  }

  @Test func `no record is larger than one with all that encryption may add`() {
    let largest: [UInt8] = [23, 3, 3, 0x48, 0x00]
    #expect(Self.length(largest) == 0)
    #expect(Self.length(largest + [UInt8](repeating: 0, count: 18_432)) == 18_437)
    #expect(Self.length([23, 3, 3, 0x48, 0x01]) == 5, "it need not come to be refused")
  }

  // MARK: First bytes

  @Test func `a peer begins with a handshake, and a server also with an alert`() {
    func isPlain(_ bytes: [UInt8], fromClient: Bool) -> Bool {
      RecordBounds.isPlain(bytes.span, fromClient: fromClient)
    }
    for fromClient in [false, true] {
      #expect(!isPlain([], fromClient: fromClient) && !isPlain([22], fromClient: fromClient))
      #expect(!isPlain([22, 3, 9], fromClient: fromClient))
      #expect(isPlain([22, 2], fromClient: fromClient) && isPlain([20], fromClient: fromClient))
      #expect(isPlain([23, 3], fromClient: fromClient) && isPlain([0], fromClient: fromClient))
      #expect(isPlain([21], fromClient: fromClient) == fromClient)
      #expect(isPlain([21, 3], fromClient: fromClient) == fromClient)
    }
    #expect(isPlain([21, 1], fromClient: false))
  }

  // MARK: Hellos

  private static let largest = 16_384 + 8_192

  /// Whether one of some records announces a large hello.
  private static func refuses(_ records: [[UInt8]], isOld: Bool = false) -> Bool {
    var bounds = RecordBounds()
    return records.contains { bounds.announcesLargeHello($0.span, isOld: isOld) }
  }

  @Test func `a hello is as large as it says`() {
    #expect(!Self.refuses([Self.record(22, Self.header(1, Self.largest))]))
    #expect(Self.refuses([Self.record(22, Self.header(1, Self.largest + 1))]))
    #expect(Self.refuses([Self.record(22, Self.header(1, 0xFF_FFFF))]))
    // Another message may be larger: it is bounded elsewhere.
    #expect(!Self.refuses([Self.record(22, Self.header(11, 0xFF_FFFF))]))
    // Of another kind, the bytes are no message.
    #expect(!Self.refuses([Self.record(23, Self.header(1, 0xFF_FFFF))]))
  }

  @Test func `a header may begin in one record and end in another, behind other messages`() {
    let body = [UInt8](repeating: 1, count: 300)
    let bytes = Self.header(1, 300) + body + Self.header(2, 0) + Self.header(1, 0x01_0000)
    for size in 1...bytes.count {
      let pieces = stride(from: 0, to: bytes.count, by: size).map {
        Self.record(22, Array(bytes[$0..<min($0 + size, bytes.count)]))
      }
      #expect(Self.refuses(pieces), "in pieces of \(size)")
      #expect(!Self.refuses(pieces.dropLast()) || size == bytes.count, "in pieces of \(size)")
    }
    // The same bytes are harmless within a body.
    #expect(!Self.refuses([Self.record(22, Self.header(1, 1_000)), Self.record(22, bytes)]))
  }

  @Test func `what a client of TLS 1.2 encrypts is no message`() {
    let change = Self.record(20, [1])
    let hello = Self.record(22, Self.header(1, 0xFF_FFFF))
    #expect(!Self.refuses([change, hello], isOld: true))
    #expect(Self.refuses([change, hello], isOld: false))
  }

  @Test func `bytes that are no record announce nothing`() {
    #expect(!Self.refuses([[22], [22, 2], [22, 2, 1, 1]]))
  }
}
