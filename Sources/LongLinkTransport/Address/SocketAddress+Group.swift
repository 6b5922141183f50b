// SPDX-License-Identifier: Apache-2.0

extension SocketAddress {
  /// The identity of a host for limits: an IPv4 address, or a 64-bit IPv6 network, within which a
  /// host can use any address (RFC 4291, section 2.5.1).
  package enum Group: Hashable, Sendable {
    case ipv4(UInt32)
    case ipv6(network: UInt64)
    case ipv6Loopback

    /// Whether the group is this machine.
    package var isLoopback: Bool {
      switch self {
      case .ipv4(let address): address >> 24 == 127
      case .ipv6: false
      case .ipv6Loopback: true
      }
    }
  }

  /// The group of the address; nil for a Unix-domain socket. An IPv4-mapped IPv6 address counts as
  /// IPv4.
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
