// SPDX-License-Identifier: Apache-2.0

/// A token bucket: limits how often something happens per second, and lets a burst pass.
///
/// It counts in time: `restored` is the instant at which the bucket is full again, and each token
/// that is taken moves it by the time in which one token comes back. So a bucket is one number, and
/// an old one needs no upkeep.
package struct TokenBucket: Equatable, Sendable {
  /// When the full burst is available again.
  package private(set) var restored: LinkInstant

  /// A full bucket.
  package init(at now: LinkInstant) {
    restored = now
  }

  /// How many tokens come back per second, and how many there are at most.
  package struct Rate: Equatable, Sendable {
    /// The time in which one token comes back, and the time in which the whole burst does, in
    /// nanoseconds.
    let interval: Int64
    let burst: Int64

    /// Makes a rate; both numbers are from 1 to 1,000,000.
    package init(perSecond: Int, burst: Int) {
      precondition((1...1_000_000).contains(perSecond) && (1...1_000_000).contains(burst))
      interval = 1_000_000_000 / Int64(perSecond)
      self.burst = interval * Int64(burst)
    }
  }

  /// Takes a token; false if there is none, which changes nothing.
  package mutating func take(of rate: Rate, at now: LinkInstant) -> Bool {
    let next = max(restored, now) + rate.interval
    guard next - now <= rate.burst else { return false }
    restored = next
    return true
  }

  /// Takes `count` tokens of a bucket that holds one second's worth of them, and returns how long
  /// to wait, in nanoseconds, until none is owed; 0 for not at all.
  package mutating func spend(_ count: Int, perSecond: Int, at now: LinkInstant) -> Int64 {
    let second: Int64 = 1_000_000_000
    let (high, low) = UInt64(count).multipliedFullWidth(by: UInt64(second))
    // What would take longer than an hour is a debt of an hour.
    let rate = UInt64(perSecond)
    let most: Int64 = 3_600 * second
    let time = high >= rate ? most : Int64(clamping: rate.dividingFullWidth((high, low)).quotient)
    restored = max(restored, now) + min(time, most)
    return max(0, restored - now - second)
  }
}
