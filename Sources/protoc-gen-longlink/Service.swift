// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A service, with the names of its generated parts.
struct Service {
  let descriptor: ServiceDescriptor
  /// The name without the suffix `Service`: `Echo` for `Echo` and for `EchoService`.
  let base: String
  let methods: [Method]

  /// The kind of a method: which of its sides are streams.
  enum Kind {
    case unary
    case serverStreaming
    case clientStreaming
    case bidirectional
  }

  struct Method {
    let descriptor: MethodDescriptor
    /// The method's name in lower camel case: `sayHello`.
    let name: String

    var kind: Kind {
      switch (descriptor.clientStreaming, descriptor.serverStreaming) {
      case (false, false): .unary
      case (false, true): .serverStreaming
      case (true, false): .clientStreaming
      case (true, true): .bidirectional
      }
    }

    /// The arguments of `RPCMethod` for the options that say whether requests can run twice.
    var idempotency: String {
      if descriptor.runsOnce { return ", options: .init(retry: .once)" }
      return switch descriptor.options.idempotencyLevel {
      case .idempotencyUnknown: ""
      case .idempotent: ", options: .init(retry: .idempotent)"
      case .noSideEffects: ", isReadOnly: true"
      }
    }

    /// The name as it is declared, with back-ticks if it needs them.
    var declared: String { SwiftNames.quoted(name) }
    /// The name in upper camel case, to follow a word in a longer name.
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

  var hasStreams: Bool { methods.contains { $0.kind != .unary } }

  var enumeration: String { base + "Methods" }
  var client: String { base + "Client" }
  var handler: String { base + "Service" }
  var simulated: String { "Simulated" + base + "Server" }
  /// The label of `register` for the handler. An underscore would mean no label.
  var label: String {
    let label = NamingUtils.toLowerCamelCase(base)
    return label == "_" ? "__" : SwiftNames.quoted(label)
  }
}
#endif
