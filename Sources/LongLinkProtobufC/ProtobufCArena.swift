// SPDX-License-Identifier: Apache-2.0

public import CProtobufC
public import LongLinkCore

/// Memory for the fields of one C message, all freed at once.
///
/// An arena is used by one call that writes a body, and lives until that call returns. Its pointers
/// are valid as long as it lives.
@safe
public struct ProtobufCArena: ~Copyable {
  /// The free part of the current chunk.
  @usableFromInline
  var free: UnsafeMutableRawPointer
  @usableFromInline
  var freeCount: Int
  /// The chunk allocated last. Each chunk begins with the address of the previous one.
  private var lastChunk: UnsafeMutableRawPointer?
  private var nextChunkSize = 4096
  /// Whether messages are only measured, so that the contents of bytes fields need no copy.
  private let measuresOnly: Bool

  /// Starts with the caller's memory, which is aligned to 16 and outlives the arena.
  @usableFromInline
  init(first: UnsafeMutableRawBufferPointer, measuresOnly: Bool = false) {
    // The made-up address is never used: without memory, `freeCount` is 0.
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

  /// Returns memory aligned for any field.
  @inlinable
  @inline(__always)
  mutating func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
    let rounded = max(8, (byteCount + 7) & ~7)
    if freeCount < rounded { addChunk(holding: rounded) }
    // At least `rounded` bytes are free now. Moving `free` past them reserves them.
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
    // The link is inside the chunk, whose size includes it.
    unsafe chunk.storeBytes(of: lastChunk, as: UnsafeMutableRawPointer?.self)
    unsafe lastChunk = chunk
    unsafe free = chunk + link
    freeCount = size - link
  }

  /// The rest of the current chunk, which may still be allocated later.
  @inlinable
  var scratch: UnsafeMutableBufferPointer<UInt8> {
    // The memory is free, so bytes may be written to it.
    unsafe UnsafeMutableBufferPointer(
      start: free.assumingMemoryBound(to: UInt8.self), count: freeCount)
  }

  @inlinable
  mutating func array<T>(of type: T.Type, count: Int) -> UnsafeMutableBufferPointer<T> {
    // Nothing else uses this memory; C types need no alignment above 8.
    let memory = unsafe allocate(count * MemoryLayout<T>.stride)
    return unsafe UnsafeMutableBufferPointer(
      start: memory.bindMemory(to: type, capacity: count), count: count)
  }
}

extension ProtobufCArena {
  /// Copies a string for a string field, and ends it with NUL.
  ///
  /// Throws `.interiorNUL` if the string contains U+0000, because C would end it there.
  public mutating func string(_ value: String) throws(BodyError) -> UnsafeMutablePointer<CChar>? {
    let count = value.utf8.count
    // There is room for the text and the NUL after it.
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

  /// Makes the value of a bytes field.
  public mutating func bytes(_ value: [UInt8]) -> ProtobufCBinaryData {
    if value.isEmpty { return unsafe ProtobufCBinaryData(len: 0, data: nil) }
    // Measuring a message reads only the count, not the bytes.
    let memory = unsafe array(of: UInt8.self, count: measuresOnly ? 1 : value.count)
    if !measuresOnly { unsafe _ = memory.initialize(fromContentsOf: value) }
    return unsafe ProtobufCBinaryData(len: value.count, data: memory.baseAddress)
  }

  /// Makes the C message of a message field; nil, which makes the field absent, if `value` is nil.
  ///
  /// Throws the errors of `fill` of the message's layout. Traps if `CMessage`, the type of the
  /// field, is not the structure of `Message`.
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

  /// Copies strings for a repeated field, whose count you set separately; nil if there are none.
  ///
  /// Throws like `string(_:)`.
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

  /// Makes the values of a repeated bytes field, whose count you set separately; nil if there are
  /// none.
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

  /// Copies numbers, booleans (as `protobuf_c_boolean`) or enumeration values for a repeated field,
  /// whose count you set separately; nil if there are none.
  @inlinable
  public mutating func scalars<Scalar: BitwiseCopyable>(
    _ values: [Scalar]
  ) -> UnsafeMutablePointer<Scalar>? {
    if values.isEmpty { return nil }
    let fields = unsafe array(of: Scalar.self, count: values.count)
    unsafe _ = fields.initialize(fromContentsOf: values)
    return fields.baseAddress
  }

  /// Makes the C messages of a repeated field, whose count you set separately; nil if there are
  /// none.
  ///
  /// Throws and traps like `message(_:as:)`.
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
