#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Finds what stands in the way of generating, all of it at once, with file and line.
struct Checker {
  private let schema: Schema

  init(_ schema: Schema) {
    self.schema = schema
  }

  func check() throws {
    var findings = Findings()
    for file in schema.files {
      checkSyntax(file, &findings)
      checkImports(file, &findings)
    }
    checkMessageTypes(&findings)
    checkPushTypes(&findings)
    checkNames(&findings)
    guard findings.isEmpty else { throw GeneratorError(findings.text) }
  }

  // MARK: What cannot be generated

  private func checkSyntax(_ file: FileDescriptor, _ findings: inout Findings) {
    var header = ExtractProtoOptions()
    header.headerOnly = true
    if file.extractProto(options: header).syntax != "proto3" {
      findings.add("\(file.name):1:1", "only proto3 is supported: syntax = \"proto3\";")
    }
    for method in file.services.flatMap(\.methods)
    where method.clientStreaming || method.serverStreaming {
      findings.add(method, "streams are not supported: \(method.fullName)")
    }
  }

  private func checkImports(_ file: FileDescriptor, _ findings: inout Findings) {
    func require(_ used: FileDescriptor, _ user: some Located) {
      guard !schema.files.contains(where: { $0 === used }),
        schema.options.imports[used.name] == nil,
        !Checker.wellKnown.contains(used.name)
      else { return }
      findings.add(
        user,
        "\(used.name) is not generated: name it too, or say Import=\(used.name):MODULE")
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

  private static let wellKnown: Set<String> = Set(
    ["any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"]
      .map { "google/protobuf/\($0).proto" })

  // MARK: Message types

  private func checkMessageTypes(_ findings: inout Findings) {
    var users: [UInt32: MethodDescriptor] = [:]
    for method in schema.files.flatMap(\.services).flatMap(\.methods) {
      guard let type = method.messageType else {
        findings.add(
          method, "\(method.fullName) has no message type: option (longlink.message_type) = …;")
        continue
      }
      checkRange(type, method, "\(method.fullName)", &findings)
      if let other = users[type] {
        findings.add(
          method,
          "\(method.fullName) has the message type \(type) of \(other.fullName) (\(other.place))")
      } else {
        users[type] = method
      }
    }
  }

  private func checkPushTypes(_ findings: inout Findings) {
    var users: [UInt32: Descriptor] = [:]
    for message in schema.files.flatMap(\.allMessages) {
      guard let type = message.pushType else { continue }
      checkRange(type, message, message.fullName, &findings)
      if let other = users[type] {
        findings.add(
          message,
          "\(message.fullName) has the push type \(type) of \(other.fullName) (\(other.place))")
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

  // MARK: Names

  private func checkNames(_ findings: inout Findings) {
    var swift: [String: String] = [:]
    var structures: [String: String] = [:]
    func claim(_ name: String, _ user: some Located, in names: inout [String: String]) {
      if let place = names[name] {
        findings.add(user, "the name \(name) is taken at \(place); swift_prefix sets names apart")
      } else {
        names[name] = user.place
      }
    }
    let values = schema.options.runtime == .protobufC
    for file in schema.files {
      for message in file.allMessages where values {
        claim(schema.path(message).joined(separator: "."), message, in: &swift)
        claim(schema.cNames.initializer(message), message, in: &structures)
        checkUsed(schema.path(message).last ?? "", message, &findings)
        checkProperties(message, &findings)
        for inner in message.enums {
          claim(schema.path(inner).joined(separator: "."), inner, in: &swift)
        }
      }
      for enumeration in file.enums where values {
        claim(schema.path(enumeration).joined(separator: "."), enumeration, in: &swift)
        checkUsed(schema.path(enumeration).last ?? "", enumeration, &findings)
      }
      for service in file.services.map(Service.init) {
        for name in [service.types, service.client, service.handler, service.simulated] {
          claim(name, service.descriptor, in: &swift)
          checkUsed(name, service.descriptor, &findings)
        }
        checkMethods(service, &findings)
      }
    }
  }

  /// protoc has found fields with one name, but not a oneof beside a field, nor what Swift adds.
  private func checkProperties(_ message: Descriptor, _ findings: inout Findings) {
    var properties: [String: String] = [:]
    for oneof in message.realOneofs {
      guard let first = oneof.fields.first else { continue }
      findings.claim(schema.property(oneof), first, oneof.fullName, in: &properties)
      var cases: [String: String] = [:]
      for field in oneof.fields {
        findings.claim(schema.property(field), field, field.fullName, in: &cases)
      }
    }
    for field in message.fields where field.realContainingOneof == nil {
      let name = schema.property(field)
      findings.claim(name, field, field.fullName, in: &properties)
      if schema.isRecursive(field) {
        findings.claim(schema.storage(name), field, field.fullName, in: &properties)
      }
    }
  }

  private func checkMethods(_ service: Service, _ findings: inout Findings) {
    var names: [String: String] = [:]
    for method in service.methods {
      for name in [method.bareName, method.bareName + "Blocking", "start" + method.upperName] {
        findings.claim(name, method.descriptor, method.descriptor.fullName, in: &names)
      }
    }
  }

  private func checkUsed(_ name: String, _ user: some Located, _ findings: inout Findings) {
    guard Checker.usedByGeneratedCode.contains(name) else { return }
    findings.add(
      user, "the name \(name) is used by the generated code: say option swift_prefix = \"…\";")
  }

  private static let usedByGeneratedCode: Set<String> = [
    "BodyError", "CallbackExecutor", "EventLoop", "HandlerPlacement", "InboundRequest",
    "LongLinkClient", "LongLinkError", "LongLinkServer", "MessageType", "ProtobufBody",
    "ProtobufCBody", "ProtobufCLayout", "ProtobufCReader", "PushMessage", "RequestOptions",
    "RequestTask", "ServerAction", "SimulatedServer", "SocketAddress", "TypedRequestTask",
  ]
}

/// What is wrong, line by line.
struct Findings {
  private var lines: [String] = []

  var isEmpty: Bool { lines.isEmpty }
  /// protoc puts its own words before the first line.
  var text: String { "\n" + lines.joined(separator: "\n") }

  /// Gives a name to its first user.
  mutating func claim(
    _ name: String, _ user: some Located, _ fullName: String, in names: inout [String: String]
  ) {
    if let other = names[name] {
      add(user, "the name \(name) is taken by \(other)")
    } else {
      names[name] = "\(fullName) (\(user.place))"
    }
  }

  mutating func add(_ user: some Located, _ text: String) { add(user.place, text) }

  mutating func add(_ place: String, _ text: String) { lines.append("\(place): error: \(text)") }
}

/// What has a place in a .proto file.
protocol Located: ProvidesSourceCodeLocation, ProvidesLocationPath {}

extension Located {
  /// File, line and column, counted from 1.
  var place: String {
    guard let span = sourceCodeInfoLocation?.span, span.count >= 2 else { return file.name }
    return "\(file.name):\(span[0] + 1):\(span[1] + 1)"
  }
}

extension Descriptor: Located {}
extension EnumDescriptor: Located {}
extension FieldDescriptor: Located {}
extension ServiceDescriptor: Located {}
extension MethodDescriptor: Located {}
#endif
