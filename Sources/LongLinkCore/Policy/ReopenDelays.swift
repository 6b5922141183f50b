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

  /// Returns the next delay, from 64 random bits: not less than `hint`, for which the peer has
  /// asked, up to the policy's longest. All in nanoseconds.
  package mutating func next(askedFor hint: Int64, bits: UInt64) -> Int64 {
    let first = policy.afterClose.clampedNanoseconds
    let window = policy.window(first: first, failures: failures)
    let drawn =
      window > widest
      ? ReconnectPolicy.even(within: window, bits: bits)
      : ReconnectPolicy.period(of: window, bits: bits)
    widest = max(widest, window)
    failures += 1
    return max(drawn, min(hint, policy.longestHint.clampedNanoseconds))
  }
}
