// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

// The properties of a link. More is read from its `connection`.

extension Link {
  /// Whether requests and pushes may be sent.
  package var isOpen: Bool { core.isOpen }
  /// Whether exchanges may continue: neither side is closing the connection.
  package var isLive: Bool { core.isLive }
  package var counters: ConnectionCounters { core.counters }

  /// How the transport is secured; nil for a plain one.
  package var security: ConnectionSecurity? { layer?.security }
  /// How long the peer, or a proxy in its place, asked to wait when the transport broke, in
  /// nanoseconds.
  var retryAfter: Int64? { layer?.retryAfter }
  /// Why the transport could not be secured, or is no longer secure; nil if it did not fail.
  package var securityFailure: SecurityFailure? {
    layer?.securityFailure ?? LinkEnding.failure(core.phase.endReason, of: core.settings.role)
  }
  /// Whether the peer's system has answered the connect.
  package var isReached: Bool { isConnected || isAlive && layer?.isHandshaking == true }

  /// Who the client is, and whether it is accepted.
  package var identity: IdentityPort { IdentityPort(link: self) }
  /// What people are told of the end. Ask for it before the link has ended, except for a failure of
  /// its security or a timeout.
  package var ending: LinkEnding { LinkEnding(of: self) }

  /// Whether a request or push may be sent; large ones have a mark of their own, too.
  package var hasRoom: Bool { core.isOpen && !core.marks.isAbove }

  // MARK: The message that is being delivered to the owner

  /// Takes its body; call it once.
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
