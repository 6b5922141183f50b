// SPDX-License-Identifier: Apache-2.0

/// Decides whether a long turn writes before its end, to give the peer work meanwhile.
///
/// One write at the end of a turn costs least. But in a turn with many messages the peer sleeps
/// until then, and this side sleeps while the peer works, so only one of two processors is busy.
/// Writing after every `stride` frames keeps both busy; it gains nothing if both sides share a
/// processor or are far apart. So a trial decides: if a response arrives by the end of the turn,
/// early writes go on; otherwise they pause for some turns.
struct EarlyWriting {
  /// The number of waiting frames that make a system call worthwhile.
  private static let stride = 32
  /// The number of waiting bytes that do so. More would fall out of the nearer caches.
  private static let bytes = 131_072
  /// The number of turns after a success without another trial.
  private static let trust: UInt8 = 15
  /// The largest number of turns without a trial after a failure.
  private static let longestPause: UInt8 = 255

  /// The number of turns for which the last trial's result still holds, and that result.
  private var standing: UInt8 = 0
  private var isWorthwhile = false
  /// The last pause, in turns.
  private var pause: UInt8 = 0
  private var phase = Phase.waiting
  /// The loop's preemption count when the last trial began.
  private var preemptions: Int?
  /// The `errno` of an early write that failed in this turn; handled at the turn's end.
  private var failure: Int32?

  private enum Phase {
    /// Nothing was written early in this turn.
    case waiting
    /// Nothing will be written early in this turn.
    case refused
    /// Something was written early, because that helps.
    case trusted
    /// Something was written early as a trial.
    case tried
  }

  /// Whether enough frames or bytes wait that an early write may be worthwhile.
  @inline(__always)
  func isDue(frames: Int, bytes: Int) -> Bool {
    (frames >= Self.stride || bytes >= Self.bytes) && phase != .refused
  }

  /// Whether to write now. If that starts a trial, it notes `preemptions`, the loop's count.
  mutating func begins(preemptions: @autoclosure () -> Int?) -> Bool {
    switch phase {
    case .refused: return false
    case .trusted, .tried: return true
    case .waiting: break
    }
    guard standing > 0 else {
      phase = .tried
      self.preemptions = preemptions()
      return true
    }
    standing -= 1
    phase = isWorthwhile ? .trusted : .refused
    return isWorthwhile
  }

  /// Leaves the rest to the end of the turn, because the transport took only a part, or failed with
  /// this `errno`.
  mutating func deferRest(after failure: Int32? = nil) {
    phase = .refused
    self.failure = failure
  }

  /// Takes the `errno` of an early write that failed.
  mutating func takeFailure() -> Int32? {
    defer { failure = nil }
    return failure
  }

  /// Ends the turn; returns whether there was a trial, whose result `recordTrial` needs.
  @inline(__always)
  mutating func ends() -> Bool {
    defer { phase = .waiting }
    return phase == .tried
  }

  /// Records the result of the trial in the turn that has just ended. It has helped if the peer
  /// answered and did not preempt this thread.
  mutating func recordTrial(isAnswered: Bool, preemptions: @autoclosure () -> Int?) {
    let hasHelped = isAnswered && self.preemptions != nil && preemptions() == self.preemptions
    isWorthwhile = hasHelped
    pause = hasHelped ? 0 : UInt8(min(2 * Int(pause) + 1, Int(Self.longestPause)))
    standing = hasHelped ? Self.trust : pause
  }
}
