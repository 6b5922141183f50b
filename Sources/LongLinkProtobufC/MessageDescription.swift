// SPDX-License-Identifier: Apache-2.0

internal import CProtobufC

/// What the generated code says of a message.
@safe
@usableFromInline
struct MessageDescription: Sendable {
  /// Generated descriptors are constants: the pointer holds for the life of the process, and on
  /// every thread.
  nonisolated(unsafe) private let descriptor: UnsafePointer<ProtobufCMessageDescriptor>

  /// The description that a message in its initial state carries in its base.
  @usableFromInline
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

  /// The field at a place from 0 to `fieldCount - 1`.
  subscript(index: Int) -> FieldDescription {
    unsafe FieldDescription(descriptor.pointee.fields + index)
  }
}

/// What the generated code says of one field.
@safe
struct FieldDescription {
  /// A constant, as the description of its message.
  private let descriptor: UnsafePointer<ProtobufCFieldDescriptor>

  fileprivate init(_ descriptor: UnsafePointer<ProtobufCFieldDescriptor>) {
    unsafe self.descriptor = descriptor
  }

  /// What one value is, as far as its length depends on it.
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
      // A field of this type has the description of its message there.
      let inner = unsafe descriptor.pointee.descriptor
        .assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
      return unsafe .message(MessageDescription(inner))
    default: return .number
    }
  }

  /// Where the value is in the structure, or the address of the array of a repeated field.
  var offset: Int { unsafe Int(descriptor.pointee.offset) }

  /// Where the structure has the count of a repeated field, the number of a oneof's field that is
  /// set, or whether another is set; 0, where the base of the message is, if it has none of them.
  private var quantifierOffset: Int { unsafe Int(descriptor.pointee.quantifier_offset) }

  var isRepeated: Bool { unsafe descriptor.pointee.label == PROTOBUF_C_LABEL_REPEATED }

  /// Whether a structure has nothing but a number of this field.
  var isSingleNumber: Bool {
    if case .number = content { return !isRepeated }
    return false
  }

  /// The size of an element of a repeated field that has no numbers.
  var elementSize: Int {
    if case .bytes = content { return unsafe MemoryLayout<ProtobufCBinaryData>.stride }
    return unsafe MemoryLayout<UnsafeRawPointer>.stride
  }

  /// How many values a repeated field has in a message.
  func count(in message: UnsafeRawPointer) -> Int {
    unsafe (message + quantifierOffset).load(as: Int.self)
  }

  /// False where a message says that a field, which is not repeated, is not set.
  func isSet(in message: UnsafeRawPointer) -> Bool {
    guard quantifierOffset != 0 else { return true }
    let quantifier = unsafe (message + quantifierOffset).load(as: UInt32.self)
    let isInOneof = unsafe descriptor.pointee.flags & PROTOBUF_C_FIELD_FLAG_ONEOF.rawValue != 0
    return isInOneof ? unsafe quantifier == descriptor.pointee.id : quantifier != 0
  }
}
