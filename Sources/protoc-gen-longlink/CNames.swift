#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The names that fields and messages get in C.
struct CNames {
  /// The name of each field's member, by full name; unlike all others of its structure, those that
  /// protoc-c adds (`has_`, `n_`, `_case`) included.
  private var members: [String: String] = [:]

  init(_ files: [FileDescriptor]) {
    for file in files {
      for message in file.allMessages { add(message) }
    }
  }

  private mutating func add(_ message: Descriptor) {
    var used: Set<String> = ["base"]
    func claim(_ name: String, number: Int32, _ derived: (String) -> [String]) -> String {
      var candidate = name.lowercased()
      // Names that mean something to C, to its headers or to Swift, and those that are taken.
      while CNames.reserved.contains(candidate) || !used.isDisjoint(with: derived(candidate)) {
        candidate += "_\(number)"
      }
      used.formUnion(derived(candidate))
      return candidate
    }
    for oneof in message.realOneofs {
      members[oneof.fullName] = claim(oneof.name, number: Int32(oneof.index)) {
        [$0, $0 + "_case"]
      }
    }
    for field in message.fields {
      members[field.fullName] = claim(field.name, number: field.number) {
        [$0, "has_" + $0, "n_" + $0]
      }
    }
  }

  func member(_ field: FieldDescriptor) -> String { members[field.fullName] ?? field.name }

  func member(_ oneof: OneofDescriptor) -> String { members[oneof.fullName] ?? oneof.name }

  /// The function that puts the structure of a message into its initial state.
  func initializer(_ message: Descriptor) -> String {
    message.fullName.split(separator: ".").map { CNames.lower($0) }.joined(separator: "__")
      + "__init"
  }

  /// A name in lower case as protoc-c makes it: `SleepRequest` becomes `sleep_request`.
  static func lower(_ name: some StringProtocol) -> String {
    var result = ""
    var wasUpper = true
    for character in name {
      let isUpper = character.isUppercase
      if isUpper, !wasUpper { result += "_" }
      result += isUpper ? character.lowercased() : String(character)
      wasUpper = isUpper
    }
    return result
  }

  /// The keywords of C and C++, names that headers define as macros, and names that Swift keeps.
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
  /// All of its messages, nested ones too, each after what it is nested in.
  var allMessages: [Descriptor] { messages.flatMap(\.withNested) }

  /// It and all that it imports, each after what it imports.
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
  /// It and the messages that it is nested in.
  var withOuter: [Descriptor] { [self] + (containingType?.withOuter ?? []) }

  var withNested: [Descriptor] { [self] + messages.flatMap(\.withNested) }
}
#endif
