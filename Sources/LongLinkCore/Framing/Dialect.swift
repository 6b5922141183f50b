// SPDX-License-Identifier: Apache-2.0

/// The protocol of a connection: the native one, or another one given by a description.
///
/// Both sides must choose the same protocol. A dialect has no handshake: a connection is open as
/// soon as it is established, and its limits and heartbeat come from the description. Features that
/// the dialect cannot express are absent. `LongLinkDialects` makes dialects from descriptions.
public struct Dialect: Sendable {
  /// The described protocol; nil for the native one.
  package let source: (any DialectSource)?

  /// The native protocol.
  public static let native = Dialect(nil)

  package init(_ source: (any DialectSource)?) {
    self.source = source
  }
}

/// A factory for the framing of connections.
package protocol DialectSource: AnyObject, Sendable {
  /// Returns what the dialect lets a side do.
  func facts(_ role: Role) -> DialectFacts
  /// Throws if the token of all connections does not fit.
  func validate(_ role: Role) throws(DialectTokenError)
  /// Whether each connection has its own token in its frames.
  var isPerConnection: Bool { get }
  /// Returns the framing that connections without their own token share.
  func sharedFraming(_ role: Role, maxBody: Int) throws(DialectTokenError) -> any DialectFraming
  /// Returns the framing of one connection. Throws if its token does not fit.
  func framing(_ role: Role, maxBody: Int) throws(DialectTokenError) -> any DialectFraming
}

/// A token that is not as wide as its field in the frames of a dialect.
package struct DialectTokenError: Error, Equatable, CustomStringConvertible {
  private let count: Int
  private let width: Int

  package init(bytes count: Int, insteadOf width: Int) {
    self.count = count
    self.width = width
  }

  package var description: String { "the token has \(count) bytes instead of \(width)" }
}
