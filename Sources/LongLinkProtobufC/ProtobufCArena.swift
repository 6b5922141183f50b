// SPDX-License-Identifier: Apache-2.0

public import CProtobufC
public import LongLinkCore

/// Memory for the fields of one C message, all of it freed at once.
///
/// An arena lives for the length of one call that writes a body, and that call alone uses it. What
/// it hands out is valid as long as the arena is.
@safe
public struct ProtobufCArena: ~Copyable {
  /// The free part of the present chunk.
  @usableFromInline
  var free: UnsafeMutableRawPointer
  @usableFromInline
  var freeCount: Int
  /// The chunk that was allocated last; each begins with the address of the one before it.
  private var lastChunk: UnsafeMutableRawPointer?
  private var nextChunkSize = 4096
  /// Whether messages are filled to be measured alone, so that bytes need not be copied.
  private let measuresOnly: Bool

  /// Starts with memory, aligned to 16, that belongs to someone else and outlives the arena.
  @usableFromInline
  init(first: UnsafeMutableRawBufferPointer, measuresOnly: Bool = false) {
    // Nothing is ever taken of no memory.
    unsafe free = first.baseAddress ?? UnsafeMutableRawPointer(bitPattern: 16)!
    freeCount = first.count
    unsafe lastChunk = nil
    self.measuresOnly = measuresOnly
  }

  deinit {
    var chunk = unsafe lastChunk
    while let current = unsafe chunk {
      // Every chunk begins with this link: `addChunk` wrote it.
      unsafe chunk = current.load(as: UnsafeMutableRawPointer?.self)
      unsafe current.deallocate()
    }
  }

  /// Memory aligned for any field.
  @inlinable
  @inline(__always)
  mutating func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
    let rounded = max(8, (byteCount + 7) & ~7)
    if freeCount < rounded { addChunk(holding: rounded) }
    // There are at least `rounded` bytes now, and `free` moves on past them: nobody else gets them.
    let result = unsafe free
    unsafe free = free + rounded
    freeCount &-= rounded
    return unsafe result
  }

  @usableFromInline
  mutating func addChunk(holding byteCount: Int) {
    let link = 16
    let size = max(nextChunkSize, byteCount) + link
    nextChunkSize = min(nextChunkSize * 2, 1 << 20)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    // The link is inside the chunk, whose size counts it in.
    unsafe chunk.storeBytes(of: lastChunk, as: UnsafeMutableRawPointer?.self)
    unsafe lastChunk = chunk
    unsafe free = chunk + link
    freeCount = size - link
  }

  /// What is left of the present chunk, and may be handed out later.
  @inlinable
  var scratch: UnsafeMutableBufferPointer<UInt8> {
    // Whatever was there before, bytes may be written there.
    unsafe UnsafeMutableBufferPointer(
      start: free.assumingMemoryBound(to: UInt8.self), count: freeCount)
  }

  @inlinable
  mutating func array<T>(of type: T.Type, count: Int) -> UnsafeMutableBufferPointer<T> {
    // The memory is handed out for this array alone; C types need no alignment above 8.
    let memory = unsafe allocate(count * MemoryLayout<T>.stride)
    return unsafe UnsafeMutableBufferPointer(
      start: memory.bindMemory(to: type, capacity: count), count: count)
  }
}

extension ProtobufCArena {
  /// A string field, ended by NUL.
  ///
  /// Throws `.interiorNUL` where the string contains U+0000, since C would see it end there.
  public mutating func string(_ value: String) throws(BodyError) -> UnsafeMutablePointer<CChar>? {
    let count = value.utf8.count
    // There is room for the text and the NUL behind it.
    let memory = unsafe allocate(count + 1)
    unsafe memory.storeBytes(of: 0, toByteOffset: count, as: UInt8.self)
    let copy = unsafe UnsafeMutableRawBufferPointer(start: memory, count: count)
    let isPlain = unsafe value.utf8.withContiguousStorageIfAvailable { text in
      let text = UnsafeRawBufferPointer(text)
      unsafe copy.copyMemory(from: text)
      return unsafe text.isPlainText
    }
    if isPlain == nil { unsafe copy.copyBytes(from: value.utf8) }
    if isPlain != true, unsafe copy.contains(0) {
      throw BodyError(.interiorNUL, detail: "a string to be sent contains U+0000")
    }
    // The same bytes, which C calls char.
    return unsafe memory.assumingMemoryBound(to: CChar.self)
  }

  /// A bytes field.
  public mutating func bytes(_ value: [UInt8]) -> ProtobufCBinaryData {
    if value.isEmpty { return unsafe ProtobufCBinaryData(len: 0, data: nil) }
    // A message is measured by the count alone: nobody reads the bytes then.
    let memory = unsafe array(of: UInt8.self, count: measuresOnly ? 1 : value.count)
    if !measuresOnly { unsafe _ = memory.initialize(fromContentsOf: value) }
    return unsafe ProtobufCBinaryData(len: value.count, data: memory.baseAddress)
  }

  /// A message field; nil, which is no field, for nil.
  ///
  /// Traps where `CMessage`, which the field has, is not the structure of `Message`.
  @inlinable
  public mutating func message<Message: ProtobufCBody, CMessage>(
    _ value: Message?,
    as type: CMessage.Type = CMessage.self
  ) throws(BodyError) -> UnsafeMutablePointer<CMessage>? {
    guard let value else { return nil }
    let layout = Message.layout
    layout.requireMatch(type)
    return try unsafe layout.makeMessage(value, in: &self).assumingMemoryBound(to: type)
  }

  /// A repeated field of strings; the count goes into the field beside it.
  ///
  /// Throws as `string(_:)` does.
  public mutating func strings(
    _ values: [String]
  ) throws(BodyError) -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
    if values.isEmpty { return nil }
    let fields = unsafe array(of: UnsafeMutablePointer<CChar>?.self, count: values.count)
    for (index, value) in values.enumerated() {
      unsafe fields[index] = try string(value)
    }
    return fields.baseAddress
  }

  /// A repeated field of bytes; the count goes into the field beside it.
  public mutating func bytes(
    _ values: [[UInt8]]
  ) -> UnsafeMutablePointer<ProtobufCBinaryData>? {
    if values.isEmpty { return nil }
    let fields = unsafe array(of: ProtobufCBinaryData.self, count: values.count)
    for (index, value) in values.enumerated() {
      unsafe fields[index] = bytes(value)
    }
    return fields.baseAddress
  }

  /// A repeated field of numbers, booleans (as `protobuf_c_boolean`) or enumeration values.
  @inlinable
  public mutating func scalars<Scalar: BitwiseCopyable>(
    _ values: [Scalar]
  ) -> UnsafeMutablePointer<Scalar>? {
    if values.isEmpty { return nil }
    let fields = unsafe array(of: Scalar.self, count: values.count)
    unsafe _ = fields.initialize(fromContentsOf: values)
    return fields.baseAddress
  }

  /// A repeated field of messages; the count goes into the field beside it.
  ///
  /// Traps where `CMessage`, which the field has, is not the structure of `Message`.
  @inlinable
  public mutating func messages<Message: ProtobufCBody, CMessage>(
    _ values: [Message],
    as type: CMessage.Type = CMessage.self
  ) throws(BodyError) -> UnsafeMutablePointer<UnsafeMutablePointer<CMessage>?>? {
    if values.isEmpty { return nil }
    let fields = unsafe array(of: UnsafeMutablePointer<CMessage>?.self, count: values.count)
    for (index, value) in values.enumerated() {
      unsafe fields[index] = try message(value)
    }
    return fields.baseAddress
  }
}
