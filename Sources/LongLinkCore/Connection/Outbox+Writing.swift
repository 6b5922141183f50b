// SPDX-License-Identifier: Apache-2.0

extension Outbox {
  /// Above this memory is given back as soon as most of it is empty. Below it is what frames of up
  /// to 64 KiB need in each turn: the `encodeLimit` and one more, doubled as the queue grows.
  private static let largeCapacity = 655_360

  /// Where in `bytes` those stand that are to be written next, in one piece.
  package var chunk: Range<Int> {
    let count = holes.isEmpty ? bytes.count : Int(holes[0].lowerBound - written)
    return bytes.position..<bytes.position + count
  }

  /// Notes that the first `count` bytes of the chunk have been written.
  package mutating func wrote(_ count: Int) {
    bytes.removeFirst(count)
    // What a large body took is not needed for what is left of it.
    if bytes.capacity > Outbox.largeCapacity { bytes.releaseRoom() }
    frames = 0
    if !holes.isEmpty { skipHole() }
    dialect?.requests.forget(before: written)
  }

  /// Passes over the hole that has come to the front: there is one at most, since they are apart.
  private mutating func skipHole() {
    guard let hole = holes.first, hole.lowerBound == written else { return }
    bytes.removeFirst(hole.count)
    holes.removeFirst()
  }

  /// Takes a message back: one kept back, or one that begins at `begin` and of which no byte left.
  package mutating func withdraw(
    _ kind: FrameKind, serial: UInt32, encodedAt begin: UInt64?
  ) -> Withdrawal {
    let message = kept.remove(kind, serial: serial)
    if message?.sent == 0 { return .unsent }
    guard let begin, begin >= written, begin < end, !isHole(begin) else {
      return message == nil ? .tooLate : .partial
    }
    // Of a message in fragments no second one is encoded before the first has begun to leave: see
    // `room(for:)`.
    guard let length = encodedLength(kind, serial, at: begin) else { return .tooLate }
    takeOut(begin..<begin + UInt64(length))
    skipHole()
    return .unsent
  }

  /// The place of the first hole that ends behind an offset.
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

  /// Adds a hole, joined with those that it touches.
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

  /// The bytes of a frame that begins at an offset; nil for another one.
  private func encodedLength(_ kind: FrameKind, _ serial: UInt32, at offset: UInt64) -> Int? {
    if let dialect { return kind == .request ? dialect.requests.length(at: offset) : nil }
    let start = bytes.position + Int(offset - written)
    let head = unsafe bytes.withStorage { storage in
      // A frame of ours stands here whole: it was encoded at `offset` and not written.
      try? unsafe NativeLayout.head(at: storage.baseAddress! + start)
    }
    guard let head, head.serial == serial, head.kind == kind else { return nil }
    return NativeLayout.headerLength + head.length
  }

  /// Drops what was kept back; what is encoded stays.
  package mutating func dropPending() {
    kept.removeAll()
  }

  /// Gives memory back that is large beside what waits.
  mutating func releaseRoom() { bytes.releaseRoom() }

  /// Forgets all that waits, and gives its memory back: nothing is written any more.
  package mutating func releaseAll() {
    kept.removeAll()
    end -= UInt64(bytes.count)
    holes = []
    bytes = ByteQueue()
  }

  /// Gives memory back that an idle connection does not need.
  package mutating func releaseStorage() {
    bytes.releaseStorage(over: 1024)
    kept.releaseStorage()
  }
}
