// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The counters of connections that have ended, and the reasons why they ended.
package final class ConnectionTotals {
  package internal(set) var counters = ConnectionCounters()
  package private(set) var endings: [String: UInt64] = [:]
  package private(set) var violations: [String: UInt64] = [:]

  package init() {}

  /// Counts the end of a connection.
  package func ended(_ reason: CloseReason) {
    endings[reason.token, default: 0] += 1
    if case .violation(let violation) = reason { violations[violation.token, default: 0] += 1 }
  }
}
