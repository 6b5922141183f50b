public import CProtobufC
public import LongLinkCore

/// Reads the fields of a C message that libprotobuf-c has unpacked, copying what they point to.
///
/// Each call is safe for a message that came from libprotobuf-c and is still there: its pointers
/// are nil or point to as many elements as the field beside them counts.
public enum ProtobufCField {
  /// A string field; empty where it is absent.
  public static func string(_ field: UnsafePointer<CChar>?) -> String {
    guard let field = unsafe field else { return "" }
    // libprotobuf-c ends every string with NUL.
    return unsafe String(cString: field)
  }

  /// A bytes field; empty where it is absent.
  public static func bytes(_ field: ProtobufCBinaryData) -> [UInt8] {
    unsafe scalars(field.data, count: field.len)
  }

  /// A message field; nil where it is absent.
  ///
  /// Throws what `Message` throws where it is read. Traps where `CMessage`, which the field has, is
  /// not the structure of `Message`.
  @inlinable
  public static func message<Message: ProtobufCBody, CMessage>(
    _ field: UnsafePointer<CMessage>?,
    as type: Message.Type = Message.self
  ) throws(BodyError) -> Message? {
    guard let field = unsafe field else { return nil }
    return try unsafe Message.layout.readField(field)
  }

  /// A repeated field of numbers, booleans (as `protobuf_c_boolean`) or enumeration values.
  @inlinable
  public static func scalars<Scalar: BitwiseCopyable>(
    _ field: UnsafePointer<Scalar>?,
    count: Int
  ) -> [Scalar] {
    unsafe [Scalar](UnsafeBufferPointer(start: field, count: field == nil ? 0 : count))
  }

  /// A repeated field of strings.
  public static func strings(
    _ field: UnsafePointer<UnsafeMutablePointer<CChar>?>?,
    count: Int
  ) -> [String] {
    unsafe UnsafeBufferPointer(start: field, count: field == nil ? 0 : count)
      .map { element in unsafe string(element) }
  }

  /// A repeated field of bytes.
  public static func bytes(
    _ field: UnsafePointer<ProtobufCBinaryData>?,
    count: Int
  ) -> [[UInt8]] {
    unsafe UnsafeBufferPointer(start: field, count: field == nil ? 0 : count)
      .map { element in unsafe bytes(element) }
  }

  /// A repeated field of messages.
  ///
  /// Throws and traps as `message(_:as:)` does.
  @inlinable
  public static func messages<Message: ProtobufCBody, CMessage>(
    _ field: UnsafePointer<UnsafeMutablePointer<CMessage>?>?,
    count: Int,
    as type: Message.Type = Message.self
  ) throws(BodyError) -> [Message] {
    guard let field = unsafe field else { return [] }
    var messages: [Message] = []
    messages.reserveCapacity(count)
    for index in 0..<count {
      if let message = try unsafe message(field[index], as: type) { messages.append(message) }
    }
    return messages
  }
}
