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
    let name = schema.path(message).last ?? ""
    source.block("\(access)nonisolated struct \(name): Hashable, Sendable {") { source in
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

  /// The properties, a oneof where its first field stands.
  private var members: [Member] {
    message.fields.compactMap { field in
      guard let oneof = field.realContainingOneof else { return .field(field) }
      return oneof.fields.first === field ? .oneof(oneof) : nil
    }
  }

  private func name(_ member: Member) -> String {
    switch member {
    case .field(let field): schema.property(field)
    case .oneof(let oneof): schema.property(oneof)
    }
  }

  private func type(_ member: Member) -> (type: String, initial: String) {
    switch member {
    case .field(let field): types.property(field, in: message)
    case .oneof(let oneof): (Schema.oneofType(oneof) + "?", "nil")
    }
  }

  private func write(_ member: Member, to source: inout SourceText) {
    let name = name(member)
    let (type, initial) = type(member)
    switch member {
    case .oneof(let oneof):
      source.document(oneof.protoSourceComments(), else: "One of several, `\(oneof.name)`.")
    case .field(let field):
      source.document(field.protoSourceComments(), else: "Field \(field.number), `\(field.name)`.")
      if schema.isRecursive(field) {
        // A value cannot contain itself, but an array of one can.
        let storage = schema.storage(name)
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
    source.add("/// Makes a message; what is left out is as if it had not been sent.")
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
    source.add("/// What `\(oneof.name)` can be.")
    let isIndirect = oneof.fields.contains { schema.isRecursive($0) }
    let kind = isIndirect ? "indirect enum" : "enum"
    source.block(
      "\(access)nonisolated \(kind) \(Schema.oneofType(oneof)): Hashable, Sendable {"
    ) {
      for field in oneof.fields {
        $0.document(field.protoSourceComments(), else: "Field \(field.number), `\(field.name)`.")
        $0.add("case \(schema.property(field))(\(types.value(field, in: message)))")
      }
    }
  }

  /// The entry of a map, which only the layout sees.
  private func writeEntry(to source: inout SourceText) {
    guard let (key, value) = message.mapKeyAndValue else { return }
    let scope = message.containingType
    source.add("")
    source.block("fileprivate nonisolated struct \(message.name) {") {
      $0.add("var key: \(types.value(key, in: scope)) = \(types.initial(key, in: scope))")
      $0.add("var value: \(types.value(value, in: scope)) = \(types.initial(value, in: scope))")
    }
  }
}

/// Writes an enumeration, which keeps values that it does not know.
struct EnumWriter {
  private let enumeration: EnumDescriptor
  private let schema: Schema

  init(_ enumeration: EnumDescriptor, _ schema: Schema) {
    self.enumeration = enumeration
    self.schema = schema
  }

  func write(to source: inout SourceText) {
    let access = schema.options.access
    let number = schema.swift("Int32")
    let values = enumeration.values.filter { $0 === first(of: $0.number) }
    let names = values.map { schema.enumCase($0) }
    let unknown = names.contains("unrecognized") ? "unrecognizedValue" : "unrecognized"
    source.add("")
    source.document(
      enumeration.protoSourceComments(), else: "The enumeration `\(enumeration.fullName)`.")
    let name = schema.path(enumeration).last ?? ""
    source.block("\(access)nonisolated enum \(name): RawRepresentable, Hashable, Sendable {") {
      for (value, name) in zip(values, names) {
        $0.document(value.protoSourceComments(), else: "\(value.number), `\(value.name)`.")
        $0.add("case \(name)")
      }
      $0.add("/// A number that the .proto file had no name for.")
      $0.add("case \(unknown)(\(number))")
      writeAliases(names, to: &$0)
      $0.add("\n/// Makes the value of a number; every number has one.")
      $0.block("\(access)init(rawValue: \(number)) {") {
        $0.add("switch rawValue {")
        for (value, name) in zip(values, names) {
          $0.add("case \(value.number): self = .\(name)")
        }
        $0.add("default: self = .\(unknown)(rawValue)")
        $0.add("}")
      }
      $0.add("\n/// The number on the wire.")
      $0.block("\(access)var rawValue: \(number) {") {
        $0.add("switch self {")
        for (value, name) in zip(values, names) { $0.add("case .\(name): \(value.number)") }
        $0.add("case .\(unknown)(let number): number")
        $0.add("}")
      }
    }
  }

  /// The value that a number is first named by.
  private func first(of number: Int32) -> EnumValueDescriptor? {
    enumeration.values.first { $0.number == number }
  }

  private func writeAliases(_ names: [String], to source: inout SourceText) {
    var taken = Set(names)
    for value in enumeration.values {
      guard let original = first(of: value.number), original !== value,
        taken.insert(schema.enumCase(value)).inserted
      else { continue }
      source.document(value.protoSourceComments(), else: "Another name of `\(original.name)`.")
      source.add(
        "\(schema.options.access)static var \(schema.enumCase(value)): Self { "
          + ".\(schema.enumCase(original)) }")
    }
  }
}
#endif
