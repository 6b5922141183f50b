// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

/// An IP address, or a network of IP addresses in CIDR notation (RFC 4632).
///
/// An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is the same as the IPv4 address.
public struct AddressRange: Hashable, Sendable {
  private enum Network: Hashable, Sendable {
    case ipv4(UInt32)
    case ipv6(upper: UInt64, lower: UInt64)
  }

  /// The network's address, in which the bits after the first `bits` are 0.
  private let network: Network
  private let bits: Int

  /// Makes a range from a text such as `10.1.2.3`, `10.0.0.0/8`, `::1` or `fd00::/8`; nil for any
  /// other text, such as a name or an address with a zone. Nothing is looked up.
  ///
  /// Bits after the prefix are ignored: `10.1.2.3/8` is `10.0.0.0/8`.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    // A zone has a meaning on one machine only, and would be looked up.
    guard !text.contains("%"), let address = SocketAddress(literal: String(parts[0]), port: 0)
    else { return nil }
    let width = address.family == .ipv4 ? 32 : 128
    var bits = width
    if parts.count == 2 {
      guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Int(parts[1]), (0...width).contains(number)
      else { return nil }
      bits = number
    }
    switch address.storage {
    case .ipv4(let address, _):
      self.init(ipv4: address, bits: bits)
    case .ipv6(0, let lower, _, _) where lower >> 32 == 0xFFFF && bits >= 96:
      self.init(ipv4: UInt32(truncatingIfNeeded: lower), bits: bits - 96)
    case .ipv6(let upper, let lower, _, _):
      let network = Network.ipv6(
        upper: upper & Self.mask(min(bits, 64), of: 64),
        lower: lower & Self.mask(max(bits - 64, 0), of: 64))
      self.init(network, bits: bits)
    case .unix:
      return nil
    }
  }

  private init(ipv4 address: UInt32, bits: Int) {
    self.init(.ipv4(address & UInt32(truncatingIfNeeded: Self.mask(bits, of: 32))), bits: bits)
  }

  private init(_ network: Network, bits: Int) {
    self.network = network
    self.bits = bits
  }

  /// Whether an address is in the range, whatever its port. A Unix-domain address never is.
  public func contains(_ address: SocketAddress) -> Bool {
    switch (network, address.storage) {
    case (.ipv4(let network), .ipv4(let address, _)):
      return contains(address, in: network)
    case (.ipv4(let network), .ipv6(0, let lower, _, _)) where lower >> 32 == 0xFFFF:
      return contains(UInt32(truncatingIfNeeded: lower), in: network)
    case (.ipv6(let upper, let lower), .ipv6(let otherUpper, let otherLower, _, _)):
      return otherUpper & Self.mask(min(bits, 64), of: 64) == upper
        && otherLower & Self.mask(max(bits - 64, 0), of: 64) == lower
    case (.ipv6(let upper, let lower), .ipv4(let address, _)):
      // An IPv4 address is only in an IPv6 network that contains all of `::ffff:0:0/96`.
      let mapped = 0xFFFF_0000_0000 | UInt64(address)
      return upper == 0 && mapped & Self.mask(max(bits - 64, 0), of: 64) == lower
    case (_, .ipv6), (_, .unix):
      return false
    }
  }

  private func contains(_ address: UInt32, in network: UInt32) -> Bool {
    UInt64(address) & Self.mask(bits, of: 32) == UInt64(network)
  }

  /// A mask of the first `bits` bits of a number that has `width` bits.
  private static func mask(_ bits: Int, of width: Int) -> UInt64 {
    let all = width == 64 ? UInt64.max : 1 << UInt64(width) - 1
    return bits == 0 ? 0 : all & (all << UInt64(width - bits))
  }
}

extension AddressRange: CustomStringConvertible {
  /// The range in CIDR notation, such as `10.0.0.0/8`; a single address without its prefix length.
  public var description: String {
    switch network {
    case .ipv4(let address):
      let text = SocketAddress.text(ipv4: address)
      return bits == 32 ? text : "\(text)/\(bits)"
    case .ipv6(let upper, let lower):
      let text = SocketAddress.text(ipv6: upper, lower, scope: 0)
      return bits == 128 ? text : "\(text)/\(bits)"
    }
  }
}
