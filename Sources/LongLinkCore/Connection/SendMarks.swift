// SPDX-License-Identifier: Apache-2.0

/// Which senders must wait, because too many bytes wait to be written.
package struct SendMarks: Equatable, Sendable {
  /// Whether the waiting bytes are above the high-water mark: requests and pushes must wait.
  package private(set) var isAbove = false
  /// Whether the waiting fragmented messages are above their mark: other large ones must wait.
  package private(set) var isAboveLarge = false

  /// Whether a request or push of this size can be sent now, given an open connection.
  package func admits(_ count: Int) -> Bool {
    !isAbove && (!isAboveLarge || count <= Wire.fragmentLimit)
  }

  /// Whether `update` can change anything while `waiting` bytes wait.
  @inline(__always)
  func mayCross(_ waiting: Int, _ marks: WaterMarks) -> Bool {
    isAbove || isAboveLarge || waiting >= marks.high || waiting >= marks.large
  }

  /// Updates the marks: above the high one senders wait until the waiting bytes have fallen to the
  /// low one. Returns how many were exceeded, and whether senders can continue.
  mutating func update(
    small: Int, large: Int, _ marks: WaterMarks
  ) -> (exceeded: UInt64, hasFallen: Bool) {
    let former = self
    isAbove = small > (isAbove ? marks.low : marks.high - 1)
    isAboveLarge = large > (isAboveLarge ? marks.large / 2 : marks.large - 1)
    let exceeded = (isAbove && !former.isAbove, isAboveLarge && !former.isAboveLarge)
    return (
      (exceeded.0 ? 1 : 0) + (exceeded.1 ? 1 : 0),
      former.isAbove && !isAbove || former.isAboveLarge && !isAboveLarge
    )
  }
}
