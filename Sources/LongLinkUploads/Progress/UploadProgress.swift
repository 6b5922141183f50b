// SPDX-License-Identifier: Apache-2.0

/// The progress of an upload. No number of bytes of one upload ever becomes smaller.
public struct UploadProgress: Hashable, Sendable {
  /// The number of bytes that were sent, those that an earlier process has sent included.
  public var sent: UInt64
  /// The number of bytes that the server has on its disk; at most `sent`.
  public var stored: UInt64
  /// The number of bytes of the whole upload; nil if it is not known.
  public var total: UInt64?
  /// The bytes per second that were sent lately, smoothed; nil at first.
  public var bytesPerSecond: Double?
  /// The time until the server has all bytes, at `bytesPerSecond`; nil if it is not known.
  public var timeLeft: Duration?

  /// Whether the server has all bytes.
  public var isComplete: Bool { stored == total }

  /// Makes a progress value with the given numbers.
  public init(
    sent: UInt64 = 0, stored: UInt64 = 0, total: UInt64? = nil, bytesPerSecond: Double? = nil,
    timeLeft: Duration? = nil
  ) {
    self.sent = sent
    self.stored = stored
    self.total = total
    self.bytesPerSecond = bytesPerSecond
    self.timeLeft = timeLeft
  }
}
