// SPDX-License-Identifier: Apache-2.0

/// Bytes that are appended at the back and taken from the front, in one contiguous piece.
///
/// Positions are indices into the storage; they stay valid until the next append.
@safe
@usableFromInline package struct ByteQueue: ~Copyable {
  // `capacity` bytes that this alone owns, of which those before `end` have been written; nil where
  // there are none. So whatever stands between `head` and `end` can be read.
  @usableFromInline var storage: UnsafeMutableRawPointer?
  /// Bytes that the storage has room for, taken ones included.
  @usableFromInline package var capacity = 0
  @usableFromInline var head = 0
  @usableFromInline var end = 0

  /// Makes an empty queue, which allocates nothing.
  @inlinable package init() {}

  @inlinable deinit {
    unsafe storage?.deallocate()
  }

  /// Bytes that have not been taken.
  @inlinable package var count: Int { end - head }
  /// Whether all bytes have been taken.
  @inlinable package var isEmpty: Bool { head == end }
  /// Where the first byte is.
  @inlinable package var position: Int { head }
}

// MARK: - Taking

extension ByteQueue {
  /// Takes bytes from the front.
  @inlinable @inline(__always)
  package mutating func removeFirst(_ count: Int) {
    skip(count)
    if head == end { removeAll() }
  }

  /// Takes bytes from the front and leaves the storage as it is, so that positions stay valid.
  @inlinable @inline(__always)
  package mutating func skip(_ count: Int) {
    precondition(count <= self.count)
    head += count
  }

  /// Takes everything.
  @inlinable package mutating func removeAll() {
    head = 0
    end = 0
  }

  /// Gives the storage back when nothing is in it and it is larger than `bytes`.
  @inlinable package mutating func releaseStorage(over bytes: Int) {
    if isEmpty, capacity > bytes { self = ByteQueue() }
  }

  /// Gives storage back that is large beside what is left in it.
  @inlinable package mutating func releaseRoom() {
    var nothing = ByteQueue()
    releaseRoom(to: &nothing, upTo: 0)
  }

  /// Gives storage up that is large beside what is left in it: to `spare`, an empty queue, where it
  /// is larger than that one's and of no more than `limit` bytes.
  @usableFromInline package mutating func releaseRoom(to spare: inout ByteQueue, upTo limit: Int) {
    guard isEmpty ? capacity > 0 : capacity > 65_536 && count < capacity / 8 else { return }
    let isKept = capacity > spare.capacity && capacity <= limit
    if isKept, !isEmpty, spare.capacity >= count, spare.capacity <= 65_536 {
      // What is left fits into the spare that is given up.
      withBytes(head..<end) { spare.append($0) }
      removeAll()
      return swap(&self, &spare)
    }
    var rest = isEmpty ? ByteQueue() : detachRest()
    swap(&self, &rest)
    rest.removeAll()
    if isKept { swap(&rest, &spare) }
  }

  /// Takes everything as an array, and gives the storage back.
  @inlinable package mutating func takeAll() -> [UInt8] {
    let bytes = withBytes(head..<end) { [UInt8](decoding: $0) }
    self = ByteQueue()
    return bytes
  }

  /// Moves what is left into storage of its own and keeps the emptied storage.
  @inlinable package mutating func detachRest() -> ByteQueue {
    var rest = ByteQueue()
    withBytes(head..<end) { rest.append($0) }
    removeAll()
    return rest
  }
}

// MARK: - Appending

