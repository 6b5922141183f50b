// SPDX-License-Identifier: Apache-2.0

/// The places of requests that were encoded and then taken back before a byte of them left.
///
/// The peer never saw them, so that its count of accepted requests passes over them. Of very many
/// the oldest are kept as a number alone; what was begun before those counts as accepted, which
/// claims less than is known but nothing wrong.
struct WithdrawnOrdinals: Equatable, Sendable {
  private static let limit = 1024
  private var ordinals: [UInt64] = []
  /// How many were let go of, and the last of them.
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

  /// The place of the last one of `count` requests that left; `count` is below all places given
  /// out.
  func ordinal(of count: UInt64) -> UInt64 {
    var result = max(count + forgotten, floor)
    for ordinal in ordinals {
      guard ordinal <= result else { break }
      result += 1
    }
    return result
  }
}
