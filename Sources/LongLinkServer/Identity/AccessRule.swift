// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver

/// A rule that says which clients may use a route, or send a push.
///
/// A server checks a rule on the connection's loop, for each request, before it decodes the body
/// or calls anything of the application. A rule costs time only where one is set.
public struct AccessRule: Sendable {
  package let condition: AccessCondition

  private init(_ condition: AccessCondition) {
    self.condition = condition
  }

  /// Allows all peers, even those that were not authenticated: the same as no rule. Use it where
  /// `LongLinkServer.require(_:)` has set another rule for all routes.
  public static let everyone = AccessRule(.everyone)

  /// Allows all peers that have a principal.
  public static let authenticated = AccessRule(.authenticated)

  /// Allows the principal with this name. Names are compared byte by byte in UTF-8, because names
  /// that look the same may belong to two principals.
  public static func principal(named name: String) -> AccessRule { AccessRule(.principal(name)) }

  /// Allows principals whose attribute `name` has this value, such as `role` and `editor`.
  public static func attribute(_ name: String, _ value: String) -> AccessRule {
    AccessRule(.attribute(name, value))
  }

  /// Allows a peer that at least one of the rules allows. The rules are checked in order, up to the
  /// first one that allows it. It traps if `rules` is empty.
  public static func any(_ rules: [AccessRule]) -> AccessRule {
    precondition(!rules.isEmpty, "an access rule is made of no rules")
    return AccessRule(.any(rules.map(\.condition)))
  }

  /// Allows a peer that all of the rules allow. The rules are checked in order, up to the first one
  /// that does not allow it. It traps if `rules` is empty.
  public static func all(_ rules: [AccessRule]) -> AccessRule {
    precondition(!rules.isEmpty, "an access rule is made of no rules")
    return AccessRule(.all(rules.map(\.condition)))
  }

  /// Allows peers for which a function returns true.
  ///
  /// The function sees the peer's `principal`, `security` and `address`. It is called on the
  /// connection's loop for each request, and must not block: look things up in memory. A check that
  /// has to wait, such as for a database, belongs in an interceptor.
  public static func custom(_ allows: @escaping @Sendable (Peer) -> Bool) -> AccessRule {
    AccessRule(.custom(allows))
  }
}
