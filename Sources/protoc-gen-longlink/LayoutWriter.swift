#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Writes how a message and its C structure are made of each other.
///
/// In C every field that is not repeated says whether it is there (see `CSource`), so that what is
/// written is what other implementations write: all but initial values, or all that was set.
struct LayoutWriter {
  private let message: Descriptor
  private let schema: Schema
  private let types: FieldTypes
  private let type: String
  /// Where the names of types are looked for first.
  private let scope: Descriptor?

  init(_ message: Descriptor, _ schema: Schema) {
    self.message = message
    self.schema = schema
    let types = FieldTypes(schema)
    self.types = types
    let outer = message.options.mapEntry ? message.containingType : nil
    scope = outer ?? message
    type =
      outer.map { schema.type($0, in: types.module) + "." + message.name }
      ?? schema.type(message, in: types.module)
  }

  func write(to source: inout SourceText) {
    let access = message.options.mapEntry ? "fileprivate " : schema.options.access
    source.add("")
    source.block("extension \(type): ProtobufCBody {") {
      $0.add("/// How it is written and read.")
      $0.block(
        "\(access)nonisolated static let layout = unsafe ProtobufCLayout<\(type)>(", closing: ")"
      ) {
        $0.add("initialize: \(schema.cNames.initializer(message)),")
        guard !message.fields.isEmpty else {
          $0.add("fill: { _, _, _ in },\nread: { _ in \(type)() }")
          return
        }
        $0.block("fill: { message, value, arena in", closing: "},") {
          for field in message.fields where field.realContainingOneof == nil {
            writeFilling(field, to: &$0)
          }
          for oneof in message.realOneofs { writeFilling(oneof, to: &$0) }
        }
        $0.block("read: { message in") {
          $0.add("var value = \(type)()")
          for field in message.fields where field.realContainingOneof == nil {
            writeReading(field, to: &$0)
          }
          for oneof in message.realOneofs { writeReading(oneof, to: &$0) }
          $0.add("return value")
        }
      }
    }
  }

  // MARK: Into C

  private func writeFilling(_ field: FieldDescriptor, to source: inout SourceText) {
    let value = "value.\(schema.property(field))"
    if field.isMap {
      writeFilling(map: field, value, to: &source)
    } else if field.isRepeated {
      writeFilling(repeated: field, value, to: &source)
    } else if message.options.mapEntry {
      // Entries of a map are written with both of their fields, whatever these hold.
      writeSetting(field, value, to: &source)
    } else if field.type == .message {
      source.add("unsafe \(member(field)) = \(types.toC(field, value))")
    } else if field.hasPresence {
      source.block("if let set = \(value) {") { writeSetting(field, "set", to: &$0) }
    } else {
      source.block("if \(isSet(field, value)) {") { writeSetting(field, value, to: &$0) }
    }
  }

  /// Whether a field without presence is written.
  private func isSet(_ field: FieldDescriptor, _ value: String) -> String {
    switch field.type {
    case .bool: value
    case .string, .bytes: "!\(value).isEmpty"
    case .enum: "\(value).rawValue != 0"
    // -0.0 equals 0, and is written.
    case .float, .double: "\(value).bitPattern != 0"
    default: "\(value) != 0"
    }
  }

  private func writeSetting(
    _ field: FieldDescriptor, _ value: String, to source: inout SourceText
  ) {
    if field.type != .string, field.type != .message {
      source.add("unsafe message.has_\(schema.cNames.member(field)) = 1")
    }
    source.add("unsafe \(member(field)) = \(types.toC(field, value))")
  }

  private func writeFilling(
    repeated field: FieldDescriptor, _ value: String, to source: inout SourceText
  ) {
    let values: String
    switch field.type {
    case .string: values = "try arena.strings(\(value))"
    case .bytes: values = "try arena.bytes(\(value))"
    case .message: values = "try arena.messages(\(value))"
    case .bool: values = "try arena.scalars(\(value).map { $0 ? 1 : 0 })"
    case .enum: values = "try arena.scalars(\(value).map(\\.rawValue))"
    default: values = "try arena.scalars(\(value))"
    }
    source.add("unsafe message.n_\(schema.cNames.member(field)) = \(value).count")
    source.add("unsafe \(member(field)) = \(values)")
  }

