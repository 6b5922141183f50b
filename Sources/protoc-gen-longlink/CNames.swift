// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The C names of messages and their fields, as passed to protoc-c (see `CSource`).
///
/// A name from the .proto file is kept wherever it is valid in C. The names of one file depend on
/// no other file, so that files generated in separate runs agree.
struct CNames {
  /// The last part of each message's name, by full name.
  private var messages: [String: String] = [:]
  /// The member of each field or oneof, by full name, in lower case as protoc-c writes it.
  private var members: [String: String] = [:]

  init(_ files: [FileDescriptor]) {
    for file in files {
      var used: Set<String> = []
      for message in file.messages { add(message, in: CNames.package(of: file), &used) }
    }
  }

  func member(_ field: FieldDescriptor) -> String { members[field.fullName] ?? field.name }

  func member(_ oneof: OneofDescriptor) -> String { members[oneof.fullName] ?? oneof.name }

  func name(_ message: Descriptor) -> String { messages[message.fullName] ?? message.name }

  /// The package of a file, changed if its name in C would begin with a digit.
  static func package(of file: FileDescriptor) -> String {
    let first = structure(file.package).first
    return first.map { $0.isNumber } ?? false ? "package" + file.package : file.package
  }

  func fullName(_ message: Descriptor) -> String {
    let outer = message.containingType.map { fullName($0) } ?? CNames.package(of: message.file)
    return outer.isEmpty ? name(message) : "\(outer).\(name(message))"
  }

  /// The function that initializes the structure of a message.
  func initializer(_ message: Descriptor) -> String { CNames.lower(fullName(message)) + "__init" }

  // MARK: Messages

  /// Gives a message a name that no earlier message of its file has.
  private mutating func add(_ message: Descriptor, in outer: String, _ used: inout Set<String>) {
    func fullName(_ name: String) -> String { outer.isEmpty ? name : "\(outer).\(name)" }
    func isTaken(_ name: String) -> Bool {
      let structure = CNames.structure(fullName(name))
      return used.contains(structure) || used.contains(CNames.lower(fullName(name)))
        || !CNames.isFree(structure)
    }
    var name = message.name
    var number = 2
    while isTaken(name) {
      name = "Message\(message.name)_\(number)"
      number += 1
    }
    messages[message.fullName] = name
    used.formUnion([CNames.structure(fullName(name)), CNames.lower(fullName(name))])
    for inner in message.messages { add(inner, in: fullName(name), &used) }
    addMembers(of: message)
  }

  /// Whether a structure may have that name. In a package, names of structures contain two
  /// underscores, and no name in system headers does. Other names could clash with a macro, a type
  /// of libprotobuf-c, or a word of Swift, which imports the C.
  private static func isFree(_ structure: String) -> Bool {
    guard let first = structure.first, !first.isNumber else { return false }
    if structure.contains("__") { return true }
    return structure.contains(where: \.isLowercase)
      && !SwiftNames.takenTypes.contains(structure) && !structure.hasPrefix("ProtobufC")
  }

  // MARK: Members

  /// Gives members unique names within their structure. The members that protoc-c adds (`has_`,
  /// `n_`, `_case`) count, and so do the constants and types that it makes of a oneof.
  private mutating func addMembers(of message: Descriptor) {
    var used: Set<String> = ["base"]
    func claim(_ name: String, number: Int32, _ derived: (String) -> [String]) -> String {
      var candidate = name.lowercased()
      // Names that begin with an underscore are reserved for the compiler.
      if candidate.hasPrefix("_") { candidate = "field" + candidate }
      while CNames.reserved.contains(candidate) || !used.isDisjoint(with: derived(candidate)) {
        candidate += "_\(number)"
      }
      used.formUnion(derived(candidate))
      return candidate
    }
    for inner in message.messages {
      // Within a message, a nested message and a field cannot have the same name.
      used.formUnion([name(inner), "type " + CNames.structure(name(inner))])
    }
    for oneof in message.realOneofs {
      let number = oneof.fields.first?.number ?? 0
      members[oneof.fullName] = claim(oneof.name, number: number) {
        [$0, $0 + "_case", "type \(CNames.structure($0))Case", "constant \($0)__not_set"]
      }
    }
    for field in message.fields {
      let oneof = field.realContainingOneof.map { member($0) }
      members[field.fullName] = claim(field.name, number: field.number) { name in
        [name, "has_" + name, "n_" + name] + (oneof.map { ["constant \($0)_\(name)"] } ?? [])
      }
    }
  }

  // MARK: How protoc-c writes names

  /// `package.OuterType.inner` in lower case: `package__outer_type__inner`.
  static func lower(_ fullName: String) -> String {
    fullName.split(separator: ".").map { part in
      var result = ""
      var wasUpper = true
      for character in part {
        if character.isUppercase, !wasUpper { result += "_" }
        result += character.lowercased()
        wasUpper = character.isUppercase
      }
      return result
    }.joined(separator: "__")
  }

  /// `package.Outer_Type.inner` as the name of a structure: `Package__OuterType__Inner`.
  static func structure(_ fullName: String) -> String {
    fullName.split(separator: ".").map { part in
      part.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }.joined(separator: "__")
  }

  /// The keywords of C and C++, names that headers define as macros, and names reserved by Swift.
  private static let reserved = Set(
    """
    alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char8_t \
    char16_t char32_t class compl complex concept const consteval constexpr constinit const_cast \
    continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum \
    eof errno explicit export extern false float for friend generic goto i386 if imaginary inline \
    int linux long major makedev minor mutable namespace new noexcept not not_eq null nullptr \
    operator or or_eq private protected public register reinterpret_cast requires restrict return \
    short signed sizeof static static_assert static_cast stderr stdin stdout struct switch \
    template this thread_local throw true try typedef typeid typename typeof union unix unsigned \
    using virtual void volatile wchar_t while xor xor_eq init self type protocol
    """.split(separator: " ").map(String.init))
}

extension FileDescriptor {
  /// All messages of the file, including nested ones, each after the message that contains it.
  var allMessages: [Descriptor] { messages.flatMap(\.withNested) }

  /// The file and all its imports, direct and indirect, each after the files it imports.
  var withDependencies: [FileDescriptor] {
    var found: [FileDescriptor] = []
    func add(_ file: FileDescriptor) {
      guard !found.contains(where: { $0 === file }) else { return }
      file.dependencies.forEach(add)
      found.append(file)
    }
    add(self)
    return found
  }
}

extension Descriptor {
  var withNested: [Descriptor] { [self] + messages.flatMap(\.withNested) }
}
#endif
