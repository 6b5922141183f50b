public import CProtobufC
public import LongLinkCore

/// How a Swift value and the C message that stands for it are made of each other.
///
/// Made once for each type, as `ProtobufCBody.layout`, and used on any thread.
@safe
public final class ProtobufCLayout<Value>: Sendable {
  @usableFromInline
  let description: MessageDescription
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
  let read: @Sendable (UnsafeRawPointer) throws(BodyError) -> Value

  /// Joins a value to the structure `CMessage`.
  ///
  /// `initialize` is the generated `…__init` of the structure; any other function traps here or
  /// leads to undefined behaviour later. `fill` copies a value into a message in its initial state,
  /// taking memory from the arena, and fills alike each time. `read` copies a value out of a
  /// message that was checked and unpacked, and that is there, with all that it points to, during
  /// the call alone. A `BodyError` that they throw reaches the caller; any other error does so as
  /// `.notRepresentable`.
  public init<CMessage>(
    initialize: @escaping @Sendable (UnsafeMutablePointer<CMessage>?) -> Void,
    fill: @escaping @Sendable (inout CMessage, Value, inout ProtobufCArena) throws -> Void,
    read: @escaping @Sendable (CMessage) throws -> Value
  ) {
    unsafe description = MessageDescription(of: CMessage.self, initialize: initialize)
    type = ObjectIdentifier(CMessage.self)
    byteCount = MemoryLayout<CMessage>.stride
    // Each pointer below comes from this layout or from libprotobuf-c, given this description, so
    // that a `CMessage` stands there.
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
    unsafe self.read = { (message) throws(BodyError) in
      do {
        return try unsafe read(message.assumingMemoryBound(to: CMessage.self).pointee)
      } catch {
        throw BodyError(ofConversion: error)
      }
    }
  }
}

extension BodyError {
  /// What a conversion threw. The detail names no more than a type, since an error may quote bytes.
  fileprivate init(ofConversion error: any Error) {
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
    guard let message = unsafe arena.allocate(byteCount) else { throw BodyError(.tooLarge) }
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
  @inlinable
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
  @inlinable
  func packed(_ value: Value, in arena: inout ProtobufCArena) throws(BodyError) -> [UInt8] {
    let message = try unsafe makeMessage(value, in: &arena)
    // Every generated structure begins with its base. libprotobuf-c writes as many bytes as it has
    // counted.
    let base = unsafe message.assumingMemoryBound(to: ProtobufCMessage.self)
    let count = unsafe protobuf_c_message_get_packed_size(base)
    return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      guard count > 0, let start = buffer.baseAddress else { return }
      initializedCount = unsafe protobuf_c_message_pack(base, start)
    }
  }

  @inlinable
  func unpack(
    _ body: UnsafeBufferPointer<UInt8>,
    using arena: inout ProtobufCArena
  ) throws(BodyError) -> Value {
    let bytes = unsafe body.span
    try BodyChecker.check(bytes, in: bytes.indices, against: description)
    return try unsafe read(arena.unpack(body, as: description))
  }

  /// Reads a message that libprotobuf-c has unpacked as a field of another.
  @inlinable
  func readField<CMessage>(_ message: UnsafePointer<CMessage>) throws(BodyError) -> Value {
    requireMatch(CMessage.self)
    return try unsafe read(message)
  }

  @inlinable
  func requireMatch<CMessage>(_ type: CMessage.Type) {
    precondition(
      self.type == ObjectIdentifier(type),
      "\(type) is not the structure of \(Value.self)"
    )
  }
}
