// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Spreads bytes over time, so that no more than a number of them leave in a second. It has no
/// clock.
struct Throttle {
  private let rate: UInt64
  /// When the next bytes may leave.
  private var next: LinkInstant?

  init(bytesPerSecond rate: Int) {
    self.rate = UInt64(max(1, rate))
  }

  /// The most bytes of a second.
  var second: UInt64 { rate }

  /// The most bytes to let through at once: a tenth of a second's worth.
  var piece: Int { Int(clamping: max(1, rate / 10)) }

  /// Returns how long these bytes have to wait.
  mutating func delay(of count: Int, at now: LinkInstant) -> Duration {
    let start = max(next ?? now, now)
    next = start.advanced(by: .nanoseconds(Int64(Double(count) * 1e9 / Double(rate))))
    return now.duration(to: start)
  }
}
