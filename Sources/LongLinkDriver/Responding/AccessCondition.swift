// SPDX-License-Identifier: Apache-2.0

/// What a route asks of a peer: the condition of a server's `AccessRule`.
package indirect enum AccessCondition: Sendable {
  case everyone
  case authenticated
  case principal(String)
  case attribute(String, String)
  case any([AccessCondition])
  case all([AccessCondition])
  case custom(@Sendable (Peer) -> Bool)

  /// Whether the condition allows a peer; call it on the loop.
  package func allows(_ peer: Peer) -> Bool {
    switch self {
    case .everyone: true
    case .authenticated: peer.principalRecord != nil
    case .principal(let name): peer.principalRecord?.name.isSameBytes(as: name) ?? false
    case .attribute(let name, let value):
      peer.principalRecord?.attributes[name]?.isSameBytes(as: value) ?? false
    case .any(let conditions): conditions.contains { $0.allows(peer) }
    case .all(let conditions): conditions.allSatisfy { $0.allows(peer) }
    case .custom(let allows): allows(peer)
    }
  }

  /// Whether the condition refuses every peer without a principal.
  package var needsPrincipal: Bool {
    switch self {
    case .everyone, .custom: false
    case .authenticated, .principal, .attribute: true
    case .any(let conditions): conditions.allSatisfy(\.needsPrincipal)
    case .all(let conditions): conditions.contains(where: \.needsPrincipal)
    }
  }

  /// Whether the condition allows every peer, so that there is nothing to check.
  package var isOpen: Bool {
    if case .everyone = self { true } else { false }
  }
}
