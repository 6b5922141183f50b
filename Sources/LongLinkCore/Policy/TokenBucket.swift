// SPDX-License-Identifier: Apache-2.0

/// A token bucket: limits how often something happens per second, and lets a burst pass.
///
/// It counts in time: `restored` is the instant at which the bucket is full again, and each taken
/// token moves it by the time in which one token comes back. So a bucket is a single number, and
/// needs no upkeep while it is not used.
package struct TokenBucket: Equatable, Sendable {
  /// When the full burst is available again.
  package private(set) var restored: LinkInstant

  /// A full bucket.
  package init(at now: LinkInstant) {
    restored = now
  }

  /// How many tokens come back per second, and how many a full bucket holds.
  package struct Rate: Equatable, Sendable {
    /// The time in which one token comes back, and the time in which a full burst does, in
    /// nanoseconds.
    let interval: Int64
    let burst: Int64

    /// Makes a rate; both numbers are from 1 to 1,000,000.
    package init(perSecond: Int, burst: Int) {
      precondition((1...1_000_000).contains(perSecond) && (1...1_000_000).contains(burst))
      interval = 1_000_000_000 / Int64(perSecond)
      self.burst = interval * Int64(burst)
    }

    /// Makes a rate from the times of a token and of a full burst, in nanoseconds.
    init(interval: Int64, burst: Int64) {
      self.interval = interval
      self.burst = burst
    }
  }

  /// Takes a token; returns false, without an effect, if there is none.
  package mutating func take(of rate: Rate, at now: LinkInstant) -> Bool {
    let next = max(restored, now) + rate.interval
    guard next - now <= rate.burst else { return false }
    restored = next
    return true
  }

  /// Takes `count` tokens from a bucket that holds one second's worth. If that leaves a debt,
  /// returns how long it takes to be paid off, in nanoseconds; otherwise 0.
  package mutating func spend(_ count: Int, perSecond: Int, at now: LinkInstant) -> Int64 {
    let second: Int64 = 1_000_000_000
    let (high, low) = UInt64(count).multipliedFullWidth(by: UInt64(second))
    // A debt that would take longer than an hour is reduced to an hour.
    let rate = UInt64(perSecond)
    let most: Int64 = 3_600 * second
    let time = high >= rate ? most : Int64(clamping: rate.dividingFullWidth((high, low)).quotient)
    restored = max(restored, now) + min(time, most)
    return max(0, restored - now - second)
  }
}
