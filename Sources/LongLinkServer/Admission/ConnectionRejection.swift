// SPDX-License-Identifier: Apache-2.0

/// Why a server rejected a new connection, before it read any frame from it.
package enum ConnectionRejection: String, Error, Hashable, CaseIterable, Sendable {
  /// There are as many connections as `maxConnections` allows.
  case tooManyConnections = "maxConnections"
  /// The address has as many connections as `maxConnectionsPerAddress` allows.
  case tooManyOfAddress = "maxConnectionsPerAddress"
  /// The address opens connections faster than `maxConnectionRatePerAddress` allows, or short links
  /// faster than `maxShortLinkRatePerAddress`.
  case tooFast = "maxConnectionRatePerAddress"
  /// The address is in `deniedAddresses`.
  case denied = "deniedAddresses"
  /// There are `allowedAddresses`, and the address is in none of them.
  case notAllowed = "allowedAddresses"
  /// The function of `onAccept` has returned false.
  case notWanted = "onAccept"
  /// One of the `proxies` has sent no header of the PROXY protocol, version 2, or a broken one, or
  /// has not sent it in time.
  case proxyHeader = "proxies"
}
