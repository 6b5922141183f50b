// SPDX-License-Identifier: Apache-2.0

/// Why a server rejected a new connection, before it read any frame from it.
package enum ConnectionRejection: String, Error, Hashable, CaseIterable, Sendable {
  /// There are as many connections as `limits.maxConnections` allows.
  case tooManyConnections = "limits.maxConnections"
  /// The address has as many connections as `addresses.maxConnections` allows.
  case tooManyOfAddress = "addresses.maxConnections"
  /// The address opens connections faster than `addresses.maxConnectionRate` allows.
  case tooFast = "addresses.maxConnectionRate"
  /// The address opens short links faster than `addresses.maxShortLinkRate` allows.
  case shortLinksTooFast = "addresses.maxShortLinkRate"
  /// The address is in `addresses.denied`.
  case denied = "addresses.denied"
  /// `addresses.allowed` is not empty, and the address is in none of its ranges.
  case notAllowed = "addresses.allowed"
  /// The function of `onAccept` has returned false.
  case notWanted = "onAccept"
  /// One of the `addresses.proxies` has sent no header of the PROXY protocol, version 2, or a
  /// broken one, or has not sent it in time.
  case proxyHeader = "addresses.proxies"
}
