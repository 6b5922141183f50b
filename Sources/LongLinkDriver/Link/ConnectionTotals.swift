// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// What connections have counted that have ended, and why they did.
package final class ConnectionTotals {
  package internal(set) var counters = ConnectionCounters()
  package private(set) var endings: [CloseReason.Kind: UInt64] = [:]
  package private(set) var violations: [Violation.Rule: UInt64] = [:]

  package init() {}

  /// Counts the end of a connection.
  package func ended(_ reason: CloseReason) {
    endings[reason.kind, default: 0] += 1
    if case .violation(let violation) = reason { violations[violation.rule, default: 0] += 1 }
  }
}
