// SPDX-License-Identifier: Apache-2.0

/// Which protocol is spoken on a connection: the native one, or another one that is described.
///
/// Both sides have to choose the same. In a dialect there is no handshake: a connection is open as
/// soon as it is made, and limits and heartbeat are those of the description. What a dialect has no
/// word for is absent. `LongLinkDialects` makes dialects of descriptions.
public struct Dialect: Sendable {
  /// What is described; nil for the native protocol.
  package let source: (any DialectSource)?

  /// The native protocol.
  public static let native = Dialect(nil)

  package init(_ source: (any DialectSource)?) {
    self.source = source
  }
}

/// What makes the framing of each connection.
package protocol DialectSource: AnyObject, Sendable {
  /// What a side can do.
  func facts(_ role: Role) -> DialectFacts
  /// Throws when it is known beforehand that it cannot work.
  func validate(_ role: Role) throws(FrameLayoutError)
  /// Whether the frames of each connection have a prefix of their own.
  var isPerConnection: Bool { get }
  /// What connections share, without a prefix of their own.
  func sharedFraming(_ role: Role, maxBody: Int) throws(FrameLayoutError) -> any DialectFraming
  /// What one connection speaks. Throws where its prefix does not fit.
  func framing(_ role: Role, maxBody: Int) throws(FrameLayoutError) -> any DialectFraming
}
