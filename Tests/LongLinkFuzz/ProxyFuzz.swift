// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import LongLinkTransport

/// The header of the PROXY protocol, and ranges of addresses.
enum ProxyFuzz {
  /// The first byte says how the rest is cut.
  static func run(_ bytes: [UInt8]) throws {
    guard let cut = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let whole = try outcome(of: stream, in: .max)
    try expect(try outcome(of: stream, in: 1) == whole, "byte by byte, the header differs")
    try expect(
      try outcome(of: stream, in: Int(cut % 40) + 1) == whole, "in parts, the header differs")
    if case .source(let source, let taken) = whole {
      try expect(taken <= ProxyHeader.longest, "a header is too long")
      // What follows the header does not matter.
      try expect(
        try outcome(of: Array(stream.prefix(taken)), in: .max) == .source(source, taken),
        "the header needs bytes behind it")
    }
    try runRange(stream)
  }

  private enum Outcome: Equatable {
    case source(ProxyHeader.Source, Int)
    case failure(ProxyHeader.Failure)
    case incomplete
  }

  private static func outcome(of stream: [UInt8], in parts: Int) throws -> Outcome {
    var (header, taken) = (ProxyHeader(), 0)
    while taken < stream.count {
      try expect(
        (1...ProxyHeader.longest).contains(header.missing), "an unfinished header lacks no byte")
      let part = Array(stream[taken...].prefix(min(parts, header.missing)))
      taken += part.count
      do throws(ProxyHeader.Failure) {
        if let source = try unsafe header.take(part.span.bytes) { return .source(source, taken) }
      } catch {
        return .failure(error)
      }
    }
    return .incomplete
  }

  /// Whatever is accepted as a range is the same after it was written and read again.
  private static func runRange(_ bytes: [UInt8]) throws {
    guard let range = AddressRange(String(decoding: bytes, as: UTF8.self)) else { return }
    try expect(AddressRange("\(range)") == range, "a range has changed on its way through text")
    let network = "\(range)".split(separator: "/")[0]
    guard let address = SocketAddress(literal: String(network), port: 0) else {
      throw FuzzFailure("a range has no address")
    }
    try expect(range.contains(address), "a range does not contain its own address")
  }

  static let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

  static var seeds: [[UInt8]] {
    let ipv4: [UInt8] = [203, 0, 113, 7, 10, 0, 0, 1, 0xC3, 0x50, 0x23, 0x28]
    let ipv6 = [UInt8](repeating: 0, count: 10) + [255, 255] + ipv4 + [UInt8](1...12)
    return [
      signature + [0x21, 0x11, 0, 12] + ipv4,
      signature + [0x21, 0x11, 0, 19] + ipv4 + [4, 0, 4, 1, 2, 3, 4],
      signature + [0x21, 0x21, 0, 36] + ipv6,
      signature + [0x21, 0x31, 0, 216] + [UInt8](repeating: 0x2F, count: 216),
      signature + [0x20, 0, 0, 0], signature + [0x20, 0x11, 0, 12] + ipv4,
      Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8), Array("10.0.0.0/8".utf8),
      Array("::ffff:10.0.0.0/104".utf8), Array("2001:db8::/32".utf8),
    ].map { [7] + $0 + Array("frames".utf8).prefix($0.count > 20 ? 6 : 0) }
  }
}
