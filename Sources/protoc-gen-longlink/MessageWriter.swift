// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Writes the structure of a message, with the types inside it.
struct MessageWriter {
  private let message: Descriptor
  private let schema: Schema
  private let types: FieldTypes

  private var access: String { schema.options.access }

  init(_ message: Descriptor, _ schema: Schema) {
    self.message = message
    self.schema = schema
    types = FieldTypes(schema)
  }

  func write(to source: inout SourceText) {
    if message.options.mapEntry { return writeEntry(to: &source) }
    source.add("")
    source.document(message.protoSourceComments(), else: "The message `\(message.fullName)`.")
    let name = SwiftNames.quoted(schema.names.name(message))
    let head = "\(access)nonisolated struct \(name)"
    source.block("\(head): Swift.Hashable, Swift.Sendable {") { source in
      for member in members { write(member, to: &source) }
      writeInit(to: &source)
      for oneof in message.realOneofs { write(oneof, to: &source) }
      for enumeration in message.enums { EnumWriter(enumeration, schema).write(to: &source) }
      for inner in message.messages { MessageWriter(inner, schema).write(to: &source) }
    }
  }

  // MARK: Properties

  private enum Member {
    case field(FieldDescriptor)
    case oneof(OneofDescriptor)
  }

  /// The properties, with each oneof at the position of its first field.
  private var members: [Member] {
    message.fields.compactMap { field in
      guard let oneof = field.realContainingOneof else { return .field(field) }
      return oneof.fields.first === field ? .oneof(oneof) : nil
    }
  }

  /// The name as it is declared.
  private func name(_ member: Member) -> String {
    switch member {
    case .field(let field): SwiftNames.quoted(schema.names.name(field))
    case .oneof(let oneof): SwiftNames.quoted(schema.names.name(oneof))
    }
  }

  private func type(_ member: Member) -> (type: String, initial: String) {
    switch member {
    case .field(let field): types.property(field)
    case .oneof(let oneof): (schema.type(oneof) + "?", "nil")
    }
  }

  private func write(_ member: Member, to source: inout SourceText) {
    let name = name(member)
    let (type, initial) = type(member)
    switch member {
    case .oneof(let oneof):
      source.document(oneof.protoSourceComments(), else: "The oneof `\(oneof.name)`.")
    case .field(let field):
      source.document(field.protoSourceComments(), else: "Field \(field.number), `\(field.name)`.")
      if schema.isRecursive(field) {
        // A value cannot contain itself, but an array of one element can.
        // No field's name is an underscore followed by a lower-case letter.
        let storage = "_" + schema.names.name(field)
        source.block("\(access)var \(name): \(type) {") {
          $0.add("get { \(storage).first }")
          $0.add("set { \(storage) = newValue.map { [$0] } ?? [] }")
        }
        source.add("private var \(storage): [\(type.dropLast())] = []")
        return
      }
    }
    source.add("\(access)var \(name): \(type) = \(initial)")
  }

  private func writeInit(to source: inout SourceText) {
    if !members.isEmpty { source.add("") }
    source.add("/// Makes a message. Omitted fields have the values that absent fields decode to.")
    guard !members.isEmpty else {
      source.add("\(access)init() {}")
      return
    }
    source.add("\(access)init(")
    for (index, member) in members.enumerated() {
      let (type, initial) = type(member)
      let comma = index == members.count - 1 ? "" : ","
      source.add("  \(name(member)): \(type) = \(initial)\(comma)")
    }
    source.block(") {") {
      for member in members { $0.add("self.\(name(member)) = \(name(member))") }
    }
  }

  // MARK: Types inside

  private func write(_ oneof: OneofDescriptor, to source: inout SourceText) {
    source.add("")
    source.add("/// The alternatives of `\(oneof.name)`.")
    let isIndirect = oneof.fields.contains { schema.isRecursive($0) }
    let kind = isIndirect ? "indirect enum" : "enum"
    let name = SwiftNames.quoted(schema.names.type(oneof))
    let head = "\(access)nonisolated \(kind) \(name)"
    source.block("\(head): Swift.Hashable, Swift.Sendable {") {
      for field in oneof.fields {
        $0.document(field.protoSourceComments(), else: "Field \(field.number), `\(field.name)`.")
        $0.add("case \(SwiftNames.quoted(schema.names.name(field)))(\(types.value(field)))")
      }
    }
  }

  /// Writes the entry of a map, which only the layout uses.
  private func writeEntry(to source: inout SourceText) {
    guard let (key, value) = message.mapKeyAndValue else { return }
    source.add("")
    source.block("fileprivate nonisolated struct \(message.name) {") {
      $0.add("var key: \(types.value(key)) = \(types.initial(key))")
      $0.add("var value: \(types.value(value)) = \(types.initial(value))")
    }
  }
}

/// Writes an enumeration, which keeps unknown values.
struct EnumWriter {
  private let enumeration: EnumDescriptor
  private let schema: Schema

  init(_ enumeration: EnumDescriptor, _ schema: Schema) {
    self.enumeration = enumeration
    self.schema = schema
  }

  func write(to source: inout SourceText) {
    let access = schema.options.access
    let number = "Swift.Int32"
    let values = enumeration.values.filter { $0 === first(of: $0.number) }
    let names = values.map { schema.names.name($0) }
    source.add("")
    source.document(
      enumeration.protoSourceComments(), else: "The enumeration `\(enumeration.fullName)`.")
    let name = SwiftNames.quoted(schema.names.name(enumeration))
    let protocols = "Swift.RawRepresentable, Swift.Hashable, Swift.Sendable"
    source.block("\(access)nonisolated enum \(name): \(protocols) {") {
      for (value, name) in zip(values, names) {
        $0.document(value.protoSourceComments(), else: "\(value.number), `\(value.name)`.")
        $0.add("case \(SwiftNames.quoted(name))")
      }
      $0.add("/// A number without a name in the .proto file.")
      $0.add("case unrecognized(\(number))")
      writeAliases(names, to: &$0)
      $0.add("\n/// Makes the value of a number; `unrecognized` if the number has no name.")
      $0.block("\(access)init(rawValue: \(number)) {") {
        $0.add("switch rawValue {")
        for (value, name) in zip(values, names) {
          $0.add("case \(value.number): self = .\(name)")
        }
        $0.add("default: self = .unrecognized(rawValue)")
        $0.add("}")
      }
      $0.add("\n/// The number on the wire.")
      $0.block("\(access)var rawValue: \(number) {") {
        $0.add("switch self {")
        for (value, name) in zip(values, names) { $0.add("case .\(name): \(value.number)") }
        $0.add("case .unrecognized(let number): number")
        $0.add("}")
      }
    }
  }

  /// The first value with a number.
  private func first(of number: Int32) -> EnumValueDescriptor? {
    enumeration.values.first { $0.number == number }
  }

  private func writeAliases(_ names: [String], to source: inout SourceText) {
    var taken = Set(names)
    for value in enumeration.values {
      guard let original = first(of: value.number), original !== value,
        taken.insert(schema.names.name(value)).inserted
      else { continue }
      source.document(value.protoSourceComments(), else: "Another name of `\(original.name)`.")
      source.add(
        "\(schema.options.access)static var \(SwiftNames.quoted(schema.names.name(value))): Self { "
          + ".\(schema.names.name(original)) }")
    }
  }
}
#endif
