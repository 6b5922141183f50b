// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTransport

/// The header of the PROXY protocol, byte by byte.
@Suite struct ProxyHeaderTests {
  private static let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

  /// A header with its length.
  private static func header(
    _ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil
  ) -> [UInt8] {
    let length = length ?? rest.count
    return signature + [command, family, UInt8(length >> 8), UInt8(length & 255)] + rest
  }

  private static let ipv4: [UInt8] = [203, 0, 113, 7, 10, 0, 0, 1, 0xC3, 0x50, 0x23, 0x28]
  private static let ipv6: [UInt8] =
    [0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]
    + [UInt8](repeating: 0, count: 15) + [1, 0xC3, 0x50, 0x23, 0x28]

  /// Reads bytes in pieces of a size, and returns what they say, and how many were taken.
  private static func read(
    _ bytes: [UInt8], pieces: Int = .max
  ) throws(ProxyHeader.Failure) -> (source: ProxyHeader.Source?, taken: Int) {
    var (header, taken) = (ProxyHeader(), 0)
    while taken < bytes.count, header.missing > 0 {
      let piece = Array(bytes[taken...].prefix(min(header.missing, pieces)))
      taken += piece.count
      if let source = try unsafe header.take(piece.span.bytes) { return (source, taken) }
    }
    return (nil, taken)
  }

  private static let valid: [([UInt8], ProxyHeader.Source)] = [
    (header(0x21, 0x11, ipv4), .client(.ipv4(203, 0, 113, 7, port: 50_000))),
    (header(0x21, 0x21, ipv6), .client(SocketAddress(literal: "2001:db8::9", port: 50_000)!)),
    // TLVs follow the addresses.
    (
      header(0x21, 0x11, ipv4 + [4, 0, 3, 1, 2, 3]), .client(.ipv4(203, 0, 113, 7, port: 50_000))
    ),
    (
      header(0x21, 0x11, ipv4 + [UInt8](repeating: 9, count: 508)),
      .client(.ipv4(203, 0, 113, 7, port: 50_000))
    ),
    // IPv4 in IPv6.
    (
      header(
        0x21, 0x21,
        [UInt8](repeating: 0, count: 10) + [255, 255, 203, 0, 113, 7]
          + [UInt8](repeating: 0, count: 16) + [0, 80, 0, 81]),
      .client(.ipv4(203, 0, 113, 7, port: 80))
    ),
    (header(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)), .proxy),
    (header(0x21, 0x00, []), .proxy), (header(0x21, 0x00, [1, 2, 3]), .proxy),
    // The addresses of a check by the proxy itself do not matter.
    (header(0x20, 0x00, []), .proxy), (header(0x20, 0x11, ipv4), .proxy),
    (header(0x20, 0x11, [1]), .proxy), (header(0x20, 0x55, [1]), .proxy),
  ]

  @Test func `a header says whose connection it is, wherever it is cut, and takes no byte more`()
    throws
  {
    for (bytes, source) in Self.valid {
      for pieces in [1, 2, 3, 7, 12, 15, 16, 17, .max] {
        let (found, taken) = try Self.read(bytes + Array("frames".utf8), pieces: pieces)
        #expect(found == source)
        #expect(taken == bytes.count)
      }
      for length in 0..<bytes.count {
        #expect(try Self.read(Array(bytes.prefix(length))).source == nil, "\(length)")
      }
    }
  }

  @Test(arguments: [
    (Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8), ProxyHeader.Failure.textHeader),
    (Array("PROXYTCP4 1.2.3.4 5.6.7.8".utf8), .notAHeader),
    ([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, 0, 0, 0, 0, 0], .notAHeader),
    (Array("\r\n\r\n\0\r\nQUIT\r12345".utf8), .notAHeader),
    (header(0x11, 0x11, ipv4), .version), (header(0x31, 0x11, ipv4), .version),
    (header(0x22, 0x11, ipv4), .command), (header(0x2F, 0x11, ipv4), .command),
    // Datagrams, and what has no meaning.
    (header(0x21, 0x12, ipv4), .family), (header(0x21, 0x22, ipv6), .family),
    (header(0x21, 0x10, ipv4), .family), (header(0x21, 0x41, ipv4), .family),
    (header(0x21, 0xFF, ipv4), .family), (header(0x21, 0x01, ipv4), .family),
    (header(0x21, 0x11, ipv4, length: 11), .tooShort),
    (header(0x21, 0x21, ipv6, length: 35), .tooShort),
    (header(0x21, 0x31, ipv6, length: 215), .tooShort),
    (header(0x21, 0x11, [], length: 0), .tooShort),
    (header(0x21, 0x11, ipv4, length: 521), .tooLong),
    (header(0x20, 0x00, [], length: 65_535), .tooLong),
  ])
  func `what is no header is refused, wherever it is cut, before its addresses`(
    _ bytes: [UInt8], _ failure: ProxyHeader.Failure
  ) {
    for pieces in [1, 2, 5, 16, Int.max] {
      #expect(throws: failure) { try Self.read(bytes, pieces: pieces) }
    }
  }

  @Test func `a connection that is no proxy's is refused at its first byte`() {
    #expect(throws: ProxyHeader.Failure.notAHeader) { try Self.read([0x16]) }
    #expect(throws: ProxyHeader.Failure.notAHeader) { try Self.read([0x0A, 0, 0, 0]) }
  }

  @Test func `every byte of the signature matters`() {
    let good = Self.header(0x21, 0x11, Self.ipv4)
    for place in 0..<12 {
      var bytes = good
      bytes[place] ^= 0x40
      #expect(throws: ProxyHeader.Failure.notAHeader) { try Self.read(bytes, pieces: 1) }
    }
  }
}
