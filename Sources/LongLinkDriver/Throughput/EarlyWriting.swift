// SPDX-License-Identifier: Apache-2.0

/// Whether a long turn writes before its end, so that the peer has something to do meanwhile.
///
/// One write at the end of a turn is the cheapest. Where a turn handles many messages, though, the
/// peer sleeps all the time, and this side sleeps while the peer works: each of them has a
/// processor, and only one is ever used. To write after every `stride` frames keeps both busy, and
/// is for nothing where the two share a processor or are far apart. So it is tried: where the
/// peer's answer has come by the end of the turn, it goes on, else it is left for a while.
struct EarlyWriting {
  /// Frames after which it is worth a system call.
  private static let stride = 32
  /// Bytes after which it is, which are no longer in the nearer caches when more follow.
  private static let bytes = 131_072
  /// Turns for which it goes on without being tried again.
  private static let trust: UInt8 = 15
  /// Turns for which it may be left, at most.
  private static let longestPause: UInt8 = 255

  /// Turns for which the last verdict stands, and which one that is.
  private var standing: UInt8 = 0
  private var isWorthwhile = false
  /// For how long it was left the last time.
  private var pause: UInt8 = 0
  private var phase = Phase.waiting

  private enum Phase {
    /// Nothing was written early in this turn.
    case waiting
    /// Nothing will be.
    case refused
    /// Something was, since that is worthwhile.
    case trusted
    /// Something was, to see whether it is worthwhile.
    case tried
  }

  /// Whether so much waits that it may be time to write.
  @inline(__always)
  func isDue(frames: Int, bytes: Int) -> Bool {
    (frames >= Self.stride || bytes >= Self.bytes) && phase != .refused
  }

  /// Whether to write now; where that is a trial, it has just begun.
  mutating func begins() -> (writes: Bool, isTrial: Bool) {
    switch phase {
    case .refused: return (false, false)
    case .trusted, .tried: return (true, false)
    case .waiting: break
    }
    guard standing > 0 else {
      phase = .tried
      return (true, true)
    }
    standing -= 1
    phase = isWorthwhile ? .trusted : .refused
    return (isWorthwhile, false)
  }

  /// Leaves the rest to the turn's end: the stream took only a part, or failed.
  mutating func deferRest() {
    phase = .refused
  }

  /// Ends the turn; true where something was tried in it, of which `judge` is to be told.
  @inline(__always)
  mutating func ends() -> Bool {
    defer { phase = .waiting }
    return phase == .tried
  }

  /// Hears whether the peer did answer in the turn that has just ended.
  mutating func recordTrial(hasHelped: Bool) {
    isWorthwhile = hasHelped
    pause = hasHelped ? 0 : UInt8(min(2 * Int(pause) + 1, Int(Self.longestPause)))
    standing = hasHelped ? Self.trust : pause
  }
}
