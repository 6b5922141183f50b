// SPDX-License-Identifier: Apache-2.0

/// The delays before a stream is opened again, from the windows of a client's reconnects.
///
/// The first one is drawn from the window `afterClose`; each further one, while none of the streams
/// has worked, from that of one more failed round.
package struct ReopenDelays {
  private let policy: ReconnectPolicy
  private var failures = 0
  private var widest: Int64 = 0

  package init(_ policy: ReconnectPolicy) {
    self.policy = policy
  }

  /// How long a stream without items has to last until it has worked, in nanoseconds.
  package var proof: Int64 { policy.cap.clampedNanoseconds }

  /// Returns the next delay, from 64 random bits. If it is less than `hint`, for which the peer has
  /// asked, it is the hint, up to the policy's longest, and up to half of the window for that many
  /// failures more: the peer may have asked many at once. All in nanoseconds.
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
