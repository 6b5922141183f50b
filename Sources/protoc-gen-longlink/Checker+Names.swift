// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// Finds clashes of names in Swift or in C that `SwiftNames` and `CNames` do not resolve.
extension Checker {
  func checkNames(_ findings: inout Findings) {
    var types = Claims("rename one of them, or add option swift_prefix = \"…\";")
    var structures = Claims("rename one of them, or put it into another package")
    let isC = schema.options.runtime == .protobufC
    for file in schema.files {
      for message in file.allMessages {
        types.claim(schema.type(message), message, message.fullName, &findings)
        guard isC else { continue }
        let fullName = schema.cNames.fullName(message)
        structures.claim(CNames.structure(fullName), message, message.fullName, &findings)
        structures.claim(CNames.lower(fullName), message, message.fullName, &findings)
        for inner in message.enums {
          types.claim(schema.type(inner), inner, inner.fullName, &findings)
        }
        checkContents(of: message, &findings)
      }
      for enumeration in file.enums where isC {
        types.claim(schema.type(enumeration), enumeration, enumeration.fullName, &findings)
      }
      for service in file.services.map({ Service($0, schema.names) }) {
        let module = schema.options.messages?.module ?? ""
        for name in [service.enumeration, service.client, service.handler, service.simulated] {
          let descriptor = service.descriptor
          types.claim("\(module)::\(name)", descriptor, descriptor.fullName, &findings)
        }
        checkMethods(service, &findings)
      }
    }
  }

  private func checkContents(of message: Descriptor, _ findings: inout Findings) {
    var properties = Claims("rename one of them")
    for oneof in message.realOneofs {
      guard let first = oneof.fields.first else { continue }
      properties.claim(schema.names.name(oneof), first, oneof.fullName, &findings)
      var cases = Claims("rename one of them")
      for field in oneof.fields {
        cases.claim(schema.names.name(field), field, field.fullName, &findings)
      }
    }
    for field in message.fields where field.realContainingOneof == nil {
      properties.claim(schema.names.name(field), field, field.fullName, &findings)
    }
    for enumeration in message.enums + (message.containingType == nil ? message.file.enums : []) {
      var cases = Claims("rename one of them")
      var numbers: Set<String> = []
      for value in enumeration.values
      where numbers.insert("\(value.number) \(schema.names.name(value))").inserted {
        cases.claim(schema.names.name(value), value, value.fullName, &findings)
      }
    }
  }

  /// Checks the names derived from each method, one for each way to call it.
  private func checkMethods(_ service: Service, _ findings: inout Findings) {
    var names = Claims("rename one of them")
    for method in service.methods {
      let (lower, upper) = (method.name, method.upperName)
      let sendsItems = method.descriptor.clientStreaming
      var derived = [lower, "on" + upper, "waitFor" + upper]
      derived.append(lower + (sendsItems ? "Items" : "Requests"))
      if !sendsItems { derived.append(lower + "Blocking") }
      if method.kind == .unary { derived.append("submit" + upper) }
      for name in derived {
        names.claim(name, method.descriptor, method.descriptor.fullName, &findings)
      }
    }
  }
}

/// Names in one scope, each with its first user.
private struct Claims {
  private var users: [String: (fullName: String, location: SourceLocation)] = [:]
  private let advice: String

  init(_ advice: String) {
    self.advice = advice
  }

  mutating func claim(
    _ name: String, _ user: some Located, _ fullName: String, _ findings: inout Findings
  ) {
    if let other = users[name], other.fullName != fullName {
      let short = name.split(separator: ":").last ?? ""
      let taker = "\(other.fullName) (\(findings.text(other.location)))"
      findings.add(user, "the name \(short) is taken by \(taker): \(advice)")
    } else {
      users[name] = (fullName, user.location)
    }
  }
}
#endif
