// SPDX-License-Identifier: Apache-2.0

public import CProtobufC
public import LongLinkCore

/// The functions that copy a Swift value to its C message and read one from a body.
///
/// Each type makes its layout once, as `ProtobufCBody.layout`. Any thread may use it. The memory of
/// a layout is never freed.
@safe
public struct ProtobufCLayout<Value>: Sendable {
  @safe
  @usableFromInline
  struct Parts {
    @usableFromInline
    let bound: PackedBound
    /// The type of the C structure.
    @usableFromInline
    let type: ObjectIdentifier
    @usableFromInline
    let byteCount: Int
    /// Initializes memory as a message and fills it.
    @usableFromInline
    let fill:
      @Sendable (UnsafeMutableRawPointer, Value, inout ProtobufCArena) throws(BodyError) -> Void
    @usableFromInline
    let read: @Sendable (inout ProtobufReader) throws(BodyError) -> Value

    @inlinable
    init(
      _ bound: PackedBound,
      _ type: ObjectIdentifier,
      _ byteCount: Int,
      _ fill:
        @escaping @Sendable (
          UnsafeMutableRawPointer, Value, inout ProtobufCArena
        ) throws(BodyError) -> Void,
      _ read: @escaping @Sendable (inout ProtobufReader) throws(BodyError) -> Value
    ) {
      self.bound = bound
      self.type = type
      self.byteCount = byteCount
      unsafe self.fill = unsafe fill
      self.read = read
    }
  }

  /// Constant and never freed, so that copies of a layout need no reference counting.
  @usableFromInline
  nonisolated(unsafe) let parts: UnsafePointer<Parts>

  /// Makes the layout of a Swift type whose C structure is `CMessage`.
  ///
  /// `initialize` is the generated `…__init` of the structure; any other function traps here or
  /// causes undefined behavior later. `fill` copies a value into an initialized message, takes
  /// memory from the arena, and has to give the same result each time. `read` makes a value from
  /// the fields of a message in a body. A `BodyError` thrown by them reaches the caller unchanged;
  /// any other error becomes `.notRepresentable`.
  @inlinable
  public init<CMessage>(
    initialize: @escaping @Sendable (UnsafeMutablePointer<CMessage>?) -> Void,
    fill: @escaping @Sendable (inout CMessage, Value, inout ProtobufCArena) throws -> Void,
    read: @escaping @Sendable (inout ProtobufReader) throws -> Value
  ) {
    // Each pointer below comes from this layout, so it has room for a `CMessage`.
    let parts = unsafe Parts(
      PackedBound(MessageDescription(of: CMessage.self, initialize: initialize)),
      ObjectIdentifier(CMessage.self),
      MemoryLayout<CMessage>.stride,
      { (memory, value, arena) throws(BodyError) in
        let message = unsafe memory.bindMemory(to: CMessage.self, capacity: 1)
        unsafe initialize(message)
        do {
          try unsafe fill(&message.pointee, value, &arena)
        } catch {
          throw BodyError(ofConversion: error)
        }
      },
      { (reader) throws(BodyError) in
        do {
          return try read(&reader)
        } catch {
          throw BodyError(ofConversion: error)
        }
      }
    )
    let memory = UnsafeMutablePointer<Parts>.allocate(capacity: 1)
    unsafe memory.initialize(to: parts)
    unsafe self.parts = UnsafePointer(memory)
  }
}

extension BodyError {
  /// Wraps an error of a conversion. The detail has only its type: an error may quote the body.
  @usableFromInline
  init(ofConversion error: any Error) {
    self = error as? BodyError ?? BodyError(.notRepresentable, detail: "\(type(of: error))")
  }
}

extension ProtobufCLayout {
  /// Returns the filled message, which lives as long as the arena.
  @inlinable
  func makeMessage(
    _ value: Value,
    in arena: inout ProtobufCArena
  ) throws(BodyError) -> UnsafeMutableRawPointer {
    let message = unsafe arena.allocate(parts.pointee.byteCount)
    try unsafe parts.pointee.fill(message, value, &arena)
    return unsafe message
  }

  @inlinable
  func packedSize(of value: Value, in arena: inout ProtobufCArena) throws(BodyError) -> Int {
    let message = try unsafe makeMessage(value, in: &arena)
    // Every generated structure begins with its base.
    return unsafe protobuf_c_message_get_packed_size(
      message.assumingMemoryBound(to: ProtobufCMessage.self)
    )
  }

  /// Packs the message into `free`, which has room for it, and returns its length.
  @inlinable
  func pack(
    _ value: Value,
    into free: UnsafeMutableRawBufferPointer,
    using arena: inout ProtobufCArena
  ) throws(BodyError) -> Int {
    let message = try unsafe makeMessage(value, in: &arena)
    if let packed = unsafe packShort(message, into: arena.scratch) {
      precondition(packed.count <= free.count, "no room for the body")
      unsafe free.copyMemory(from: UnsafeRawBufferPointer(packed))
      return packed.count
    }
    // Every generated structure begins with its base. libprotobuf-c writes exactly the bytes it has
    // measured, and they have room.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    precondition(count <= free.count, "no room for the body")
    guard count > 0, let start = free.baseAddress else { return 0 }
    return unsafe protobuf_c_message_pack(base, start.assumingMemoryBound(to: UInt8.self))
  }

  /// Packs the message into a new array.
  @inlinable
  func packed(_ value: Value, in arena: inout ProtobufCArena) throws(BodyError) -> [UInt8] {
    let message = try unsafe makeMessage(value, in: &arena)
    if let packed = unsafe packShort(message, into: arena.scratch) {
      // Copying allocates exactly the bytes needed.
      return unsafe [UInt8](packed)
    }
    // Every generated structure begins with its base. libprotobuf-c writes exactly the bytes it has
    // measured.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    // All empty arrays share their memory, and `unsafeUninitializedCapacity: 0` writes to it.
    guard count > 0 else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      guard let start = buffer.baseAddress else { return }
      initializedCount = unsafe protobuf_c_message_pack(base, start)
    }
  }

  /// Packs a message that certainly fits, without measuring it; nil if it might not fit.
  @inlinable
  func packShort(
    _ message: UnsafeMutableRawPointer,
    into scratch: UnsafeMutableBufferPointer<UInt8>
  ) -> UnsafeBufferPointer<UInt8>? {
    let bound = unsafe parts.pointee.bound.bytes(of: message, limit: scratch.count)
    guard bound != nil, let start = scratch.baseAddress else { return nil }
    // Every generated structure begins with its base. libprotobuf-c writes no more than the bound.
    let count = unsafe protobuf_c_message_pack(
      message.assumingMemoryBound(to: ProtobufCMessage.self), start)
    return unsafe UnsafeBufferPointer(start: start, count: count)
  }

  /// Reads the message at the reader's position.
  @inlinable
  func read(from reader: inout ProtobufReader) throws(BodyError) -> Value {
    // A growing array has room for twice as many elements, and a box or array a header.
    try reader.charge(2 * MemoryLayout<Value>.stride + 24)
    return try unsafe parts.pointee.read(&reader)
  }

  @inlinable
  func requireMatch<CMessage>(_ type: CMessage.Type) {
    precondition(
      unsafe parts.pointee.type == ObjectIdentifier(type),
      "\(type) is not the structure of \(Value.self)"
    )
  }
}
