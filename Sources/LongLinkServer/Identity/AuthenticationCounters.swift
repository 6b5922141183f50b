// SPDX-License-Identifier: Apache-2.0

/// Counts how the calls of a server's `authenticate` function have ended.
package struct AuthenticationCounters: Hashable, Sendable {
  /// Clients that were accepted.
  package internal(set) var accepted: UInt64 = 0
  /// Renewals of credentials that were accepted.
  package internal(set) var renewed: UInt64 = 0
  /// Clients and renewals that were refused with 401 or 403.
  package internal(set) var refused: UInt64 = 0
  /// Calls that threw another error; their clients got 503, and may come back.
  package internal(set) var failed: UInt64 = 0
  /// Calls that did not return in time, or did not begin; their clients got 503.
  package internal(set) var timedOut: UInt64 = 0
  /// Connections that the server began to close because their credential had expired.
  package internal(set) var expired: UInt64 = 0

  /// Adds the counters of another loop.
  static func += (lhs: inout AuthenticationCounters, rhs: AuthenticationCounters) {
    lhs.accepted += rhs.accepted
    lhs.renewed += rhs.renewed
    lhs.refused += rhs.refused
    lhs.failed += rhs.failed
    lhs.timedOut += rhs.timedOut
    lhs.expired += rhs.expired
  }
}
