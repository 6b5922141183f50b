// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Who a peer is: the contents of a server's `Principal`.
package struct PrincipalRecord: Hashable, Sendable {
  private struct Storage: Hashable, Sendable {
    let name: String
    let attributes: [String: String]
  }

  private let storage: Box<Storage>

  package init(_ name: String, attributes: [String: String]) {
    storage = Box(Storage(name: name, attributes: attributes))
  }

  package var name: String { storage.value.name }
  package var attributes: [String: String] { storage.value.attributes }

  package static func == (lhs: PrincipalRecord, rhs: PrincipalRecord) -> Bool {
    lhs.storage.value == rhs.storage.value
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(name)
  }
}

extension String {
  /// Whether two texts have the same bytes. `==` also equates different characters that look the
  /// same, which is too lax for principals.
  package func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
