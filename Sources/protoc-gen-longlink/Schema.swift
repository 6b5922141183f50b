// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The files to generate, with the names of their declarations.
///
/// Each name from outside the file is qualified with its module, because a message may have the
/// name of a type in Swift's library, in LongLink or in a file of another run.
struct Schema {
  let files: [FileDescriptor]
  let options: GeneratorOptions
  let cNames: CNames
  let names: SwiftNames
  /// Names the types of SwiftProtobuf's messages.
  private let namer = SwiftProtobufNamer()

  init(_ files: [FileDescriptor], _ options: GeneratorOptions) {
    self.files = files
    self.options = options
    var all: [FileDescriptor] = []
    for file in files.flatMap(\.withDependencies) where !all.contains(where: { $0 === file }) {
      all.append(file)
    }
    cNames = CNames(all)
    names = SwiftNames(all) { file in
      if let prefix = options.prefix, files.contains(where: { $0 === file }) { return prefix }
      if file.options.hasSwiftPrefix { return file.options.swiftPrefix }
      return file.name.hasPrefix("google/protobuf/") ? "Protobuf" : ""
    }
  }

  // MARK: Types

  /// The qualified name of a type of the runtime.
  func runtime(_ name: String) -> String {
    "\(options.runtime == .protobufC ? "LongLinkProtobufC" : "LongLinkProtobuf")::\(name)"
  }

  /// A message's type.
  func type(_ message: Descriptor) -> String {
    if options.runtime == .swiftProtobuf {
      return "\(module(of: message.file) ?? "SwiftProtobuf")::\(namer.fullName(message: message))"
    }
    return absolute(path(message), message.file)
  }

  func type(_ enumeration: EnumDescriptor) -> String {
    absolute(path(enumeration), enumeration.file)
  }

  func type(_ oneof: OneofDescriptor) -> String {
    type(oneof.containingType) + "." + SwiftNames.quoted(names.type(oneof))
  }

  /// The name of a message, after those of the messages that contain it, outermost first.
  func path(_ message: Descriptor) -> [String] {
    (message.containingType.map { path($0) } ?? []) + [names.name(message)]
  }

  func path(_ enumeration: EnumDescriptor) -> [String] {
    (enumeration.containingType.map { path($0) } ?? []) + [names.name(enumeration)]
  }

  private func absolute(_ path: [String], _ file: FileDescriptor) -> String {
    let module = module(of: file) ?? "LongLinkProtobufC"
    return "\(module)::\(path.map(SwiftNames.quoted).joined(separator: "."))"
  }

  /// The module of a file's messages; nil for messages that come with a runtime.
  func module(of file: FileDescriptor) -> String? {
    if files.contains(where: { $0 === file }) { return options.messages?.module }
    if let module = options.imports[file.name] { return module }
    return file.name.hasPrefix("google/protobuf/") ? nil : options.messages?.module
  }

  // MARK: Services

  /// A method as a member of its service's enumeration.
  func method(_ method: Service.Method, of service: Service) -> String {
    "\(options.messages?.module ?? "")::\(service.enumeration).\(method.name)"
  }

  // MARK: Recursion

  /// Whether a message would contain itself through this field, without repeated fields between.
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
