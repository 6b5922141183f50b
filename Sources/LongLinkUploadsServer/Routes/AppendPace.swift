// SPDX-License-Identifier: Apache-2.0

/// Judges how fast the bytes of an append come, by the time that the server has waited for them. It
/// has no clock.
///
/// The time in which the server writes, and takes nothing, is not the client's fault.
struct AppendPace {
  /// The time over which the rate is an average, in nanoseconds. The first one is not judged.
  static let window: Int64 = 30_000_000_000

  private let least: Int
  private var waited: Int64 = 0
  private var bytes = 0
  private var isFirst = true

  /// Begins an append of at least so many bytes per second.
  init(bytesPerSecond least: Int) {
    self.least = least
  }

  /// Whether too few bytes have come, now that so many have after a wait in nanoseconds.
  mutating func isTooSlow(_ count: Int, after wait: Int64) -> Bool {
    waited += wait
    bytes += count
    guard waited >= AppendPace.window else { return false }
    defer { (waited, bytes, isFirst) = (0, 0, false) }
    return !isFirst && Double(bytes) * 1e9 < Double(least) * Double(waited)
  }
}
