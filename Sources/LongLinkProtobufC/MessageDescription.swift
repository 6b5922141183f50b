internal import CProtobufC

/// What the generated code says of a message.
@safe
@usableFromInline
struct MessageDescription: Sendable {
  /// Generated descriptors are constants: the pointer holds for the life of the process, and on
  /// every thread.
  nonisolated(unsafe) let descriptor: UnsafePointer<ProtobufCMessageDescriptor>

  /// The description that a message in its initial state carries in its base.
  init<CMessage>(
    of type: CMessage.Type,
    initialize: (UnsafeMutablePointer<CMessage>?) -> Void
  ) {
    let found = unsafe withUnsafeTemporaryAllocation(of: type, capacity: 1) { memory in
      guard let message = memory.baseAddress else { preconditionFailure("no memory") }
      unsafe initialize(message)
      // Every generated structure begins with its base, which the initialiser has set.
      return unsafe UnsafeRawPointer(message)
        .assumingMemoryBound(to: ProtobufCMessage.self).pointee.descriptor
    }
    guard let found = unsafe found else { preconditionFailure("initialize did nothing") }
    unsafe descriptor = found
    precondition(
      unsafe found.pointee.sizeof_message == MemoryLayout<CMessage>.stride,
      "initialize belongs to another message than CMessage"
    )
  }

  init(_ descriptor: UnsafePointer<ProtobufCMessageDescriptor>) {
    unsafe self.descriptor = descriptor
  }

  func field(_ number: UInt32) -> FieldDescription? {
    guard let field = unsafe protobuf_c_message_descriptor_get_field(descriptor, number) else {
      return nil
    }
    return unsafe FieldDescription(field, index: field - descriptor.pointee.fields)
  }
}

/// What the generated code says of one field.
struct FieldDescription {
  /// What is inside a value, as far as it has to be looked into.
  enum Content {
    case scalar
    case string
    case bytes
    case message(MessageDescription)
  }

  /// The place of the field in its message's description.
  let index: Int
  let isRepeated: Bool
  let content: Content
  /// How one value is written outside a packed field.
  let wireType: WireType

  init(_ field: UnsafePointer<ProtobufCFieldDescriptor>, index: Int) {
    self.index = index
    isRepeated = unsafe field.pointee.label == PROTOBUF_C_LABEL_REPEATED
    switch unsafe field.pointee.type {
    case PROTOBUF_C_TYPE_STRING:
      (content, wireType) = (.string, .lengthDelimited)
    case PROTOBUF_C_TYPE_BYTES:
      (content, wireType) = (.bytes, .lengthDelimited)
    case PROTOBUF_C_TYPE_MESSAGE:
      // A field of this type has the description of its message there.
      let inner = unsafe field.pointee.descriptor
        .assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
      (content, wireType) = unsafe (.message(MessageDescription(inner)), .lengthDelimited)
    case PROTOBUF_C_TYPE_FIXED32, PROTOBUF_C_TYPE_SFIXED32, PROTOBUF_C_TYPE_FLOAT:
      (content, wireType) = (.scalar, .fixed32)
    case PROTOBUF_C_TYPE_FIXED64, PROTOBUF_C_TYPE_SFIXED64, PROTOBUF_C_TYPE_DOUBLE:
      (content, wireType) = (.scalar, .fixed64)
    default:
      (content, wireType) = (.scalar, .varint)
    }
  }
}
