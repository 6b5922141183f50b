// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Who a client is, as the server's `authenticate` function has found.
public struct Principal: Hashable, Sendable, CustomStringConvertible {
  private struct Storage: Hashable, Sendable {
    let name: String
    let attributes: [String: String]
  }

  private let storage: Box<Storage>

  /// Makes a principal with a name, by which limits count and connections are ended, and attributes
  /// that the application defines, such as roles.
  public init(_ name: String, attributes: [String: String] = [:]) {
    storage = Box(Storage(name: name, attributes: attributes))
  }

  /// The principal's name. It appears in logs.
  public var name: String { storage.value.name }
  /// The attributes that the application has given the principal. They are not logged.
  public var attributes: [String: String] { storage.value.attributes }
  /// The name.
  public var description: String { name }

  /// Whether names and attributes are equal, as text.
  public static func == (lhs: Principal, rhs: Principal) -> Bool {
    lhs.storage.value == rhs.storage.value
  }

  /// Hashes the name.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
  }
}

extension String {
  /// Whether a text has the same bytes. `==` also takes texts for equal that are written with
  /// other characters and look the same, which is too little to tell principals apart.
  package func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
