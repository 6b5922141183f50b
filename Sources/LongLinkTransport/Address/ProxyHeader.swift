// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Reads the header of the PROXY protocol, version 2, in whatever pieces it comes.
///
/// It never asks for a byte after the header: those belong to the connection. See
/// https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2.
package struct ProxyHeader: Equatable, Sendable {
  /// What a complete header says.
  package enum Source: Equatable, Sendable {
    /// The connection is the proxy's own, such as a check of its health, or the proxy does not know
    /// the client's address.
    case proxy
    /// The proxy carries the connection of this client.
    case client(SocketAddress)
  }

  /// Why bytes are not a header that is understood.
  package enum Failure: String, Error, Equatable, Sendable {
    case notAHeader = "the connection does not begin with a header of the PROXY protocol"
    case textHeader = "the header has the text form of version 1; send version 2"
    case version = "the header has another version than 2"
    case command = "the header's command is neither LOCAL nor PROXY"
    case family = "the header's address family is unknown, or not of a transport"
    case tooLong = "the header has more than 536 bytes"
    case tooShort = "the header is shorter than its addresses"
  }

  /// The maximum length of a header in bytes, with everything after the addresses: what a sender
  /// can expect to reach the receiver in one packet.
  package static let longest = 536
  private static let signature: [UInt8] = [
    0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
  ]
  /// The length of signature, version and command, family, and length field, in bytes.
  private static let fixed = 16

  private var bytes: [UInt8] = []
  private var length = ProxyHeader.fixed

  package init() {}

  /// Whether nothing has come yet.
  package var isEmpty: Bool { bytes.isEmpty }

  /// The number of bytes that are still missing, as far as it is known: the next read may take as
  /// many and no more. 0 when the header is complete.
  package var missing: Int { length - bytes.count }

  /// Takes the next bytes, at most `missing`, and returns what the header says once it is complete.
  /// Throws as soon as the bytes cannot become a header; take no more then.
  package mutating func take(_ more: RawSpan) throws(Failure) -> Source? {
    precondition(more.byteCount <= missing, "bytes after the header are not its own")
    let hadFixed = bytes.count >= ProxyHeader.fixed
    bytes.append(contentsOf: [UInt8](decoding: more))
    if !hadFixed { try readFixed() }
    return missing == 0 ? try source() : nil
  }

  private mutating func readFixed() throws(Failure) {
    guard ProxyHeader.signature.starts(with: bytes.prefix(12)) else {
      let text = "PROXY ".utf8
      if bytes.starts(with: text) { throw .textHeader }
      // With more bytes it is either `textHeader` or `notAHeader`.
      guard text.starts(with: bytes) else { throw .notAHeader }
      return
    }
    if bytes.count > 12 {
      guard bytes[12] >> 4 == 2 else { throw .version }
      guard bytes[12] & 0xF <= 1 else { throw .command }
    }
    if bytes.count > 13 {
      // Unspecified, TCP over IPv4 or over IPv6, or a Unix-domain stream.
      guard [0x00, 0x11, 0x21, 0x31].contains(bytes[13]) || isLocal else { throw .family }
    }
    guard bytes.count == ProxyHeader.fixed else { return }
    let rest = Int(bytes[14]) << 8 | Int(bytes[15])
    guard ProxyHeader.fixed + rest <= ProxyHeader.longest else { throw .tooLong }
    guard rest >= addressLength else { throw .tooShort }
    length = ProxyHeader.fixed + rest
  }

  private var isLocal: Bool { bytes[12] & 0xF == 0 }

  /// The length of both addresses and ports, in bytes.
  private var addressLength: Int {
    if isLocal { return 0 }
    return switch bytes[13] {
    case 0x11: 12
    case 0x21: 36
    case 0x31: 216
    default: 0
    }
  }

  private func source() throws(Failure) -> Source {
    if isLocal { return .proxy }
    switch bytes[13] {
    case 0x11:
      let address = SocketAddress.Storage.ipv4(
        UInt32(truncatingIfNeeded: number(16, 4)), port: UInt16(truncatingIfNeeded: number(24, 2)))
      return .client(SocketAddress(address))
    case 0x21:
      let (upper, lower) = (number(16, 8), number(24, 8))
      let port = UInt16(truncatingIfNeeded: number(48, 2))
      // An IPv4-mapped address becomes IPv4, as on a connection over IPv4.
      if upper == 0, lower >> 32 == 0xFFFF {
        return .client(SocketAddress(.ipv4(UInt32(truncatingIfNeeded: lower), port: port)))
      }
      return .client(SocketAddress(.ipv6(upper: upper, lower: lower, port: port, scope: 0)))
    default:
      // A Unix socket of the proxy's machine, or an address that the proxy does not know.
      return .proxy
    }
  }

  private func number(_ start: Int, _ count: Int) -> UInt64 {
    bytes[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
  }
}
