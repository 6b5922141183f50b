// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport

/// An address, or a network of addresses in CIDR notation.
struct AddressRange: Sendable {
  private let network: SocketAddress.Storage
  private let bits: Int

  /// Reads `10.1.2.3`, `10.0.0.0/8`, `::1` or `fd00::/8`; nil for anything else.
  init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = SocketAddress(literal: String(parts[0]), port: 0) else { return nil }
    let width = address.family == .ipv4 ? 32 : 128
    guard parts.count == 2 else {
      (network, bits) = (address.storage, width)
      return
    }
    guard let bits = Int(parts[1]), (0...width).contains(bits) else { return nil }
    (network, self.bits) = (address.storage, bits)
  }

  /// Whether an address is in the range, whatever its port. An IPv4 address may be written as IPv6.
  func contains(_ address: SocketAddress) -> Bool {
    switch (network, address.storage) {
    case (.ipv4(let network, _), .ipv4(let address, _)):
      Self.agree(UInt64(network), UInt64(address), width: 32, bits: bits)
    case (.ipv4(let network, _), .ipv6(0, let lower, _, _)) where lower >> 32 == 0xFFFF:
      Self.agree(UInt64(network), lower & 0xFFFF_FFFF, width: 32, bits: bits)
    case (.ipv6(let upper, let lower, _, _), .ipv6(let otherUpper, let otherLower, _, _)):
      Self.agree(upper, otherUpper, width: 64, bits: min(bits, 64))
        && Self.agree(lower, otherLower, width: 64, bits: max(bits - 64, 0))
    default:
      false
    }
  }

  private static func agree(_ one: UInt64, _ other: UInt64, width: Int, bits: Int) -> Bool {
    bits == 0 || (one ^ other) >> UInt64(width - bits) == 0
  }
}
#endif
