// SPDX-License-Identifier: Apache-2.0

/// A contiguous queue of bytes, which are appended at the back and taken from the front.
///
/// Positions are indices into the storage; they stay valid until the next append.
@safe
@usableFromInline package struct ByteQueue: ~Copyable {
  // `capacity` bytes that only this queue owns, or nil if there are none. The bytes before `end`
  // are initialized, so `head..<end` can be read.
  @usableFromInline var storage: UnsafeMutableRawPointer?
  /// The size of the storage in bytes, including bytes already taken.
  @usableFromInline package var capacity = 0
  @usableFromInline var head = 0
  @usableFromInline var end = 0

  /// Makes an empty queue without allocating.
  @inlinable package init() {}

  @inlinable deinit {
    unsafe storage?.deallocate()
  }

  /// The number of bytes that have not been taken.
  @inlinable package var count: Int { end - head }
  /// Whether all bytes have been taken.
  @inlinable package var isEmpty: Bool { head == end }
  /// The position of the first byte.
  @inlinable package var position: Int { head }
}

// MARK: - Taking

extension ByteQueue {
  /// Takes `count` bytes from the front.
  @inlinable @inline(__always)
  package mutating func removeFirst(_ count: Int) {
    skip(count)
    if head == end { removeAll() }
  }

  /// Takes `count` bytes from the front without touching the storage, so that positions stay valid.
  @inlinable @inline(__always)
  package mutating func skip(_ count: Int) {
    precondition(count <= self.count)
    head += count
  }

  /// Takes all bytes.
  @inlinable package mutating func removeAll() {
    head = 0
    end = 0
  }

  /// Frees the storage if the queue is empty and its capacity is greater than `bytes`.
  @inlinable package mutating func releaseStorage(over bytes: Int) {
    if isEmpty, capacity > bytes { self = ByteQueue() }
  }

  /// Frees storage that is much larger than its content.
  @inlinable package mutating func releaseRoom() {
    var nothing = ByteQueue()
    releaseRoom(to: &nothing, upTo: 0)
  }

  /// Gives up storage that is much larger than its content. It goes to `spare`, an empty queue, if
  /// it is larger than that queue's storage and has at most `limit` bytes.
  @usableFromInline package mutating func releaseRoom(to spare: inout ByteQueue, upTo limit: Int) {
    guard isEmpty ? capacity > 0 : capacity > 65_536 && count < capacity / 8 else { return }
    let isKept = capacity > spare.capacity && capacity <= limit
    if isKept, !isEmpty, spare.capacity >= count, spare.capacity <= 65_536 {
      // The content fits into the spare storage, so the two storages are exchanged.
      withBytes(head..<end) { spare.append($0) }
      removeAll()
      return swap(&self, &spare)
    }
    var rest = isEmpty ? ByteQueue() : detachRest()
    swap(&self, &rest)
    rest.removeAll()
    if isKept { swap(&rest, &spare) }
  }

  /// Takes all bytes as an array, and frees the storage.
  @inlinable package mutating func takeAll() -> [UInt8] {
    let bytes = withBytes(head..<end) { [UInt8](decoding: $0) }
    self = ByteQueue()
    return bytes
  }

  /// Moves the content to a new queue, and keeps the emptied storage.
  @inlinable package mutating func detachRest() -> ByteQueue {
    var rest = ByteQueue()
    withBytes(head..<end) { rest.append($0) }
    removeAll()
    return rest
  }
}

// MARK: - Appending

extension ByteQueue {
  /// Makes room for `count` bytes at the back, and returns where they begin.
  @inlinable @inline(__always)
  mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
    if head == end {
      removeAll()
    } else if head >= 4096, head >= self.count {
      moveToFront()
    }
    // The difference is never negative, so it cannot overflow as a sum might.
    if count > capacity - end || capacity == 0 { grow(by: count) }
    return unsafe storage! + end
  }

  /// Moves the content to the front of the storage.
  @usableFromInline mutating func moveToFront() {
    let count = count
    // Both ranges lie within the storage, and `copyMemory` allows them to overlap.
    unsafe storage!.copyMemory(from: storage! + head, byteCount: count)
    head = 0
    end = count
  }

  /// Makes room for `count` bytes at the back without allocating, if necessary by exchanging
  /// storage with `spare`, an empty queue. Returns false if there is not enough room.
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

  /// Makes room for `count` bytes at the back. New storage has no more room than that.
  package mutating func reserveExactly(_ count: Int) {
    if count > capacity - end { move(to: self.count + count) }
  }

  /// Moves the content to storage with room for `count` more bytes.
  @usableFromInline mutating func grow(by count: Int) {
    move(to: max(self.count + count, 2 * capacity, 32))
  }

  /// Moves the content to storage of `room` bytes, which must be large enough for it.
  @usableFromInline mutating func move(to room: Int) {
    let left = count
    let memory = UnsafeMutableRawPointer.allocate(byteCount: room, alignment: 16)
    if let storage = unsafe storage {
      // `room` is at least `left`.
      unsafe memory.copyMemory(from: storage + head, byteCount: left)
      unsafe storage.deallocate()
    }
    unsafe storage = memory
    capacity = room
    head = 0
    end = left
  }

  /// Appends what `body` writes, at most `capacity` bytes; nothing if it throws.
  @inlinable @inline(__always)
  package mutating func append<Result, Failure>(
    capacity: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // The room is valid until the next append, and the span is finalized before this returns.
    let room = unsafe UnsafeMutableRawBufferPointer(start: reserve(capacity), count: capacity)
    var span = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
    let result = try body(&span)
    end += unsafe span.finalize(for: room)
    return result
  }

  /// Appends `count` bytes, all of which `body` must write; nothing if it throws.
  @inlinable @inline(__always)
  package mutating func append<Failure>(
    count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    // The room is valid until the next append, and the buffer is not used after this returns.
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
  /// Passes the storage, including bytes already taken, to `body`. Index it by position.
  @inlinable @inline(__always)
  package func withStorage<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe body(UnsafeRawBufferPointer(start: storage, count: end))
  }

  /// Passes the bytes at `positions`, which must still be valid, to `body`.
  @inlinable @inline(__always)
  package func withBytes<Result, Failure>(
    _ positions: Range<Int>, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(positions.lowerBound >= 0 && positions.upperBound <= end, "the bytes are gone")
    // The range is within the initialized bytes, by the precondition above.
    let start = unsafe storage.map { unsafe UnsafeRawPointer($0 + positions.lowerBound) }
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: positions.count)
    return try body(unsafe RawSpan(_unsafeBytes: bytes))
  }

  /// The eight bytes at a position as a number, the first one in its lowest bits; nil near the end.
  @inlinable @inline(__always)
  package func word(at position: Int) -> UInt64? {
    guard let storage = unsafe storage, position >= 0, position <= end &- 8 else { return nil }
    // The position is within the initialized bytes, by the condition above.
    return UInt64(
      littleEndian: unsafe storage.loadUnaligned(fromByteOffset: position, as: UInt64.self))
  }

  /// Passes the storage to `body` so that it can change bytes in place.
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
