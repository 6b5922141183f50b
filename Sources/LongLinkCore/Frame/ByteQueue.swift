/// Bytes that are appended at the back and taken from the front, in one contiguous piece.
///
/// Positions are indices into the storage; they stay valid until the next append.
@_spi(Containers)
@frozen
public struct ByteQueue: Sendable {
  @usableFromInline var storage: [UInt8] = []
  @usableFromInline var head = 0

  /// Makes an empty queue, which allocates nothing.
  @inlinable public init() {}

  /// Takes an array over.
  @inlinable public init(_ bytes: [UInt8]) {
    storage = bytes
  }

  /// Bytes that have not been taken.
  @inlinable public var count: Int { storage.count - head }
  /// Whether all bytes have been taken.
  @inlinable public var isEmpty: Bool { head == storage.count }
  /// Bytes that the storage has room for, taken ones included.
  @inlinable public var capacity: Int { storage.capacity }
  /// Where the first byte is.
  @inlinable public var position: Int { head }

  /// Takes bytes from the front.
  @inlinable @inline(__always)
  public mutating func removeFirst(_ count: Int) {
    precondition(count <= self.count)
    head += count
    if head == storage.count {
      storage.removeAll(keepingCapacity: true)
      head = 0
    }
  }

  /// Takes bytes from the front and leaves the storage as it is, so that positions stay valid.
  @inlinable @inline(__always)
  public mutating func skip(_ count: Int) {
    precondition(count <= self.count)
    head += count
  }

  /// Takes everything.
  @inlinable public mutating func removeAll() {
    storage.removeAll(keepingCapacity: true)
    head = 0
  }

  /// Gives the storage back when nothing is in it and it is larger than `bytes`.
  @inlinable public mutating func releaseStorage(over bytes: Int) {
    if isEmpty, storage.capacity > bytes {
      storage = []
      head = 0
    }
  }

  /// Takes everything as an array.
  @inlinable public mutating func takeAll() -> [UInt8] {
    let bytes = head == 0 ? storage : Array(storage[head...])
    self = ByteQueue()
    return bytes
  }

  /// Moves what is left into storage of its own and keeps the emptied storage.
  @inlinable public mutating func detachRest() -> ByteQueue {
    let rest = ByteQueue(Array(storage[head...]))
    removeAll()
    return rest
  }

  /// Moves what is left to the front, when that frees at least as much as has to be moved.
  @inlinable mutating func reclaim() {
    if head == storage.count {
      storage.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 4096, head >= count {
      storage.removeSubrange(0..<head)
      head = 0
    }
  }

  /// Appends what `body` writes into at most `capacity` bytes of room.
  @inlinable public mutating func append<Result, Failure>(
    capacity: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    reclaim()
    var result: Result?
    try storage.append(addingCapacity: capacity) { (span) throws(Failure) in
      try unsafe span.withUnsafeMutableBufferPointer { (buffer, count) throws(Failure) in
        // The raw span covers the same free memory and is finished before the closure returns.
        var raw = unsafe OutputRawSpan(
          buffer: UnsafeMutableRawBufferPointer(buffer), initializedCount: count)
        result = try body(&raw)
        count = unsafe raw.finalize(for: UnsafeMutableRawBufferPointer(buffer))
      }
    }
    return result!
  }

  /// Appends a copy of `bytes`.
  @inlinable public mutating func append(_ bytes: RawSpan) {
    append(capacity: bytes.byteCount) { span in
      unsafe bytes.withUnsafeBytes { source in
        unsafe span.appendBytes(source)
      }
    }
  }

  /// Lends the memory of all that is in the storage, taken bytes included; index it by position.
  @inlinable @inline(__always)
  public func withStorage<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe storage.withUnsafeBufferPointer { (buffer) throws(Failure) in
      try unsafe body(UnsafeRawBufferPointer(buffer))
    }
  }

  /// Lends bytes at positions that are still good.
  @inlinable @inline(__always)
  public func withBytes<Result, Failure>(
    _ positions: Range<Int>, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe withStorage { (storage) throws(Failure) -> Result in
      precondition(positions.upperBound <= storage.count, "the bytes are gone")
      // Within the storage, as was just checked.
      return try body(
        unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: storage[positions])))
    }
  }

  /// Lends the memory of a message's first bytes for a correction in place.
  @inlinable public mutating func withMutableStorage(
    _ body: (UnsafeMutableRawBufferPointer) -> Void
  ) {
    unsafe storage.withUnsafeMutableBytes { buffer in unsafe body(buffer) }
  }
}

extension ByteQueue: Equatable {
  /// Whether the same bytes are left in both.
  @inlinable public static func == (lhs: ByteQueue, rhs: ByteQueue) -> Bool {
    lhs.storage[lhs.head...] == rhs.storage[rhs.head...]
  }
}

extension OutputRawSpan {
  /// Appends a copy of `bytes`; there must be room.
  @inlinable @inline(__always)
  public mutating func appendBytes(_ bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count <= freeCapacity, "the body is larger than it said it would be")
    unsafe withUnsafeMutableBytes { buffer, count in
      guard let source = bytes.baseAddress, let target = buffer.baseAddress else { return }
      // Both pointers cover at least bytes.count bytes, by the precondition above.
      unsafe (target + count).copyMemory(from: source, byteCount: bytes.count)
      count += bytes.count
    }
  }
}
