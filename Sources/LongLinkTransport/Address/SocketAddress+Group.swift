// SPDX-License-Identifier: Apache-2.0

extension SocketAddress {
  /// What a host is known by for limits: an IPv4 address, or an IPv6 network of 64 bits, within
  /// which one host may take any address (RFC 4291, section 2.5.1).
  package enum Group: Hashable, Sendable {
    case ipv4(UInt32)
    case ipv6(network: UInt64)
    case ipv6Loopback

    /// Whether it is this machine.
    package var isLoopback: Bool {
      switch self {
      case .ipv4(let address): address >> 24 == 127
      case .ipv6: false
      case .ipv6Loopback: true
      }
    }
  }

  /// The group of the address; nil for a Unix-domain socket. An IPv4 address that is mapped into
  /// IPv6 counts as what it is.
  package var group: Group? {
    switch storage {
    case .ipv4(let address, _): .ipv4(address)
    case .ipv6(0, 1, _, _): .ipv6Loopback
    case .ipv6(0, let lower, _, _) where lower >> 32 == 0xFFFF:
      .ipv4(UInt32(truncatingIfNeeded: lower))
    case .ipv6(let upper, _, _, _): .ipv6(network: upper)
    case .unix: nil
    }
  }
}
