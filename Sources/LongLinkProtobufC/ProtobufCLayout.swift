public import CProtobufC
public import LongLinkCore

/// How a Swift value and the C message that stands for it are made of each other.
///
/// Made once for each type, as `ProtobufCBody.layout`, and used on any thread.
@safe
public final class ProtobufCLayout<Value>: Sendable {
  @usableFromInline
  let bound: PackedBound
  /// The C structure.
  @usableFromInline
  let type: ObjectIdentifier
  @usableFromInline
  let byteCount: Int
  @usableFromInline
  let initialize: @Sendable (UnsafeMutableRawPointer) -> Void
  @usableFromInline
  let fill:
    @Sendable (UnsafeMutableRawPointer, Value, inout ProtobufCArena) throws(BodyError) -> Void
  @usableFromInline
  let read: @Sendable (inout ProtobufCReader) throws(BodyError) -> Value

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
    read: @escaping @Sendable (inout ProtobufCReader) throws -> Value
  ) {
    bound = unsafe PackedBound(MessageDescription(of: CMessage.self, initialize: initialize))
    type = ObjectIdentifier(CMessage.self)
    byteCount = MemoryLayout<CMessage>.stride
    // Each pointer below comes from this layout, so that a `CMessage` stands there.
    unsafe self.initialize = { message in
      unsafe initialize(message.bindMemory(to: CMessage.self, capacity: 1))
    }
    unsafe self.fill = { (message, value, arena) throws(BodyError) in
      do {
        try unsafe fill(
          &message.assumingMemoryBound(to: CMessage.self).pointee,
          value,
          &arena
        )
      } catch {
        throw BodyError(ofConversion: error)
      }
    }
    self.read = { (reader) throws(BodyError) in
      do {
        return try read(&reader)
      } catch {
        throw BodyError(ofConversion: error)
      }
    }
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
    let message = unsafe arena.allocate(byteCount)
    unsafe initialize(message)
    try unsafe fill(message, value, &arena)
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
  @usableFromInline
  func pack(
    _ value: Value,
    into free: UnsafeMutableRawBufferPointer,
    using arena: inout ProtobufCArena
  ) throws(BodyError) -> Int {
    let message = try unsafe makeMessage(value, in: &arena)
    // Every generated structure begins with its base. libprotobuf-c writes as many bytes as it has
    // counted, and they have room.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    precondition(count <= free.count, "no room for the body")
    guard count > 0, let start = free.baseAddress else { return 0 }
    return unsafe protobuf_c_message_pack(base, start.assumingMemoryBound(to: UInt8.self))
  }

  /// The message as bytes of its own.
  @usableFromInline
  func packed(_ value: Value, in arena: inout ProtobufCArena) throws(BodyError) -> [UInt8] {
    let message = try unsafe makeMessage(value, in: &arena)
    // Every generated structure begins with its base.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let scratch = unsafe arena.scratch
    if unsafe bound.bytes(of: message, limit: scratch.count) != nil {
      // What libprotobuf-c writes has room. Copied, it is an array without any to spare.
      return unsafe [UInt8](scratch.prefix(protobuf_c_message_pack(base, scratch.baseAddress)))
    }
    let count = unsafe protobuf_c_message_get_packed_size(base)
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      // libprotobuf-c writes as many bytes as it has counted.
      initializedCount = unsafe protobuf_c_message_pack(base, buffer.baseAddress)
    }
  }

  /// Reads the message that a reader is in.
  @inlinable
  func read(from reader: inout ProtobufCReader) throws(BodyError) -> Value {
    try reader.charge(byteCount)
    return try read(&reader)
  }

  @inlinable
  func requireMatch<CMessage>(_ type: CMessage.Type) {
    precondition(
      self.type == ObjectIdentifier(type),
      "\(type) is not the structure of \(Value.self)"
    )
  }
}
