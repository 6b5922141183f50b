// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkTransport

/// The clock by which uploads expire, in milliseconds since 1970.
///
/// It begins with the system's time and goes on with the loop's clock, so that uploads do not
/// expire because the system's clock is set.
struct UploadClock: Sendable {
  private let loop: EventLoop
  private let start: LinkInstant
  private let time: UInt64

  /// Begins with `time`, in milliseconds since 1970. Any thread may use the clock, unlike
  /// `EventLoop.now`.
  init(_ loop: EventLoop, time: UInt64) {
    self.loop = loop
    start = loop.clock.now
    self.time = time
  }

  var now: UInt64 {
    time + UInt64(max(0, (loop.clock.now - start) / 1_000_000))
  }

  /// The system's time, in milliseconds since 1970.
  static func systemTime() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(0, Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000))
  }
}
