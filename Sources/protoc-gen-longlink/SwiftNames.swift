// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The Swift names of the declarations in .proto files.
///
/// Properties, cases and methods get Swift's form: `user_id` becomes `userID`. Types keep their
/// names, after the prefix of their file. A keyword is put in back-ticks. A name that Swift or the
/// generated code needs gets a final underscore: `self_`, `Type_`. Names that are still equal get a
/// number: that of the field or of the enumeration's value, or the message type of the method
/// (`fooBar_1` and `fooBar_2`).
struct SwiftNames {
  /// The names without back-ticks, by full name, which is unique among the files.
  private var names: [String: String] = [:]
  /// The types of oneofs, whose properties are in `names`.
  private var oneofTypes: [String: String] = [:]

  init(_ files: [FileDescriptor], prefix: (FileDescriptor) -> String) {
    // Strips the name of an enumeration from those of its values.
    let namer = SwiftProtobufNamer()
    for file in files {
      let prefix = prefix(file)
      for message in file.messages { names[message.fullName] = type(prefix + message.name) }
      for enumeration in file.enums {
        names[enumeration.fullName] = type(prefix + enumeration.name)
        addValues(of: enumeration, namer)
      }
      for message in file.allMessages { addContents(of: message, namer) }
      for service in file.services { addMethods(of: service) }
    }
  }

  // MARK: Names

  func name(_ message: Descriptor) -> String { self[message.fullName] }
  func name(_ enumeration: EnumDescriptor) -> String { self[enumeration.fullName] }
  func name(_ field: FieldDescriptor) -> String { self[field.fullName] }
  func name(_ oneof: OneofDescriptor) -> String { self[oneof.fullName] }
  func name(_ value: EnumValueDescriptor) -> String { self[value.fullName] }
  func name(_ method: MethodDescriptor) -> String { self[method.fullName] }

  func type(_ oneof: OneofDescriptor) -> String { oneofTypes[oneof.fullName] ?? oneof.name }

  private subscript(fullName: String) -> String {
    guard let name = names[fullName] else { preconditionFailure("\(fullName) has no name") }
    return name
  }

  // MARK: How names are made

  private func type(_ name: String) -> String {
    SwiftNames.available(name, besides: SwiftNames.takenTypes)
  }

  private mutating func addContents(of message: Descriptor, _ namer: SwiftProtobufNamer) {
    let taken = SwiftNames.takenTypes.union(SwiftNames.takenInMessages)
    var inner: Set<String> = []
    func nest(_ name: String) -> String {
      let name = SwiftNames.available(name, besides: taken)
      inner.insert(name)
      return name
    }
    for nested in message.messages { names[nested.fullName] = nest(nested.name) }
    for nested in message.enums {
      names[nested.fullName] = nest(nested.name)
      addValues(of: nested, namer)
    }
    for oneof in message.realOneofs {
      let name = NamingUtils.toUpperCamelCase(oneof.name)
      oneofTypes[oneof.fullName] = nest(SwiftNames.available(name, besides: inner.union(taken)))
      let cases = oneof.fields.map { Member($0.fullName, $0.name, $0.number) }
      add(cases, besides: SwiftNames.takenCases)
    }
    // Nested types and properties share a scope.
    var properties: [Member] = []
    for field in message.fields {
      guard let oneof = field.realContainingOneof else {
        properties.append(Member(field.fullName, field.name, field.number))
        continue
      }
      guard oneof.fields.first === field else { continue }
      properties.append(Member(oneof.fullName, oneof.name, field.number))
    }
    add(properties, besides: SwiftNames.takenProperties, others: inner)
  }

