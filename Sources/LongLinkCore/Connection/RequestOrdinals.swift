// SPDX-License-Identifier: Apache-2.0

/// Numbers the requests that this side begins, from 1, as the peer counts those that it accepts.
///
/// The peer never saw those that were encoded and then withdrawn before any byte was written, so
/// its count skips them. If there are very many, only the number of the oldest ones is kept.
/// Requests before the last of those then all count as accepted, which is conservative: fewer
/// requests are retried than could be.
package struct RequestOrdinals: Equatable, Sendable {
  private static let limit = 1024
  /// The number of requests of which a first byte was encoded.
  private(set) var last: UInt64 = 0
  private var withdrawn: [UInt64] = []
  /// The number of forgotten ordinals, and the last of them.
  private var forgotten: UInt64 = 0
  private var floor: UInt64 = 0

  /// Returns the ordinal of the next request.
  mutating func next() -> UInt64 {
    last += 1
    return last
  }

  mutating func withdraw(_ ordinal: UInt64) {
    guard ordinal > floor else {
      forgotten += 1
      return
    }
    let index = withdrawn.lastIndex { $0 < ordinal }.map { $0 + 1 } ?? 0
    withdrawn.insert(ordinal, at: index)
    guard withdrawn.count > Self.limit else { return }
    let half = Self.limit / 2
    floor = withdrawn[half - 1]
    forgotten += UInt64(half)
    withdrawn.removeSubrange(0..<half)
  }

  /// Returns the ordinal of the last request that the peer saw, by its count of accepted ones.
  package func ordinal(ofAccepted accepted: UInt64) -> UInt64 {
    guard accepted < last else { return last }
    var result = max(accepted + forgotten, floor)
    for ordinal in withdrawn {
      guard ordinal <= result else { break }
      result += 1
    }
    return result
  }
}
