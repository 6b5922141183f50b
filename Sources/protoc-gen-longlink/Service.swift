#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A service, with the names that its parts get.
struct Service {
  let descriptor: ServiceDescriptor
  /// Without the word that all services end with: `Echo` for `Echo` and for `EchoService`.
  let base: String
  let methods: [Method]

  struct Method {
    let descriptor: MethodDescriptor
    /// In lower camel case: `sayHello`; keywords stand in back-ticks.
    let name: String
    /// In upper camel case, for names that have a word before it.
    let upperName: String

    var bareName: String { name.filter { $0 != "`" } }
  }

  init(_ descriptor: ServiceDescriptor) {
    self.descriptor = descriptor
    let name = NamingUtils.toUpperCamelCase(descriptor.name)
    let isSuffixed = name.hasSuffix("Service") && name != "Service"
    base = isSuffixed ? String(name.dropLast("Service".count)) : name
    methods = descriptor.methods.map { method in
      let name = NamingUtils.toLowerCamelCase(method.name)
      return Method(
        descriptor: method,
        name: Service.taken.contains(name)
          ? name + "Method" : Service.keywords.contains(name) ? "`\(name)`" : name,
        upperName: NamingUtils.toUpperCamelCase(method.name))
    }
  }

  var types: String { base + "Types" }
  var client: String { base + "Client" }
  var handler: String { base + "Service" }
  var simulated: String { "Simulated" + base + "Server" }
  var label: String { NamingUtils.toLowerCamelCase(base) }

  /// Members that a generated client has besides the methods, and names that no member can have.
  private static let taken: Set<String> = ["client", "options", "self", "init"]

  private static let keywords: Set<String> = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer",
    "deinit", "do", "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for",
    "func", "guard", "if", "import", "in", "inout", "internal", "is", "let", "nil", "operator",
    "precedencegroup", "private", "protocol", "public", "repeat", "rethrows", "return", "static",
    "struct", "subscript", "super", "switch", "throw", "throws", "true", "try", "typealias", "var",
    "where", "while",
  ]
}
#endif