  private func writeFilling(
    map field: FieldDescriptor, _ value: String, to source: inout SourceText
  ) {
    let isBool = field.mapTypes?.key.type == .bool
    let order = isBool ? "!$0.key && $1.key" : "$0.key < $1.key"
    source.block("if !\(value).isEmpty {") {
      $0.add("// In the order of the keys, so that equal messages have equal bytes.")
      $0.add("let entries = \(value).sorted { \(order) }")
      $0.add("  .map { \(entry(field))(key: $0.key, value: $0.value) }")
      $0.add("unsafe message.n_\(schema.cNames.member(field)) = entries.count")
      $0.add("unsafe \(member(field)) = try arena.messages(entries)")
    }
  }

  private func writeFilling(_ oneof: OneofDescriptor, to source: inout SourceText) {
    let selected = "message.\(schema.cNames.member(oneof))_case"
    source.add("switch value.\(schema.property(oneof)) {")
    for field in oneof.fields {
      source.add("case .\(types.bare(schema.property(field)))(let set):")
      source.add("  unsafe \(selected) = .init(rawValue: \(field.number))")
      source.add("  unsafe \(member(field)) = \(types.toC(field, "set"))")
    }
    source.add("case nil:\n  break\n}")
  }

  // MARK: Out of C

  private func writeReading(_ field: FieldDescriptor, to source: inout SourceText) {
    let property = "value.\(schema.property(field))"
    let member = member(field)
    if field.isMap {
      source.add("let \(types.bare(schema.property(field)))Entries: [\(entry(field))] =")
      source.add("  \(list(field))")
      source.add(
        "for entry in \(types.bare(schema.property(field)))Entries "
          + "{ \(property)[entry.key] = entry.value }")
    } else if field.isRepeated {
      source.add("\(property) = \(list(field))")
    } else if field.type == .message {
      let otherwise = message.options.mapEntry ? " ?? \(types.initial(field, in: scope))" : ""
      source.add("\(property) = \(types.toSwift(field, in: scope, member))\(otherwise)")
    } else if field.hasPresence, !message.options.mapEntry {
      let isSet =
        field.type == .string
        ? "\(member) != nil" : "message.has_\(schema.cNames.member(field)) != 0"
      source.add("if unsafe \(isSet) { \(property) = \(types.toSwift(field, in: scope, member)) }")
    } else {
      source.add("\(property) = \(types.toSwift(field, in: scope, member))")
    }
  }

  /// The array of a repeated field.
  private func list(_ field: FieldDescriptor) -> String {
    let arguments = "(\(member(field)), count: message.n_\(schema.cNames.member(field)))"
    switch field.type {
    case .string: return "unsafe ProtobufCField.strings\(arguments)"
    case .bytes: return "unsafe ProtobufCField.bytes\(arguments)"
    case .message, .group: return "try unsafe ProtobufCField.messages\(arguments)"
    case .bool: return "unsafe ProtobufCField.scalars\(arguments).map { $0 != 0 }"
    case .enum:
      let type = types.value(field, in: scope)
      return "unsafe ProtobufCField.scalars\(arguments).map { \(type)(rawValue: $0) }"
    default: return "unsafe ProtobufCField.scalars\(arguments)"
    }
  }

  private func writeReading(_ oneof: OneofDescriptor, to source: inout SourceText) {
    let property = "value.\(schema.property(oneof))"
    source.add("switch unsafe message.\(schema.cNames.member(oneof))_case.rawValue {")
    for field in oneof.fields {
      let member = member(field)
      let name = types.bare(schema.property(field))
      source.add("case \(field.number):")
      if field.type == .message {
        let type = types.value(field, in: scope)
        source.add("  let set: \(type)? = \(types.toSwift(field, in: scope, member))")
        source.add("  if let set { \(property) = .\(name)(set) }")
      } else {
        source.add("  \(property) = .\(name)(\(types.toSwift(field, in: scope, member)))")
      }
    }
    source.add("default:\n  break\n}")
  }

  // MARK: Names

  private func member(_ field: FieldDescriptor) -> String {
    "message.\(schema.cNames.member(field))"
  }

  private func entry(_ field: FieldDescriptor) -> String {
    "\(type).\(field.messageType.name)"
  }
}
#endif
