#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The files to generate for, with the names that their parts get in Swift.
struct Schema {
  let files: [FileDescriptor]
  let options: GeneratorOptions
  let cNames: CNames
  /// Names the properties and cases, for both runtimes, and the types of SwiftProtobuf's.
  private let namer = SwiftProtobufNamer()
  /// The last components of all names of types that can be seen.
  private let typeNames: Set<String>

  init(_ files: [FileDescriptor], _ options: GeneratorOptions) {
    self.files = files
    self.options = options
    var all: [FileDescriptor] = []
    for file in files.flatMap(\.withDependencies) where !all.contains(where: { $0 === file }) {
      all.append(file)
    }
    cNames = CNames(all)
    var names: Set<String> = []
    for file in all where file.name != "google/protobuf/descriptor.proto" {
      let prefix = Schema.prefix(of: file, options)
      for message in file.allMessages {
        names.insert((message.containingType == nil ? prefix : "") + message.name)
        names.formUnion(message.enums.map(\.name))
        names.formUnion(message.realOneofs.map { Schema.oneofType($0) })
      }
      names.formUnion(file.enums.map { prefix + $0.name })
    }
    typeNames = names
  }

  static func prefix(of file: FileDescriptor, _ options: GeneratorOptions) -> String {
    if let prefix = options.prefix { return prefix }
    if file.options.hasSwiftPrefix { return file.options.swiftPrefix }
    return file.name.hasPrefix("google/protobuf/") ? "Protobuf" : ""
  }

  // MARK: Properties and cases

  func property(_ field: FieldDescriptor) -> String {
    let names = namer.messagePropertyNames(field: field, prefixed: "", includeHasAndClear: false)
    return names.name == "encodedByteCount" ? "encodedByteCountField" : names.name
  }

  func property(_ oneof: OneofDescriptor) -> String {
    namer.messagePropertyName(oneof: oneof, prefixed: "").name
  }

  /// Where a property of a type that contains itself has its value.
  func storage(_ property: String) -> String { property.filter { $0 != "`" } + "Storage" }

  func enumCase(_ value: EnumValueDescriptor) -> String { namer.relativeName(enumValue: value) }

  // MARK: Types

  /// The name of a oneof's type, nested in its message.
  static func oneofType(_ oneof: OneofDescriptor) -> String {
    let name = NamingUtils.toUpperCamelCase(oneof.name)
    let message = oneof.containingType!
    // Inside a message, a type that is called like it would hide it.
    let isTaken =
      message.withOuter.contains { $0.name == name }
      || message.messages.contains { $0.name == name }
      || message.enums.contains { $0.name == name } || reserved.contains(name)
    return isTaken ? name + "Oneof" : name
  }

  /// The name of a type of the Swift library: qualified where a message has the same.
  func swift(_ name: String) -> String {
    typeNames.contains(name) ? "Swift." + name : name
  }

  func path(_ message: Descriptor) -> [String] {
    let prefix = message.containingType == nil ? Schema.prefix(of: message.file, options) : ""
    let name = Schema.available(
      prefix + message.name, in: message.containingType, suffix: "Message")
    return (message.containingType.map { path($0) } ?? []) + [name]
  }

  func path(_ enumeration: EnumDescriptor) -> [String] {
    let outer = enumeration.containingType
    let prefix = outer == nil ? Schema.prefix(of: enumeration.file, options) : ""
    let name = Schema.available(prefix + enumeration.name, in: outer, suffix: "Enum")
    return (outer.map { path($0) } ?? []) + [name]
  }

  private static let reserved: Set<String> = ["Type", "Protocol", "Self", "Any", "Swift"]

  private static func available(
    _ name: String, in outer: Descriptor?, suffix: String
  ) -> String {
    let hidesOuter = outer?.withOuter.contains { $0.name == name } ?? false
    return hidesOuter || reserved.contains(name) ? name + suffix : name
  }

  /// A message's type as it is written in a file of `module`, inside the declaration of `scope`.
  func type(_ message: Descriptor, in module: String, _ scope: Descriptor? = nil) -> String {
    if options.runtime == .swiftProtobuf {
      let name = namer.fullName(message: message)
      return qualified([name], message.file, in: module, scope)
    }
    return qualified(path(message), message.file, in: module, scope)
  }

  func type(_ enumeration: EnumDescriptor, in module: String, _ scope: Descriptor?) -> String {
    qualified(path(enumeration), enumeration.file, in: module, scope)
  }

  private func qualified(
    _ path: [String], _ file: FileDescriptor, in module: String, _ scope: Descriptor?
  ) -> String {
    let name = path.joined(separator: ".")
    guard let home = self.module(of: file) else { return name }
    // Inside a message, what is nested there hides what is further out.
    var isHidden = false
    var outer = scope
    while let message = outer {
      let types = message.messages.map { self.path($0) } + message.enums.map { self.path($0) }
      let nested = types.compactMap(\.last) + message.realOneofs.map(Schema.oneofType)
      // A path that goes through this message means the same from inside.
      if nested.contains(path[0]) { isHidden = true }
      outer = message.containingType
    }
    guard home != module || isHidden, home != path[0] else { return name }
    return "\(home).\(name)"
  }

  /// The module that a file's messages are in; nil for what comes with a runtime.
  func module(of file: FileDescriptor) -> String? {
    if files.contains(where: { $0 === file }) { return options.messages?.module }
    if let module = options.imports[file.name] { return module }
    return file.name.hasPrefix("google/protobuf/") ? nil : options.messages?.module
  }

  // MARK: Recursion

  /// Whether values of a message would contain themselves through a field that is not repeated.
  func isRecursive(_ field: FieldDescriptor) -> Bool {
    guard field.type == .message, !field.isRepeated else { return false }
    var seen: [Descriptor] = []
    func reaches(_ message: Descriptor) -> Bool {
      if message === field.containingType { return true }
      guard !seen.contains(where: { $0 === message }) else { return false }
      seen.append(message)
      return message.fields.contains { inner in
        inner.type == .message && !inner.isRepeated && reaches(inner.messageType)
      }
    }
    return reaches(field.messageType)
  }
}
#endif
