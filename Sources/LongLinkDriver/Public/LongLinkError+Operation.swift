// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension LongLinkError.Operation {
  package var messageType: MessageType? {
    switch self {
    case .request(let type, _), .push(let type): type
    case .exchange(_, let type): type
    case .check, .other: nil
    }
  }

  package var serial: UInt32? {
    if case .request(_, let serial) = self { serial } else { nil }
  }

  package var field: String? {
    if case .check(let field) = self { field } else { nil }
  }
}

extension LongLinkError.Operation: CustomStringConvertible {
  package var description: String { text(of: "") }

  /// The operation as text. That of a request contains the name of its method, unless it is empty.
  package func text(of method: String) -> String {
    let name = method.isEmpty ? "" : "\(method) "
    return switch self {
    case .request(let type, let serial?): "request \(name)type=\(type) serial=\(serial)"
    case .request(let type, nil): "request \(name)type=\(type)"
    case .push(let type): "push type=\(type)"
    case .exchange(let text, _): text
    case .check(let field): "check `\(field)`"
    case .other(let text): text
    }
  }
}

extension LongLinkError.Operation: ExpressibleByStringInterpolation {
  package init(stringLiteral text: String) {
    self = .other(text)
  }
}
