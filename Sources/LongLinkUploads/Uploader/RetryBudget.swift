// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Decides how long an upload is retried. It has no clock.
struct RetryBudget {
  /// The slowest rate that is a success, in nanoseconds per new byte, on average since the last
  /// success. The time in which there was nothing to send does not count.
  private static let longestPerByte: Int64 = 10_000_000
  private static let first: Int64 = 100_000_000
  private static let longest: Int64 = 5_000_000_000
  /// The number of conflicts without success from which on the upload waits before it retries.
  private static let mostConflicts = 8

  private let patience: Int64
  private var lastSuccess = LinkInstant(nanoseconds: 0)
  /// The bytes that the server has stored since the last success.
  private var gained: UInt64 = 0
  private var failures = 0
  private var conflicts = 0

  init(_ patience: Duration) {
    self.patience = patience.clampedNanoseconds
  }

  /// Records that the upload begins, or was created.
  mutating func begin(at now: LinkInstant) {
    lastSuccess = now
    gained = 0
    failures = 0
    conflicts = 0
  }

  /// Records that the server has `count` bytes more than ever before. It is a success unless they
  /// are too few for the time since the last one.
  mutating func advanced(by count: UInt64, at now: LinkInstant) {
    gained += count
    if UInt64(max(0, now - lastSuccess) / RetryBudget.longestPerByte) <= gained { begin(at: now) }
  }

  /// Records a time, in nanoseconds, in which there was nothing to send.
  mutating func wasIdle(for time: Int64) {
    lastSuccess = lastSuccess.advanced(by: .nanoseconds(time))
  }

  /// Whether the last success is longer ago than `patience`.
  func isExhausted(at now: LinkInstant) -> Bool { now - lastSuccess >= patience }

  /// Counts a conflict; returns whether the upload may retry without waiting.
  mutating func mayRepeat() -> Bool {
    conflicts += 1
    return conflicts < RetryBudget.mostConflicts
  }

  /// The timeout of the next request.
  func timeout(at now: LinkInstant) -> Duration {
    let left = lastSuccess + patience - now
    return .nanoseconds(min(max(left, RetryBudget.first), 15_000_000_000))
  }

  /// Returns the delay before the next attempt; nil if the patience is over. `hint` is the delay
  /// that the server asked for, `random` any number.
  mutating func delay(at now: LinkInstant, _ hint: Duration?, _ random: UInt64) -> Duration? {
    let left = lastSuccess + patience - now
    guard left > 0 else { return nil }
    let window = min(RetryBudget.first << min(failures, 10), RetryBudget.longest)
    failures += 1
    let jittered = window / 2 + Int64(random % UInt64(window / 2 + 1))
    // The last attempt is made when the patience ends, whatever `hint` is.
    return .nanoseconds(min(max(jittered, hint?.clampedNanoseconds ?? 0), left))
  }
}
