// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Counts the bytes of an upload, and smooths their rate. It has no clock.
struct ProgressMeter {
  /// The age at which the former average counts as much as the newest rate, in nanoseconds.
  private static let smoothing: Int64 = 3_000_000_000
  /// The shortest time over which a rate is measured, in nanoseconds.
  private static let shortest: Int64 = 50_000_000

  private(set) var progress = UploadProgress()
  /// The bytes that were sent, with those that were sent again: these are work, too.
  private var moved: UInt64 = 0
  private var measured: (at: LinkInstant, moved: UInt64)?

  /// Records the bytes that the server has at the beginning, which do not count for the rate.
  mutating func begin(at offset: UInt64, of total: UInt64?) {
    progress.total = total ?? progress.total
    raise(sent: offset, stored: offset)
  }

  /// Counts bytes that have left; `position` is the offset after them.
  mutating func sent(_ count: Int, upTo position: UInt64) {
    moved += UInt64(count)
    raise(sent: position, stored: 0)
  }

  /// Records the number of bytes that the server has.
  mutating func stored(_ offset: UInt64) { raise(sent: offset, stored: offset) }

  /// Records that the server has all bytes.
  mutating func complete(at total: UInt64) {
    progress.total = total
    raise(sent: total, stored: total)
  }

  private mutating func raise(sent: UInt64, stored: UInt64) {
    progress.stored = max(progress.stored, stored)
    progress.sent = max(progress.sent, sent, progress.stored)
  }

  /// Measures the rate, and returns the progress with the new rate.
  mutating func measure(at now: LinkInstant) -> UploadProgress {
    guard let last = measured else {
      measured = (now, moved)
      return progress
    }
    let time = now - last.at
    if time >= ProgressMeter.shortest {
      measured = (now, moved)
      let rate = Double(moved - last.moved) * 1e9 / Double(time)
      let weight = Double(time) / Double(time + ProgressMeter.smoothing)
      let former = progress.bytesPerSecond ?? rate
      progress.bytesPerSecond = former + (rate - former) * weight
    }
    progress.timeLeft = timeLeft
    return progress
  }

  private var timeLeft: Duration? {
    guard let total = progress.total else { return nil }
    if progress.stored >= total { return .zero }
    guard let rate = progress.bytesPerSecond, rate > 0 else { return nil }
    let seconds = Double(total - progress.stored) / rate
    return seconds < 1e9 ? .seconds(seconds) : nil
  }
}
