// SPDX-License-Identifier: Apache-2.0

/// How long a loop waits before it spins again, which doubles with each spin that was in vain.
struct SpinPause {
  /// The longest time to spin, in nanoseconds: about the time of a wake-up. It can be exceeded if
  /// another thread gets the processor.
  static let longestSpin: Int64 = 20_000
  /// The longest pause, in turns.
  private static let longest = 255

  /// The turns that still skip spinning.
  private var left = 0
  /// The turns to skip after the next spin in vain.
  private var next = 0

  /// Whether the loop may spin in this turn; otherwise the turn counts for the pause.
  mutating func mayBegin() -> Bool {
    guard left > 0 else { return true }
    left -= 1
    return false
  }

  /// Notes that a spin has brought no work.
  mutating func wasVain() {
    next = min(next * 2 + 1, Self.longest)
    left = next
  }

  /// Notes that a spin has brought work.
  mutating func hasHelped() { next = 0 }
}
