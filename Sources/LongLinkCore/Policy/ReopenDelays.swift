// SPDX-License-Identifier: Apache-2.0

/// The delays before a stream is opened again, drawn from the windows of a client's reconnects.
///
/// The first delay is from the window `afterClose`. As long as no stream has worked, each further
/// one is from the window after one more failed round.
package struct ReopenDelays {
  private let policy: ReconnectPolicy
  private var failures = 0
  private var widest: Int64 = 0

  package init(_ policy: ReconnectPolicy) {
    self.policy = policy
  }

  /// How long a stream without items has to last to count as working, in nanoseconds.
  package var proof: Int64 { policy.cap.clampedNanoseconds }

  /// Returns the next delay in nanoseconds, drawn with 64 random bits. If that is less than the
  /// `hint` for which the peer has asked, the delay is the hint, within the policy's limit, plus up
  /// to half of the window, since the peer may have asked many at once.
  package mutating func next(askedFor hint: Int64, bits: UInt64) -> Int64 {
    let first = policy.afterClose.clampedNanoseconds
    let window = policy.window(first: first, failures: failures)
    let drawn =
      window > widest
      ? ReconnectPolicy.even(within: window, bits: bits)
      : ReconnectPolicy.period(of: window, bits: bits)
    widest = max(widest, window)
    failures += 1
    let hint = min(hint, policy.longestHint.clampedNanoseconds)
    guard hint > drawn else { return drawn }
    let spread = policy.window(first: first, failures: failures) / 2
    let (sum, isFar) = hint.addingReportingOverflow(
      ReconnectPolicy.even(within: spread, bits: bits))
    return isFar ? .max : sum
  }
}
