// SPDX-License-Identifier: Apache-2.0

extension Outbox {
  /// The capacity above which memory is freed as soon as most of it is empty. Frames of up to 64
  /// KiB stay below it in each turn: it is twice the `encodeLimit` plus one frame, as the queue
  /// doubles.
  private static let largeCapacity = 655_360

  /// The positions in `bytes` of the next bytes to write, in one contiguous piece.
  package var chunk: Range<Int> {
    let count = holes.isEmpty ? bytes.count : Int(holes[0].lowerBound - written)
    return bytes.position..<bytes.position + count
  }

  /// Notes that the first `count` bytes of the chunk have been written.
  package mutating func wrote(_ count: Int) {
    bytes.removeFirst(count)
    // The memory of a large body is not needed for its rest.
    if bytes.capacity > Outbox.largeCapacity { bytes.releaseRoom() }
    frames = 0
    if !holes.isEmpty { skipHole() }
    dialect?.requests.forget(before: written)
  }

  /// Skips the hole at the front, if any. There is at most one, because holes are not adjacent.
  private mutating func skipHole() {
    guard let hole = holes.first, hole.lowerBound == written else { return }
    bytes.removeFirst(hole.count)
    holes.removeFirst()
  }

  /// Withdraws a message: a queued one, or one encoded at `begin` of which no byte has been
  /// written. `takesFollowing` also withdraws the frames of its exchange behind it.
  package mutating func withdraw(
    _ kind: FrameKind, serial: UInt32, encodedAt begin: UInt64?, takesFollowing: Bool = false
  ) -> Withdrawal {
    let message = kept.remove(kind, serial: serial)
    if message?.sent == 0 { return .unsent }
    guard let begin, begin >= written, begin < end, !isHole(begin) else {
      return message == nil ? .tooLate : .partial
    }
    // A message's second fragment is not encoded before the first has begun to be written: see
    // `room(for:)`.
    guard let length = encodedLength(kind, serial, at: begin) else { return .tooLate }
    takeOut(begin..<begin + UInt64(length))
    if takesFollowing { takeOutFrames(of: serial, behind: begin + UInt64(length)) }
    skipHole()
    return .unsent
  }

  /// Takes out all encoded frames of an exchange from an offset on.
  private mutating func takeOutFrames(of serial: UInt32, behind offset: UInt64) {
    guard dialect == nil else { return }
    var offset = offset
    while offset < end {
      let start = bytes.position + Int(offset - written)
      let head = unsafe bytes.withStorage { storage in
        // A whole frame of this side is here: `offset` is the end of the one before.
        try? unsafe NativeLayout.head(at: storage.baseAddress! + start)
      }
      guard let head else { return }
      let next = offset + UInt64(NativeLayout.headerLength + head.length)
      if head.serial == serial, !isHole(offset) { takeOut(offset..<next) }
      offset = next
    }
  }

  /// The index of the first hole that ends behind an offset.
  private func indexOfHole(endingBehind offset: UInt64) -> Int {
    var range = 0..<holes.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      if holes[middle].upperBound <= offset {
        range = middle + 1..<range.upperBound
      } else {
        range = range.lowerBound..<middle
      }
    }
    return range.lowerBound
  }

  private func isHole(_ offset: UInt64) -> Bool {
    let index = indexOfHole(endingBehind: offset)
    return index < holes.count && holes[index].contains(offset)
  }

  /// Adds a hole, merged with adjacent ones.
  private mutating func takeOut(_ frame: Range<UInt64>) {
    var hole = frame
    var index = indexOfHole(endingBehind: frame.lowerBound)
    if index < holes.count, holes[index].lowerBound == hole.upperBound {
      hole = hole.lowerBound..<holes.remove(at: index).upperBound
    }
    if index > 0, holes[index - 1].upperBound == hole.lowerBound {
      index -= 1
      hole = holes.remove(at: index).lowerBound..<hole.upperBound
    }
    holes.insert(hole, at: index)
  }

  /// The length of the frame that begins at an offset; nil if that is another frame.
  private func encodedLength(_ kind: FrameKind, _ serial: UInt32, at offset: UInt64) -> Int? {
    if let dialect { return kind == .request ? dialect.requests.length(at: offset) : nil }
    let start = bytes.position + Int(offset - written)
    let head = unsafe bytes.withStorage { storage in
      // A whole frame of this side is here: it was encoded at `offset` and not written.
      try? unsafe NativeLayout.head(at: storage.baseAddress! + start)
    }
    guard let head, head.serial == serial, head.kind == kind else { return nil }
    return NativeLayout.headerLength + head.length
  }

  /// Drops all queued messages; encoded bytes remain.
  package mutating func dropPending() {
    kept.removeAll()
  }

  /// Frees memory that is much larger than the waiting bytes.
  mutating func releaseRoom() { bytes.releaseRoom() }

  /// Drops everything that waits and frees its memory: nothing will be written any more.
  package mutating func releaseAll() {
    kept.removeAll()
    end -= UInt64(bytes.count)
    holes = []
    bytes = ByteQueue()
  }

  /// Frees memory that an idle connection does not need.
  package mutating func releaseStorage() {
    bytes.releaseStorage(over: 1024)
    kept.releaseStorage()
  }
}
