// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Collects all errors that prevent generation, each with file and line.
struct Checker {
  let schema: Schema

  init(_ schema: Schema) {
    self.schema = schema
  }

  func check() throws {
    var findings = Findings(schema.options.protoPaths)
    for file in schema.files {
      checkSyntax(file, &findings)
      checkImports(file, &findings)
    }
    checkFileNames(&findings)
    checkMessageTypes(&findings)
    checkRuns(&findings)
    checkPushTypes(&findings)
    checkNames(&findings)
    guard findings.isEmpty else { throw GeneratorError(findings.text) }
  }

  // MARK: Syntax and files

  private func checkSyntax(_ file: FileDescriptor, _ findings: inout Findings) {
    var header = ExtractProtoOptions()
    header.headerOnly = true
    if file.extractProto(options: header).syntax != "proto3" {
      let start = SourceLocation(file: file.name, line: 1, column: 1)
      findings.add(
        start,
        """
        only proto3 is supported: write syntax = "proto3"; and remove groups, extensions, defaults \
        and "required"; the bytes on the wire stay the same
        """)
    }
  }

  private func checkImports(_ file: FileDescriptor, _ findings: inout Findings) {
    func require(_ used: FileDescriptor, _ user: some Located) {
      guard !schema.files.contains(where: { $0 === used }),
        schema.options.imports[used.name] == nil,
        !Checker.wellKnown.contains(used.name)
      else { return }
      let option = schema.options.frontEnd.option("Import")
      findings.add(
        user, "\(used.name) is not generated: name it too, or add \(option)\(used.name):MODULE")
    }
    for message in file.allMessages {
      for field in message.fields {
        if field.type == .message { require(field.messageType.file, field) }
        if field.type == .enum { require(field.enumType.file, field) }
      }
    }
    for method in file.services.flatMap(\.methods) {
      require(method.inputType.file, method)
      require(method.outputType.file, method)
    }
  }

  /// Checks that no two .proto files are written to the same Swift file.
  private func checkFileNames(_ findings: inout Findings) {
    var names: [String: FileDescriptor] = [:]
    for file in schema.files {
      let name = FileWriter.baseName(file)
      if let other = names[name] {
        findings.add(
          SourceLocation(file: file.name, line: 1, column: 1),
          "\(file.name) and \(other.name) both make \(name).longlink.swift: rename one of them")
      }
      names[name] = file
    }
  }

  private static let wellKnown: Set<String> = Set(
    ["any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"]
      .map { "google/protobuf/\($0).proto" })

  // MARK: Message types

  /// The message types of `Protocols/uploads.proto`, for which a server that receives uploads has
  /// routes.
  private static let typesOfUploads: ClosedRange<UInt32> = 12...16

  private func checkMessageTypes(_ findings: inout Findings) {
    var users: [UInt32: MethodDescriptor] = [:]
    for method in schema.files.flatMap(\.services).flatMap(\.methods) {
      guard let type = method.messageType else {
        findings.add(
          method, "\(method.fullName) has no message type: option (longlink.message_type) = …;")
        continue
      }
      checkRange(type, method, "\(method.fullName)", &findings)
      if Self.typesOfUploads.contains(type) {
        findings.add(
          method,
          "\(method.fullName): the message types 12 to 16 are those of uploads; take another one")
      }
      if let other = users[type] {
        let location = findings.text(other.location)
        findings.add(
          method,
          "\(method.fullName) has the message type \(type) of \(other.fullName) (\(location))")
      } else {
        users[type] = method
      }
    }
  }

  private func checkRuns(_ findings: inout Findings) {
    for method in schema.files.flatMap(\.services).flatMap(\.methods) where method.runsOnce {
      if method.clientStreaming || method.serverStreaming {
        findings.add(
          method, "\(method.fullName): streams do not run once; remove (longlink.runs_once)")
      } else if method.options.idempotencyLevel != .idempotencyUnknown {
        findings.add(
          method,
          """
          \(method.fullName): a method either runs once or may run again; set \
          (longlink.runs_once) or idempotency_level, not both
          """)
      }
    }
  }

  private func checkPushTypes(_ findings: inout Findings) {
    var users: [UInt32: Descriptor] = [:]
    for message in schema.files.flatMap(\.allMessages) {
      guard let type = message.pushType else { continue }
      checkRange(type, message, message.fullName, &findings)
      if let other = users[type] {
        let location = findings.text(other.location)
        findings.add(
          message,
          "\(message.fullName) has the push type \(type) of \(other.fullName) (\(location))")
      } else {
        users[type] = message
      }
    }
  }

  private func checkRange(
    _ type: UInt32, _ user: some Located, _ name: String, _ findings: inout Findings
  ) {
    guard type > 0xFF_FFFF else { return }
    findings.add(user, "\(name): \(type) needs more than 24 bits; the largest is 16777215")
  }
}
#endif
