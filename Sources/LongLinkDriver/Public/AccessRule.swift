// SPDX-License-Identifier: Apache-2.0

/// Who may use a route, or send a push.
///
/// A server checks a rule on the connection's loop, for each request, before it decodes the body
/// or calls anything of the application. A rule costs time only where one is set.
public struct AccessRule: Sendable {
  private indirect enum Condition: Sendable {
    case everyone
    case authenticated
    case principal(String)
    case attribute(String, String)
    case any([AccessRule])
    case all([AccessRule])
    case custom(@Sendable (Peer) -> Bool)
  }

  private let condition: Condition

  private init(_ condition: Condition) {
    self.condition = condition
  }

  /// Allows everyone, also peers that were not authenticated: the same as no rule. Use it where
  /// `LongLinkServer.require(_:)` has set another rule for all routes.
  public static let everyone = AccessRule(.everyone)

  /// Allows peers that have a principal, whoever they are.
  public static let authenticated = AccessRule(.authenticated)

  /// Allows the principal with this name, compared byte by byte in UTF-8: names that look the same
  /// may be those of two principals.
  public static func principal(named name: String) -> AccessRule { AccessRule(.principal(name)) }

  /// Allows principals that have an attribute with this value, such as `role` and `editor`.
  public static func attribute(_ name: String, _ value: String) -> AccessRule {
    AccessRule(.attribute(name, value))
  }

  /// Allows whom at least one of the rules allows. The rules are checked in order, up to the first
  /// that does. It traps if `rules` is empty.
  public static func any(_ rules: [AccessRule]) -> AccessRule {
    precondition(!rules.isEmpty, "an access rule is made of no rules")
    return AccessRule(.any(rules))
  }

  /// Allows whom each of the rules allows. The rules are checked in order, up to the first that
  /// does not. It traps if `rules` is empty.
  public static func all(_ rules: [AccessRule]) -> AccessRule {
    precondition(!rules.isEmpty, "an access rule is made of no rules")
    return AccessRule(.all(rules))
  }

  /// Allows peers for which a function returns true.
  ///
  /// The function sees the peer's `principal`, `security` and `address`. It is called on the
  /// connection's loop for each request, and must not block: look things up in memory. What has to
  /// wait for a database belongs in an interceptor.
  public static func custom(_ allows: @escaping @Sendable (Peer) -> Bool) -> AccessRule {
    AccessRule(.custom(allows))
  }

  /// Whether the rule allows a peer; on the loop.
  package func allows(_ peer: Peer) -> Bool {
    switch condition {
    case .everyone: true
    case .authenticated: peer.principal != nil
    case .principal(let name): peer.principal?.name.isSameBytes(as: name) ?? false
    case .attribute(let name, let value):
      peer.principal?.attributes[name]?.isSameBytes(as: value) ?? false
    case .any(let rules): rules.contains { $0.allows(peer) }
    case .all(let rules): rules.allSatisfy { $0.allows(peer) }
    case .custom(let allows): allows(peer)
    }
  }

  /// Whether the rule allows nobody without a principal.
  package var needsPrincipal: Bool {
    switch condition {
    case .everyone, .custom: false
    case .authenticated, .principal, .attribute: true
    case .any(let rules): rules.allSatisfy(\.needsPrincipal)
    case .all(let rules): rules.contains(where: \.needsPrincipal)
    }
  }

  /// Whether the rule allows every peer, so that there is nothing to check.
  package var isOpen: Bool {
    if case .everyone = condition { true } else { false }
  }
}
