// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Spreads bytes over time, so that at most a given number of them leave in a second. It has no
/// clock.
struct Throttle {
  private let rate: UInt64
  /// When the next bytes may leave; nil before the first ones.
  private var next: LinkInstant?

  init(bytesPerSecond rate: Int) {
    self.rate = UInt64(max(1, rate))
  }

  /// The most bytes that leave in a second.
  var second: UInt64 { rate }

  /// The most bytes to send at once: those of a tenth of a second.
  var piece: Int { Int(clamping: max(1, rate / 10)) }

  /// Counts bytes that are about to leave, and returns how long they have to wait.
  mutating func delay(of count: Int, at now: LinkInstant) -> Duration {
    let start = max(next ?? now, now)
    next = start.advanced(by: .nanoseconds(Int64(Double(count) * 1e9 / Double(rate))))
    return now.duration(to: start)
  }
}
