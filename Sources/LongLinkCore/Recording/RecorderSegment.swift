// SPDX-License-Identifier: Apache-2.0

/// A piece of a recorder's ring. Snapshots share it with the recorder, which does not write to the
/// bytes that a snapshot has.
@safe final class RecorderSegment: @unchecked Sendable {
  let size: Int
  /// The loop writes behind what snapshots have; nobody else writes.
  let bytes: UnsafeMutableRawPointer
  /// The bytes in use, once the segment is full.
  var used = 0

  init(size: Int) {
    self.size = size
    unsafe bytes = .allocate(byteCount: size, alignment: 16)
  }

  deinit { unsafe bytes.deallocate() }
}

/// What a recorder's ring holds at one time, which any thread can read. It is cheap to make: it
/// shares the ring's segments.
package struct RecorderSnapshot: Sendable {
  /// The full segments, the oldest first, which the snapshot shares with the recorder until that
  /// has another one; and the one that was being filled, with its bytes in use.
  let full: [RecorderSegment]
  let last: RecorderSegment
  let lastUsed: Int
  /// Whether the ring has forgotten older records.
  package let hasForgotten: Bool
  /// The instant 0 of the loop's clock in nanoseconds since 1970.
  package let epoch: Int64
  /// The number of the loop among those of its server; 0 for others.
  package let loop: UInt8

  /// A cursor in front of the oldest record.
  package var cursor: RecorderCursor { RecorderCursor(snapshot: self) }
}

/// A position among the records of a snapshot, which it keeps alive.
package struct RecorderCursor {
  package let snapshot: RecorderSnapshot
  private var index = 0
  private var offset = 0

  fileprivate init(snapshot: RecorderSnapshot) {
    self.snapshot = snapshot
  }

  /// The next record, without moving; nil at the end. It is valid while the snapshot is.
  package mutating func peek() -> RecorderRecord? {
    while index <= snapshot.full.count {
      let isLast = index == snapshot.full.count
      let segment = isLast ? snapshot.last : snapshot.full[index]
      let used = isLast ? snapshot.lastUsed : segment.used
      // Whole records fill the used bytes of a segment.
      if offset < used { return unsafe RecorderRecord(segment.bytes + offset) }
      index += 1
      offset = 0
    }
    return nil
  }

  /// Moves behind a record that `peek` has returned.
  package mutating func skip(_ record: RecorderRecord) { offset += record.size }
}

/// One record in a snapshot, which has to outlive it.
@safe package struct RecorderRecord {
  /// The bytes of a record before its numbers.
  static let headSize = 16

  private let bytes: UnsafePointer<UInt8>
  let size: Int
  package let event: RecordedEvent
  /// How many messages and effects of the link were taken since its record before.
  package let taken: UInt8
  /// The number of the link; 0 for an event of the whole loop.
  package let link: UInt32
  package let instant: LinkInstant

  init(_ start: UnsafeRawPointer) {
    let head = unsafe start.loadUnaligned(as: UInt64.self)
    size = Int(head & 0xFFFF)
    guard let event = RecordedEvent(rawValue: UInt8(truncatingIfNeeded: head >> 16)) else {
      preconditionFailure("a record without an event")
    }
    self.event = event
    taken = UInt8(truncatingIfNeeded: head >> 24)
    link = UInt32(truncatingIfNeeded: head >> 32)
    instant = LinkInstant(
      nanoseconds: unsafe start.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    unsafe bytes = start.assumingMemoryBound(to: UInt8.self)
  }

  /// The numbers of the event.
  package var numbers: [UInt64] {
    (0..<event.numbers).map { index in
      // The recorder has written this many numbers of eight bytes each.
      unsafe UnsafeRawPointer(bytes).loadUnaligned(
        fromByteOffset: Self.headSize + 8 * index, as: UInt64.self)
    }
  }

  /// The bytes behind the numbers, if the event has no parts of frames.
  package var rest: [UInt8] {
    let start = Self.headSize + 8 * event.numbers
    return unsafe [UInt8](UnsafeBufferPointer(start: bytes + start, count: size - start))
  }

  /// A part of a frame, as a read or a write has moved it: first the bytes that were kept, then the
  /// number of those that were left out.
  package struct Part {
    package let kept: [UInt8]
    package let leftOut: Int
    /// Whether the frame begins with this part.
    package let begins: Bool
    /// Whether it ends with it.
    package let ends: Bool
  }

  /// Calls a function with each part of a frame.
  package func forEachPart(_ body: (Part) -> Void) {
    var offset = Self.headSize + 8 * event.numbers
    while offset < size {
      // Whole parts fill the record.
      let word = unsafe UnsafeRawPointer(bytes).loadUnaligned(
        fromByteOffset: offset, as: UInt64.self)
      let count = Int(word & Recorder.keptMask)
      let kept = unsafe [UInt8](UnsafeBufferPointer(start: bytes + offset + 8, count: count))
      body(
        Part(
          kept: kept, leftOut: Int(word >> 32), begins: word & Recorder.begins != 0,
          ends: word & Recorder.ends != 0))
      offset += 8 + count
    }
  }
}
