// SPDX-License-Identifier: Apache-2.0

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
    /// In lower camel case: `sayHello`.
    let name: String

    /// Whether its requests may run twice, as a case of `Idempotency`.
    var idempotency: String {
      switch descriptor.options.idempotencyLevel {
      case .idempotencyUnknown: ".unknown"
      case .idempotent: ".idempotent"
      case .noSideEffects: ".readOnly"
      }
    }

    /// As it is declared.
    var declared: String { SwiftNames.quoted(name) }
    /// In upper camel case, for names that have a word before it.
    var upperName: String {
      let ending = name.dropFirst(NamingUtils.toLowerCamelCase(descriptor.name).count)
      return NamingUtils.toUpperCamelCase(descriptor.name) + ending
    }
  }

  init(_ descriptor: ServiceDescriptor, _ names: SwiftNames) {
    self.descriptor = descriptor
    let name = NamingUtils.toUpperCamelCase(descriptor.name)
    let isSuffixed = name.hasSuffix("Service") && name != "Service"
    base = isSuffixed ? String(name.dropLast("Service".count)) : name
    methods = descriptor.methods.map { Method(descriptor: $0, name: names.name($0)) }
  }

  var enumeration: String { base + "Methods" }
  var client: String { base + "Client" }
  var handler: String { base + "Service" }
  var simulated: String { "Simulated" + base + "Server" }
  /// What a server is told a handler by; a label, which an underscore is not.
  var label: String {
    let label = NamingUtils.toLowerCamelCase(base)
    return label == "_" ? "__" : SwiftNames.quoted(label)
  }
}
#endif
