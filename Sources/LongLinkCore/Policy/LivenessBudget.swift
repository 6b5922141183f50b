// SPDX-License-Identifier: Apache-2.0

/// What a heartbeat may cost and has to achieve, and the times that do both. In milliseconds.
package struct LivenessBudget: Equatable, Sendable {
  /// A dead peer is to be found within this time.
  package let bound: Int64
  /// An idle link may wake this side so many times an hour.
  package let wakeUps: Int64

  /// Why no heartbeat does both.
  package enum Refusal: Error, Equatable, CustomStringConvertible {
    /// No wake-up at all finds nothing.
    case noWakeUps
    /// No heartbeat is so quick.
    case boundTooShort(least: Int64)
    case wakeUpsTooFew(bound: Int64, wakeUps: Int64, shortestBound: Int64, leastWakeUps: Int64)

    package var description: String {
      switch self {
      case .noWakeUps:
        "a dead peer cannot be found without waking up: at least 1 time an hour is needed"
      case .boundTooShort(let least):
        "a dead peer cannot be found sooner than within \(least) ms"
      case .wakeUpsTooFew(let bound, let wakeUps, let shortestBound, let leastWakeUps):
        """
        \(wakeUps) wake-ups an hour find a dead peer within \(shortestBound) ms at best; within \
        \(bound) ms needs at least \(leastWakeUps)
        """
      }
    }
  }

  private static let hour: Int64 = 3_600_000
  private static let least = Int64(Wire.shortestInterval + Wire.shortestTimeout)
  /// What a lost packet takes to be sent again at first (RFC 6298, section 2.1).
  private static let retransmission: Int64 = 1_000
  /// A peer that has not answered by then will not.
  private static let longestTimeout: Int64 = 30_000
  /// Both together are to fit what the wire and the clock can tell.
  private static let longestBound: Int64 = 4_000_000_000

  package init(bound: Int64, wakeUps: Int64) {
    self.bound = min(bound, LivenessBudget.longestBound)
    self.wakeUps = min(wakeUps, LivenessBudget.hour)
  }

  /// The interval and the timeout, whose sum is the bound.
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
    // As few wake-ups as leave a live peer enough time to answer.
    let ample = min(max(bound / 4, leastTimeout), LivenessBudget.longestTimeout)
    let chosen = max(interval, bound - ample)
    return (chosen, bound - chosen)
  }

  /// The shortest timeout that does not take a lost packet for death, where the bound has room.
  private var leastTimeout: Int64 {
    max(Int64(Wire.shortestTimeout), min(LivenessBudget.retransmission, bound / 4))
  }

  /// The shortest bound of which this interval leaves the timeout its least.
  private static func shortestBound(_ interval: Int64) -> Int64 {
    interval + max(Int64(Wire.shortestTimeout), min(retransmission, (interval - 1) / 3))
  }
}
