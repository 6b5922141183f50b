// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Writes the code that fills the C structure of a message, and that reads a message from a body.
///
/// In C every field that is not repeated has a presence flag (see `CSource`). So the fields written
/// are those that other implementations write: set ones, or, without presence, all but defaults.
struct LayoutWriter {
  private let message: Descriptor
  private let schema: Schema
  private let types: FieldTypes
  private let type: String

  init(_ message: Descriptor, _ schema: Schema) {
    self.message = message
    self.schema = schema
    types = FieldTypes(schema)
    type = schema.type(message)
  }

  func write(to source: inout SourceText) {
    let access = message.options.mapEntry ? "fileprivate " : schema.options.access
    source.add("")
    source.block("nonisolated extension \(type): \(schema.runtime("ProtobufCBody")) {") {
      $0.add("/// The functions that encode and decode the message.")
      // The type is explicit because inferring it could involve a field of the same name.
      let layout = "\(schema.runtime("ProtobufCLayout"))<\(type)>"
      $0.block(
        "\(access)static let layout: \(layout) = unsafe \(layout)(", closing: ")"
      ) {
        let c = schema.options.c?.module ?? ""
        $0.add("initialize: \(c)::\(schema.cNames.initializer(message)),")
        guard !message.fields.isEmpty else {
          $0.add("fill: { _, _, _ in },")
          writeReading(to: &$0)
          return
        }
        $0.block("fill: { message, value, arena in", closing: "},") {
          for field in message.fields where field.realContainingOneof == nil {
            writeFilling(field, to: &$0)
          }
          for oneof in message.realOneofs { writeFilling(oneof, to: &$0) }
        }
        writeReading(to: &$0)
      }
    }
  }

  // MARK: Into C

  private func writeFilling(_ field: FieldDescriptor, to source: inout SourceText) {
    let value = "value.\(schema.names.name(field))"
    if field.isMap {
      writeFilling(map: field, value, to: &source)
    } else if field.isRepeated {
      writeFilling(repeated: field, value, to: &source)
    } else if message.options.mapEntry {
      // Map entries are written with both of their fields, even if these are defaults.
      writeSetting(field, value, to: &source)
    } else if field.type == .message {
      source.add("unsafe \(member(field)) = \(types.toC(field, value))")
    } else if field.hasPresence {
      source.block("if let set = \(value) {") { writeSetting(field, "set", to: &$0) }
    } else {
      source.block("if \(isSet(field, value)) {") { writeSetting(field, value, to: &$0) }
    }
  }

  /// The condition under which a field without presence is written.
  private func isSet(_ field: FieldDescriptor, _ value: String) -> String {
    switch field.type {
    case .bool: value
    case .string, .bytes: "!\(value).isEmpty"
    case .enum: "\(value).rawValue != 0"
    // -0.0 equals 0, but is written.
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
    case .bytes: values = "arena.bytes(\(value))"
    case .message: values = "try arena.messages(\(value))"
    case .bool: values = "arena.scalars(\(value).map { $0 ? 1 : 0 })"
    case .enum: values = "arena.scalars(\(value).map(\\.rawValue))"
    default: values = "arena.scalars(\(value))"
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
      $0.add("// Sorted by key, because a dictionary has no stable order.")
      $0.add("let entries = \(value).sorted { \(order) }")
      $0.add("  .map { \(entry(field))(key: $0.key, value: $0.value) }")
      $0.add("unsafe message.n_\(schema.cNames.member(field)) = entries.count")
      $0.add("unsafe \(member(field)) = try arena.messages(entries)")
    }
  }

  private func writeFilling(_ oneof: OneofDescriptor, to source: inout SourceText) {
    let selected = "message.\(schema.cNames.member(oneof))_case"
    source.add("switch value.\(schema.names.name(oneof)) {")
    for field in oneof.fields {
      source.add("case .\(schema.names.name(field))(let set):")
      source.add("  unsafe \(selected) = .init(rawValue: \(field.number))")
      source.add("  unsafe \(member(field)) = \(types.toC(field, "set"))")
    }
    source.add("case nil:\n  break\n}")
  }

  // MARK: Out of a body

  private func writeReading(to source: inout SourceText) {
    source.block("read: { reader in") {
      if message.fields.isEmpty {
        $0.add("while try reader.next() != nil { try reader.skip() }\nreturn \(type)()")
        return
      }
      $0.add("var value = \(type)()")
      for field in message.fields where isSingleMessage(field) {
        $0.add("var \(flag(field)) = false")
      }
      $0.block("while let field = try reader.next() {") {
        $0.add("switch field {")
        for field in message.fields {
          $0.add("case \(field.number):")
          writeReading(field, to: &$0)
        }
        $0.add("default: try reader.skip()\n}")
      }
      $0.add("return value")
    }
  }

  private func writeReading(_ field: FieldDescriptor, to source: inout SourceText) {
    let property = "value.\(schema.names.name(field))"
    let one = types.reading(field, from: "reader")
    if field.isMap {
      source.add("  let entry: \(entry(field)) = \(one)")
      source.add("  \(property)[entry.key] = entry.value")
    } else if field.isRepeated, field.isPackable {
      let each = types.reading(field, from: "$0")
      source.add("  try reader.each { \(property).append(\(each)) }")
    } else if field.isRepeated {
      source.add("  \(property).append(\(one))")
    } else {
      let single = isSingleMessage(field) ? "try reader.message(once: &\(flag(field)))" : one
      if let oneof = field.realContainingOneof {
        let set = "\(schema.type(oneof)).\(schema.names.name(field))(\(single))"
        source.add("  value.\(schema.names.name(oneof)) = \(set)")
      } else {
        source.add("  \(property) = \(single)")
      }
    }
  }

  private func isSingleMessage(_ field: FieldDescriptor) -> Bool {
    field.type == .message && !field.isRepeated
  }

  /// The variable that holds whether a message field was read.
  private func flag(_ field: FieldDescriptor) -> String { "isRead\(field.number)" }

  // MARK: Names

  private func member(_ field: FieldDescriptor) -> String {
    "message.\(schema.cNames.member(field))"
  }

  private func entry(_ field: FieldDescriptor) -> String { schema.type(field.messageType) }
}
#endif
