// SPDX-License-Identifier: Apache-2.0

public import CProtobufC
public import LongLinkCore

/// How a Swift value and the C message that stands for it are made of each other.
///
/// Made once for each type, as `ProtobufCBody.layout`, and used on any thread; what it consists of
/// is never freed.
@safe
public struct ProtobufCLayout<Value>: Sendable {
  @safe
  @usableFromInline
  struct Parts {
    @usableFromInline
    let bound: PackedBound
    /// The C structure.
    @usableFromInline
    let type: ObjectIdentifier
    @usableFromInline
    let byteCount: Int
    /// Initialises memory as a message and fills it.
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

  /// Constant, and there for ever, so that a layout is handed about without counting who has it.
  @usableFromInline
  nonisolated(unsafe) let parts: UnsafePointer<Parts>

  /// Joins a value to the structure `CMessage`.
  ///
  /// `initialize` is the generated `…__init` of the structure; any other function traps here or
  /// leads to undefined behaviour later. `fill` copies a value into a message in its initial state,
  /// taking memory from the arena, and fills alike each time. `read` makes a value of the fields of
  /// a message in a body. A `BodyError` that they throw reaches the caller; any other error does so
  /// as `.notRepresentable`.
  @inlinable
  public init<CMessage>(
    initialize: @escaping @Sendable (UnsafeMutablePointer<CMessage>?) -> Void,
    fill: @escaping @Sendable (inout CMessage, Value, inout ProtobufCArena) throws -> Void,
    read: @escaping @Sendable (inout ProtobufReader) throws -> Value
  ) {
    // Each pointer below comes from this layout, so that a `CMessage` stands there.
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
  /// What a conversion threw. The detail names no more than a type, since an error may quote bytes.
  @usableFromInline
  init(ofConversion error: any Error) {
    self = error as? BodyError ?? BodyError(.notRepresentable, detail: "\(type(of: error))")
  }
}

extension ProtobufCLayout {
  /// The filled message, which lives as long as the arena.
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

  /// Appends to memory that has room for the message, and says how long it is.
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
    // Every generated structure begins with its base. libprotobuf-c writes as many bytes as it has
    // counted, and they have room.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    precondition(count <= free.count, "no room for the body")
    guard count > 0, let start = free.baseAddress else { return 0 }
    return unsafe protobuf_c_message_pack(base, start.assumingMemoryBound(to: UInt8.self))
  }

  /// The message as bytes of its own.
  @inlinable
  func packed(_ value: Value, in arena: inout ProtobufCArena) throws(BodyError) -> [UInt8] {
    let message = try unsafe makeMessage(value, in: &arena)
    if let packed = unsafe packShort(message, into: arena.scratch) {
      // An array that is copied has no room to spare.
      return unsafe [UInt8](packed)
    }
    // Every generated structure begins with its base. libprotobuf-c writes as many bytes as it has
    // counted.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    // All empty arrays share their memory, and `unsafeUninitializedCapacity: 0` writes to it.
    guard count > 0 else { return [] }
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      guard let start = buffer.baseAddress else { return }
      initializedCount = unsafe protobuf_c_message_pack(base, start)
    }
  }

  /// Packs a message that certainly fits, which need not be measured then; nil for any other.
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

  /// Reads the message that a reader is in.
  @inlinable
  func read(from reader: inout ProtobufReader) throws(BodyError) -> Value {
    try reader.charge(unsafe parts.pointee.byteCount)
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