extension ByteQueue {
  /// Sees to it that `count` bytes have room behind the last one, and returns where they begin.
  @inlinable @inline(__always)
  mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
    if head == end {
      removeAll()
    } else if head >= 4096, head >= self.count {
      moveToFront()
    }
    // The difference is at least 0, so that it does not overflow, as a sum might.
    if count > capacity - end || capacity == 0 { grow(by: count) }
    return unsafe storage! + end
  }

  /// Moves what is left to the front.
  @usableFromInline mutating func moveToFront() {
    let count = count
    // All of it lies within the storage, and the two stretches may overlap.
    unsafe storage!.copyMemory(from: storage! + head, byteCount: count)
    head = 0
    end = count
  }

  /// Sees to it that `count` bytes have room behind the last one, where that takes no new memory;
  /// the storage of `spare`, an empty queue, is taken in exchange. False where more is needed.
  package mutating func makeRoom(for count: Int, with spare: inout ByteQueue) -> Bool {
    guard count > capacity - end else { return true }
    if self.count + count <= capacity {
      moveToFront()
    } else {
      guard self.count + count <= spare.capacity else { return false }
      withBytes(head..<end) { spare.append($0) }
      removeAll()
      swap(&self, &spare)
    }
    return true
  }

  /// Sees to it that `count` bytes have room behind the last one, in storage of just that size.
  package mutating func reserveExactly(_ count: Int) {
    if count > capacity - end { move(to: self.count + count) }
  }

  /// Moves what is left to storage that has room for `count` bytes more.
  @usableFromInline mutating func grow(by count: Int) {
    move(to: max(self.count + count, 2 * capacity, 32))
  }

  /// Moves what is left to storage of so many bytes, which are at least as many.
  @usableFromInline mutating func move(to room: Int) {
    let left = count
    let memory = UnsafeMutableRawPointer.allocate(byteCount: room, alignment: 16)
    if let storage = unsafe storage {
      // The new storage has more room than what is left takes up.
      unsafe memory.copyMemory(from: storage + head, byteCount: left)
      unsafe storage.deallocate()
    }
    unsafe storage = memory
    capacity = room
    head = 0
    end = left
  }

  /// Appends what `body` writes into at most `capacity` bytes of room; nothing where it throws.
  @inlinable @inline(__always)
  package mutating func append<Result, Failure>(
    capacity: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // The room is there until the next append, and the span is finished before this returns.
    let room = unsafe UnsafeMutableRawBufferPointer(start: reserve(capacity), count: capacity)
    var span = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
    let result = try body(&span)
    end += unsafe span.finalize(for: room)
    return result
  }

  /// Appends `count` bytes, all of which `body` writes; nothing where it throws.
  @inlinable @inline(__always)
  package mutating func append<Failure>(
    count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    // As above.
    try unsafe body(UnsafeMutableRawBufferPointer(start: reserve(count), count: count))
    end += count
  }

  /// Appends a copy of `bytes`.
  @inlinable package mutating func append(_ bytes: RawSpan) {
    unsafe append(count: bytes.byteCount) { room in
      unsafe bytes.withUnsafeBytes { unsafe room.copyMemory(from: $0) }
    }
  }
}

// MARK: - Reading

extension ByteQueue {
  /// Lends the memory of all that is in the storage, taken bytes included; index it by position.
  @inlinable @inline(__always)
  package func withStorage<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe body(UnsafeRawBufferPointer(start: storage, count: end))
  }

  /// Lends bytes at positions that are still good.
  @inlinable @inline(__always)
  package func withBytes<Result, Failure>(
    _ positions: Range<Int>, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(positions.lowerBound >= 0 && positions.upperBound <= end, "the bytes are gone")
    // Within what has been written, as was just checked.
    let start = unsafe storage.map { unsafe UnsafeRawPointer($0 + positions.lowerBound) }
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: positions.count)
    return try body(unsafe RawSpan(_unsafeBytes: bytes))
  }

  /// Lends the memory of a message's first bytes for a correction in place.
  @inlinable package mutating func withMutableStorage(
    _ body: (UnsafeMutableRawBufferPointer) -> Void
  ) {
    unsafe body(UnsafeMutableRawBufferPointer(start: storage, count: end))
  }
}

extension OutputRawSpan {
  /// Appends a copy of `bytes`; there must be room.
  @inlinable @inline(__always)
  package mutating func appendBytes(_ bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count <= freeCapacity, "the body is larger than it said it would be")
    unsafe withUnsafeMutableBytes { buffer, count in
      guard let source = bytes.baseAddress, let target = buffer.baseAddress else { return }
      // Both pointers cover at least bytes.count bytes, by the precondition above.
      unsafe (target + count).copyInPieces(from: source, byteCount: bytes.count)
      count += bytes.count
    }
  }
}
