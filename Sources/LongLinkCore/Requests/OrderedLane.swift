// SPDX-License-Identifier: Apache-2.0

/// The ordered requests, which are sent in the order of their submission.
///
/// An ordered request is passed to a link when all earlier unfinished ones are on the same link and
/// have been encoded completely. Otherwise an earlier one, partly sent or on another connection,
/// could arrive after it. A returned request is retried only if neither it nor a later one may have
/// arrived: its first attempt could still arrive on the old connection, after the requests that
/// follow the retry.
@usableFromInline struct OrderedLane: Equatable {
  /// The waiting requests, earliest first.
  var waiting = IndexedHeap<RequestID>()
  /// The numbers of requests on a link, ascending. All are on one link.
  private var carried: [UInt64] = []
  private var link: UInt32 = 0
  /// The number of the carried request that is not encoded completely; nil if all are.
  private var unfinished: UInt64?
  /// The number of the latest request that may have arrived and is on no link any more, plus 1.
  private var reached: UInt64 = 0

  /// Whether the first waiting request can be passed to this link.
  func admits(_ link: UInt32) -> Bool {
    carried.isEmpty || (self.link == link && unfinished == nil)
  }

  @usableFromInline mutating func placed(_ number: UInt64, on link: UInt32, isWhole: Bool) {
    self.link = link
    carried.insert(number, at: position(of: number))
    if !isWhole { unfinished = number }
  }

  /// Records that the last byte of a request has been encoded.
  mutating func finished(_ number: UInt64) {
    if unfinished == number { unfinished = nil }
  }

  /// Records that a request is on no link any more.
  @usableFromInline mutating func removed(_ number: UInt64) {
    let position = position(of: number)
    guard position < carried.count, carried[position] == number else { return }
    carried.remove(at: position)
    finished(number)
  }

  /// Records that a request may have arrived.
  @usableFromInline mutating func arrived(_ number: UInt64) {
    reached = max(reached, number + 1)
  }

  /// Whether neither this request nor a later one may have arrived, and no later one is on a link.
  func isUnpassed(_ number: UInt64) -> Bool {
    number >= reached && carried.last ?? 0 <= number
  }

  /// The index of a number in `carried`, or where to insert it.
  private func position(of number: UInt64) -> Int {
    var range = 0..<carried.count
    // Most numbers are appended.
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
