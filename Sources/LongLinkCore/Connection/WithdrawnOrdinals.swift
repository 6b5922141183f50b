// SPDX-License-Identifier: Apache-2.0

/// The ordinals of requests that were encoded and then withdrawn before any byte was written.
///
/// The peer never saw them, so its count of accepted requests skips them. If there are very many,
/// only the number of the oldest ones is kept. Requests before the last of those then all count as
/// accepted, which is conservative: fewer requests are retried than could be.
struct WithdrawnOrdinals: Equatable, Sendable {
  private static let limit = 1024
  private var ordinals: [UInt64] = []
  /// The number of forgotten ordinals, and the last of them.
  private var forgotten: UInt64 = 0
  private var floor: UInt64 = 0

  mutating func insert(_ ordinal: UInt64) {
    guard ordinal > floor else {
      forgotten += 1
      return
    }
    let index = ordinals.lastIndex { $0 < ordinal }.map { $0 + 1 } ?? 0
    ordinals.insert(ordinal, at: index)
    guard ordinals.count > Self.limit else { return }
    let half = Self.limit / 2
    floor = ordinals[half - 1]
    forgotten += UInt64(half)
    ordinals.removeSubrange(0..<half)
  }

  /// Returns the ordinal of the last of `count` requests that the peer saw. `count` must be less
  /// than the number of begun requests.
  func ordinal(of count: UInt64) -> UInt64 {
    var result = max(count + forgotten, floor)
    for ordinal in ordinals {
      guard ordinal <= result else { break }
      result += 1
    }
    return result
  }
}
