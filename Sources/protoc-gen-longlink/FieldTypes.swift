// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The Swift type of a field, and the code that writes one value to C and reads one from a body.
struct FieldTypes {
  let schema: Schema

  init(_ schema: Schema) {
    self.schema = schema
  }

  /// The type of one value.
  func value(_ field: FieldDescriptor) -> String {
    switch field.type {
    case .double: "Swift.Double"
    case .float: "Swift.Float"
    case .int64, .sint64, .sfixed64: "Swift.Int64"
    case .uint64, .fixed64: "Swift.UInt64"
    case .int32, .sint32, .sfixed32: "Swift.Int32"
    case .uint32, .fixed32: "Swift.UInt32"
    case .bool: "Swift.Bool"
    case .string: "Swift.String"
    case .bytes: "[Swift.UInt8]"
    case .enum: schema.type(field.enumType)
    case .message, .group: schema.type(field.messageType)
    }
  }

  /// The initial value of a field that cannot be nil.
  func initial(_ field: FieldDescriptor) -> String {
    switch field.type {
    case .bool: "false"
    case .string: "\"\""
    case .bytes: "[]"
    case .enum: "." + schema.names.name(field.enumType.values[0])
    case .message, .group: value(field) + "()"
    default: "0"
    }
  }

  /// The type of the property and its initial value.
  func property(_ field: FieldDescriptor) -> (type: String, initial: String) {
    if let (key, element) = field.mapTypes {
      return ("[\(value(key)): \(value(element))]", "[:]")
    }
    if field.isRepeated { return ("[\(value(field))]", "[]") }
    if field.hasPresence { return (value(field) + "?", "nil") }
    return (value(field), initial(field))
  }

  /// The C value of a Swift expression.
  func toC(_ field: FieldDescriptor, _ expression: String) -> String {
    switch field.type {
    case .bool: "\(expression) ? 1 : 0"
    case .string: "try arena.string(\(expression))"
    case .bytes: "arena.bytes(\(expression))"
    case .enum: "\(expression).rawValue"
    case .message, .group: "try arena.message(\(expression))"
    default: expression
    }
  }

  /// An expression that reads one value. For messages that are not repeated, see `LayoutWriter`.
  func reading(_ field: FieldDescriptor, from reader: String) -> String {
    func call(_ name: String) -> String { "try \(reader).\(name)()" }
    switch field.type {
    case .double: return call("double")
    case .float: return call("float")
    case .int64: return call("int64")
    case .uint64: return call("uint64")
    case .int32: return call("int32")
    case .fixed64: return call("fixed64")
    case .fixed32: return call("fixed32")
    case .bool: return call("bool")
    case .string: return call("string")
    case .message, .group: return call("message")
    case .bytes: return call("bytes")
    case .uint32: return call("uint32")
    case .enum: return "\(value(field))(rawValue: \(call("int32")))"
    case .sfixed32: return call("sfixed32")
    case .sfixed64: return call("sfixed64")
    case .sint32: return call("sint32")
    case .sint64: return call("sint64")
    }
  }
}

extension FieldDescriptor {
  /// The key and value fields of a map's entry; nil if the field is not a map.
  var mapTypes: (key: FieldDescriptor, value: FieldDescriptor)? {
    isMap ? messageType.mapKeyAndValue : nil
  }
}
#endif
