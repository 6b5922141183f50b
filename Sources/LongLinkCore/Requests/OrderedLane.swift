// SPDX-License-Identifier: Apache-2.0

/// The requests that leave in the order of their submission.
///
/// Such a request goes to a link when each earlier one that has not ended is on the same link and
/// has been encoded to its end: what is still being sent, or is under way on another connection,
/// could arrive behind it. One that comes back is sent again only while neither a later one nor it
/// itself may have arrived: what is still on its way on the old connection, which nobody can call
/// back, would arrive behind those that follow the second sending.
@usableFromInline struct OrderedLane: Equatable {
  /// Those that wait, the earliest first.
  var waiting = IndexedHeap<RequestID>()
  /// The numbers of those that a link carries, ascending. All are on one link.
  private var carried: [UInt64] = []
  private var link: UInt32 = 0
  /// The number of the one whose last byte has not been encoded.
  private var unfinished: UInt64?
  /// The number of the latest one that may have arrived and is not carried any more, plus 1.
  private var reached: UInt64 = 0

  /// Whether the next one may go to a link.
  func admits(_ link: UInt32) -> Bool {
    carried.isEmpty || (self.link == link && unfinished == nil)
  }

  @usableFromInline mutating func placed(_ number: UInt64, on link: UInt32, isWhole: Bool) {
    self.link = link
    carried.insert(number, at: position(of: number))
    if !isWhole { unfinished = number }
  }

  /// Tells that the last byte of a request has been encoded.
  mutating func finished(_ number: UInt64) {
    if unfinished == number { unfinished = nil }
  }

  /// Tells that no link carries a request any more.
  @usableFromInline mutating func left(_ number: UInt64) {
    let position = position(of: number)
    guard position < carried.count, carried[position] == number else { return }
    carried.remove(at: position)
    finished(number)
  }

  /// Tells that a request may have arrived.
  @usableFromInline mutating func arrived(_ number: UInt64) {
    reached = max(reached, number + 1)
  }

  /// Whether neither it nor a later one has arrived or may have, and no later one is under way.
  func isUnpassed(_ number: UInt64) -> Bool {
    number >= reached && carried.last ?? 0 <= number
  }

  /// Where a number stands, or would stand, among those that are carried.
  private func position(of number: UInt64) -> Int {
    var range = 0..<carried.count
    // Most come at the end.
    if let last = carried.last, last < number { return carried.count }
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      if carried[middle] < number {
        range = middle + 1..<range.upperBound
      } else {
        range = range.lowerBound..<middle
      }
    }
    return range.lowerBound
  }
}
