// SPDX-License-Identifier: Apache-2.0

/// The goals for a heartbeat, from which its interval and timeout follow. Times are in
/// milliseconds.
package struct LivenessBudget: Equatable, Sendable {
  /// The time within which a dead peer must be detected.
  package let bound: Int64
  /// The most wake-ups per hour on an idle link.
  package let wakeUps: Int64

  /// Why no heartbeat meets both goals.
  package enum Refusal: Error, Equatable, CustomStringConvertible {
    /// Detecting a dead peer needs at least one wake-up per hour.
    case noWakeUps
    /// The bound is shorter than the shortest heartbeat can achieve.
    case boundTooShort(least: Int64)
    case wakeUpsTooFew(bound: Int64, wakeUps: Int64, shortestBound: Int64, leastWakeUps: Int64)

    package var description: String {
      switch self {
      case .noWakeUps:
        "detecting a dead peer needs at least 1 wake-up an hour"
      case .boundTooShort(let least):
        "a dead peer cannot be detected in less than \(least) ms"
      case .wakeUpsTooFew(let bound, let wakeUps, let shortestBound, let leastWakeUps):
        """
        \(wakeUps) wake-ups an hour detect a dead peer within \(shortestBound) ms at best; \
        \(bound) ms needs at least \(leastWakeUps)
        """
      }
    }
  }

  private static let hour: Int64 = 3_600_000
  private static let least = Int64(Wire.shortestInterval + Wire.shortestTimeout)
  /// The initial retransmission timeout of TCP (RFC 6298, section 2.1).
  private static let retransmission: Int64 = 1_000
  /// The longest timeout: a peer that has not answered within this time will not answer.
  private static let longestTimeout: Int64 = 30_000
  /// The longest bound. Interval and timeout must fit into the wire's fields and the clock.
  private static let longestBound: Int64 = 4_000_000_000

  package init(bound: Int64, wakeUps: Int64) {
    self.bound = min(bound, LivenessBudget.longestBound)
    self.wakeUps = min(wakeUps, LivenessBudget.hour)
  }

  /// Computes the interval and the timeout, whose sum is the bound.
  package func solved() throws(Refusal) -> (interval: Int64, timeout: Int64) {
    guard wakeUps > 0 else { throw .noWakeUps }
    guard bound >= LivenessBudget.least else { throw .boundTooShort(least: LivenessBudget.least) }
    let interval = max(
      Int64(Wire.shortestInterval), (LivenessBudget.hour - 1) / wakeUps + 1)
    let longest = bound - leastTimeout
    guard interval <= longest else {
      throw .wakeUpsTooFew(
        bound: bound, wakeUps: wakeUps, shortestBound: LivenessBudget.shortestBound(interval),
        leastWakeUps: (LivenessBudget.hour - 1) / longest + 1)
    }
    // This needs the fewest wake-ups, and still gives a live peer enough time to answer.
    let ample = min(max(bound / 4, leastTimeout), LivenessBudget.longestTimeout)
    let chosen = max(interval, bound - ample)
    return (chosen, bound - chosen)
  }

  /// The shortest timeout that survives a lost packet, if the bound allows it.
  private var leastTimeout: Int64 {
    max(Int64(Wire.shortestTimeout), min(LivenessBudget.retransmission, bound / 4))
  }

  /// The shortest bound that leaves room for the least timeout after this interval.
  private static func shortestBound(_ interval: Int64) -> Int64 {
    interval + max(Int64(Wire.shortestTimeout), min(retransmission, (interval - 1) / 3))
  }
}
