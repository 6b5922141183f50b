// SPDX-License-Identifier: Apache-2.0

/// Decides whether the bytes of an append arrive too slowly. It has no clock.
///
/// Only the time in which the server waits for bytes counts, not that in which it writes.
struct AppendPace {
  /// The time over which the rate is averaged, in nanoseconds of waiting. The first window is not
  /// judged.
  static let window: Int64 = 30_000_000_000

  private let least: Int
  private var waited: Int64 = 0
  private var bytes = 0
  private var isFirst = true

  /// Begins to judge an append, which must have at least `least` bytes per second.
  init(bytesPerSecond least: Int) {
    self.least = least
  }

  /// Counts bytes that arrived after a wait, in nanoseconds; returns whether the last window had
  /// too few.
  mutating func isTooSlow(_ count: Int, after wait: Int64) -> Bool {
    waited += wait
    bytes += count
    guard waited >= AppendPace.window else { return false }
    defer { (waited, bytes, isFirst) = (0, 0, false) }
    return !isFirst && Double(bytes) * 1e9 < Double(least) * Double(waited)
  }
}
