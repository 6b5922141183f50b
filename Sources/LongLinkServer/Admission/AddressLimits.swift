// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

/// The configured limits of addresses.
struct AddressLimits: Sendable {
  private let allowed: [AddressRange]
  private let denied: [AddressRange]
  private let proxies: [AddressRange]
  private let limitsLoopback: Bool

  init(_ configuration: ServerConfiguration) {
    allowed = configuration.addresses.allowed
    denied = configuration.addresses.denied
    proxies = configuration.addresses.proxies
    limitsLoopback = configuration.addresses.limitsLoopback
  }

  /// Whether a peer is one of the proxies, whose connections begin with a PROXY header.
  func isProxy(_ address: SocketAddress?) -> Bool {
    guard !proxies.isEmpty, let address else { return false }
    return proxies.contains { $0.contains(address) }
  }

  /// Why an address may not connect at all; nil if it may. Unix sockets have no address.
  func objection(to address: SocketAddress?) -> ConnectionRejection? {
    guard let address, address.family != .unix else { return nil }
    if denied.contains(where: { $0.contains(address) }) { return .denied }
    guard allowed.isEmpty || allowed.contains(where: { $0.contains(address) }) else {
      return .notAllowed
    }
    return nil
  }

  /// Why a proxy may not connect; nil if it may, unless it is denied: proxies need not be
  /// `allowed`.
  func objection(toProxy address: SocketAddress?) -> ConnectionRejection? {
    objection(to: address) == .denied ? .denied : nil
  }

  /// The group with which an address shares its limits; nil if it is not limited.
  func group(of address: SocketAddress?) -> SocketAddress.Group? {
    guard let group = address?.group, limitsLoopback || !group.isLoopback else { return nil }
    return group
  }
}
