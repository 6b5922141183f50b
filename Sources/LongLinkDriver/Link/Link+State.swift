// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

// The properties of a link. More is read from its `connection`.

extension Link {
  /// Whether requests and pushes may be sent.
  package var isOpen: Bool { core.isOpen }
  /// Whether exchanges may continue: neither side is closing the connection.
  package var isLive: Bool { core.isLive }
  var role: Role { core.settings.role }
  /// Whether this is a short link, which carries one exchange.
  package var isShort: Bool { core.settings.isShort }

  /// How the transport is secured; nil for a plain one.
  package var security: ConnectionSecurity? { layer?.security }
  /// How long the peer, or a proxy in its place, asked to wait when the transport broke, in
  /// nanoseconds.
  var retryAfter: Int64? { layer?.retryAfter }
  /// Why the transport could not be secured, or is no longer secure; nil if it did not fail.
  package var securityFailure: SecurityFailure? {
    layer?.securityFailure ?? LinkEnding.failure(core.phase.endReason, of: role)
  }
  /// Whether the peer's system has answered the connect.
  package var isReached: Bool { isConnected || isAlive && layer?.isHandshaking == true }

  /// The explanation of the link's end for people. Ask for it before the link has ended, unless its
  /// security has failed or a timeout has passed.
  package var ending: LinkEnding { LinkEnding(of: self) }

  /// Whether a request or push may be sent; one in fragments also needs `takesLarge`.
  package var hasRoom: Bool { core.isOpen && !core.marks.isAbove }
  /// Whether a request or push in fragments may be sent.
  package var takesLarge: Bool { !core.marks.isAboveLarge }
}

// MARK: - The message that is being delivered to the owner

extension Link {
  /// Takes the message's body; call it once.
  @inline(__always)
  package func takeBody(of message: Arrival) -> [UInt8] {
    core.inbox.takeBytes(of: message.payload)
  }

  /// Its metadata, if any.
  package func metadata(of message: Arrival) -> ReceivedMetadata? {
    message.hasMetadata ? core.inbox.metadata.last : nil
  }

  /// Its metadata, if that holds more than the remaining time.
  func notableMetadata(of message: Arrival) -> ReceivedMetadata? {
    message.hasMetadata && !core.inbox.metadata.isPlain ? core.inbox.metadata.last : nil
  }

  /// The remaining time that it states, in milliseconds, if any.
  func remaining(of message: Arrival) -> UInt32? {
    message.hasMetadata ? core.inbox.metadata.last.remaining : nil
  }
}
