// SPDX-License-Identifier: Apache-2.0

/// The marks of a connection's outgoing buffer at which senders begin and stop waiting.
///
/// Whole messages and fragmented ones (bodies above 64 KiB, if both sides agreed to fragments) are
/// counted separately, so that small messages can pass a large body. Requests that must wait stay
/// in the sender's queue while their deadlines run; pushes wait within their own limits. A single
/// message can exceed a mark. Responses and control frames count, but never wait.
///
/// So the requests and pushes in the buffer have at most `high` and `large` bytes, plus one body
/// beyond each.
public struct WaterMarks: Hashable, Sendable {
  /// The high-water mark in bytes, which does not count fragmented messages; at least 1. Default 1
  /// MiB.
  public var high: Int
  /// The low-water mark at which senders resume; at least 0 and below `high`. Default 512 KiB.
  public var low: Int
  /// The high-water mark of fragmented messages in bytes, at least 1. Senders of such messages
  /// resume at half of it. If it is above half of `limits.maxUnreadOutput`, that half is used
  /// instead. Default 32 MiB.
  public var large: Int

  /// Makes water marks from numbers of bytes.
  public init(high: Int = 1_048_576, low: Int = 524_288, large: Int = 33_554_432) {
    self.high = high
    self.low = low
    self.large = large
  }
}
