// SPDX-License-Identifier: Apache-2.0

internal import CProtobufC

/// The generated descriptor of a message.
@safe
@usableFromInline
struct MessageDescription: Sendable {
  /// Generated descriptors are constants: the pointer is valid on every thread until the process
  /// ends.
  nonisolated(unsafe) private let descriptor: UnsafePointer<ProtobufCMessageDescriptor>

  /// Takes the descriptor from the base of an initialized message.
  @usableFromInline
  init<CMessage>(
    of type: CMessage.Type,
    initialize: (UnsafeMutablePointer<CMessage>?) -> Void
  ) {
    let found = unsafe withUnsafeTemporaryAllocation(of: type, capacity: 1) { memory in
      guard let message = memory.baseAddress else { preconditionFailure("no memory") }
      unsafe initialize(message)
      // Every generated structure begins with its base, which the initializer has set.
      return unsafe UnsafeRawPointer(message)
        .assumingMemoryBound(to: ProtobufCMessage.self).pointee.descriptor
    }
    guard let found = unsafe found else { preconditionFailure("initialize did nothing") }
    unsafe self.init(found)
    precondition(
      unsafe found.pointee.sizeof_message == MemoryLayout<CMessage>.stride,
      "initialize belongs to another message than CMessage"
    )
  }

  fileprivate init(_ descriptor: UnsafePointer<ProtobufCMessageDescriptor>) {
    unsafe self.descriptor = descriptor
  }

  var fieldCount: Int { unsafe Int(descriptor.pointee.n_fields) }

  /// The field at an index from 0 to `fieldCount - 1`.
  subscript(index: Int) -> FieldDescription {
    unsafe FieldDescription(descriptor.pointee.fields + index)
  }
}

/// The generated descriptor of one field.
@safe
struct FieldDescription {
  /// A constant that is never freed, like the descriptor of its message.
  private let descriptor: UnsafePointer<ProtobufCFieldDescriptor>

  fileprivate init(_ descriptor: UnsafePointer<ProtobufCFieldDescriptor>) {
    unsafe self.descriptor = descriptor
  }

  /// The kind of a value, as far as its encoded length depends on it.
  enum Content {
    case number
    case string
    case bytes
    case message(MessageDescription)
  }

  var content: Content {
    switch unsafe descriptor.pointee.type {
    case PROTOBUF_C_TYPE_STRING: return .string
    case PROTOBUF_C_TYPE_BYTES: return .bytes
    case PROTOBUF_C_TYPE_MESSAGE:
      // For a field of this type, `descriptor` is that of its message.
      let inner = unsafe descriptor.pointee.descriptor
        .assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
      return unsafe .message(MessageDescription(inner))
    default: return .number
    }
  }

  /// The offset in the structure of the value, or of the pointer to a repeated field's array.
  var offset: Int { unsafe Int(descriptor.pointee.offset) }

  /// The offset of a repeated field's count, of the number of a oneof's set field, or of the flag
  /// whether another field is set. 0, the offset of the message's base, if there is none of these.
  private var quantifierOffset: Int { unsafe Int(descriptor.pointee.quantifier_offset) }

  var isRepeated: Bool { unsafe descriptor.pointee.label == PROTOBUF_C_LABEL_REPEATED }

  /// Whether the field is a single number.
  var isSingleNumber: Bool {
    if case .number = content { return !isRepeated }
    return false
  }

  /// The size of an element of a repeated field, if its elements are not numbers.
  var elementSize: Int {
    if case .bytes = content { return unsafe MemoryLayout<ProtobufCBinaryData>.stride }
    return unsafe MemoryLayout<UnsafeRawPointer>.stride
  }

  /// The number of values of a repeated field.
  func count(in message: UnsafeRawPointer) -> Int {
    unsafe (message + quantifierOffset).load(as: Int.self)
  }

  /// Whether a field that is not repeated is set; true if the message does not record that.
  func isSet(in message: UnsafeRawPointer) -> Bool {
    guard quantifierOffset != 0 else { return true }
    let quantifier = unsafe (message + quantifierOffset).load(as: UInt32.self)
    let isInOneof = unsafe descriptor.pointee.flags & PROTOBUF_C_FIELD_FLAG_ONEOF.rawValue != 0
    return isInOneof ? unsafe quantifier == descriptor.pointee.id : quantifier != 0
  }
}