  private mutating func addValues(of enumeration: EnumDescriptor, _ namer: SwiftProtobufNamer) {
    var aliased: [Int32: Set<String>] = [:]
    let values = enumeration.values.filter {
      // An alias of a number may get the same name in Swift.
      aliased[$0.number, default: []].insert(namer.relativeName(enumValue: $0)).inserted
    }
    func name(_ value: EnumValueDescriptor) -> String {
      namer.relativeName(enumValue: value).filter { $0 != "`" }
    }
    add(
      values.map { Member($0.fullName, name($0), $0.number) },
      besides: SwiftNames.takenCases.union(["rawValue", "unrecognized"]), areFormed: true)
    for value in enumeration.values where names[value.fullName] == nil {
      let original = values.first { $0.number == value.number && name($0) == name(value) }
      names[value.fullName] = original.flatMap { names[$0.fullName] }
    }
  }

  private mutating func addMethods(of service: ServiceDescriptor) {
    add(
      service.methods.map { Member($0.fullName, $0.name, Int32(clamping: $0.messageType ?? 0)) },
      besides: SwiftNames.takenMethods)
  }

  private struct Member {
    let fullName: String
    let name: String
    /// The number in the form that ends a name.
    let number: String

    init(_ fullName: String, _ name: String, _ number: Int32) {
      self.fullName = fullName
      self.name = name
      self.number = number < 0 ? "n\(number.magnitude)" : "\(number)"
    }
  }

  /// Names the members of one scope.
  private mutating func add(
    _ members: [Member], besides taken: Set<String>, others: Set<String> = [],
    areFormed: Bool = false
  ) {
    let found = members.map { member in
      let name = areFormed ? member.name : NamingUtils.toLowerCamelCase(member.name)
      return SwiftNames.available(name, besides: taken)
    }
    let counts = found.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    for (member, name) in zip(members, found) {
      let isShared = counts[name, default: 0] > 1 || others.contains(name)
      names[member.fullName] = isShared ? "\(name)_\(member.number)" : name
    }
  }

  // MARK: Reserved words

  /// The name, with as many final underscores as it takes to differ from `taken`.
  private static func available(_ name: String, besides taken: Set<String>) -> String {
    var name = name
    // A single underscore has a meaning in Swift; several have none.
    if name.allSatisfy({ $0 == "_" }) { name += "_" }
    while taken.contains(name) { name += "_" }
    return name
  }

  /// A name as it is declared: a keyword is in back-ticks.
  static func quoted(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// Names that have another meaning after a dot, even in back-ticks.
  private static let special: Set<String> = ["init", "self"]

  /// Types that cannot be declared in a module without changing what the generated code means.
  ///
  /// The generated code writes `Swift.String`, not `Swift::String`: compilers up to 6.3 ignore the
  /// latter in the inheritance clause of a protocol or an enumeration. So no type can be called
  /// `Swift`. A module's own `StringLiteralType` and the like would change the types of literals.
  static let takenTypes = special.union([
    "Any", "BooleanLiteralType", "ExtendedGraphemeClusterType", "FloatLiteralType",
    "IntegerLiteralType", "Protocol", "Self", "StringLiteralType", "Swift", "Type",
    "UnicodeScalarType",
  ])

  /// Members that the generated code, or a protocol that it conforms to, adds to each message.
  private static let takenInMessages: Set<String> = [
    "encodedByteCount", "encodedBytes", "hashValue", "isMeasuredByEncoding", "layout", "pushType",
  ]

  private static let takenProperties = special.union([
    "encodedByteCount", "encodedBytes", "hashValue",
  ])

  /// In an optional, `.none` and `.some` would mean the cases of `Optional`.
  private static let takenCases = special.union(["hashValue", "none", "some"])

  /// Members of a generated client besides its methods.
  private static let takenMethods = special.union(["client", "options"])

  /// Words that need back-ticks in a declaration.
  private static let keywords = Set(
    """
    as associatedtype await break case catch class continue default defer deinit do else enum \
    extension fallthrough false fileprivate for func guard if import in inout internal is let nil \
    operator precedencegroup private protocol public repeat rethrows return static struct \
    subscript super switch throw throws true try typealias unsafe var where while
    """.split(separator: " ").map(String.init))
}
#endif
