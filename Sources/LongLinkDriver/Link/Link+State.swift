// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

// More properties of a link. The others are those of its `connection`.

extension Link {
  /// Whether requests and pushes may be sent.
  package var isOpen: Bool { core.isOpen }
  /// Whether exchanges may continue: neither side is closing the connection.
  package var isLive: Bool { core.isLive }
  package var counters: ConnectionCounters { core.counters }

  /// The round-trip time in nanoseconds, as the system estimates it; nil if not known.
  package var roundTrip: Int64? { isConnected && isAlive ? transport.roundTrip : nil }

  /// How the transport is secured; nil for a plain one.
  package var security: ConnectionSecurity? { layer?.security }
  /// How long the peer, or a proxy in its place, asked to wait when the transport broke, in
  /// nanoseconds; nil if neither asked.
  var retryAfter: Int64? { layer?.retryAfter }
  /// Why the transport could not be secured, or is no longer secure; nil if it did not fail.
  package var securityFailure: SecurityFailure? {
    layer?.securityFailure ?? LinkEnding.failure(core.phase.endReason, of: core.settings.role)
  }
  /// Whether the peer's system has answered the connect.
  package var isReached: Bool { isConnected || isAlive && layer?.isHandshaking == true }

  /// The commands that identify, accept and refuse the client of this link.
  package var identity: IdentityPort { IdentityPort(link: self) }
  /// The explanation of the link's end for people. Ask for it before the link has ended, unless its
  /// security has failed or a timeout has passed.
  package var ending: LinkEnding { LinkEnding(of: self) }

  /// Whether a request or push may be sent. Those in fragments also have a water mark of their own.
  package var hasRoom: Bool { core.isOpen && !core.marks.isAbove }

  // MARK: The message that is being delivered to the owner

  /// Takes the message's body; call it once.
  @inline(__always)
  package func takeBody(of message: Arrival) -> [UInt8] {
    core.inbox.takeBytes(of: message.payload)
  }

  /// The message's metadata; nil if it has none.
  package func metadata(of message: Arrival) -> ReceivedMetadata? {
    message.hasMetadata ? core.inbox.lastMetadata : nil
  }

  /// The message's metadata; nil if it contains at most the remaining time.
  func notableMetadata(of message: Arrival) -> ReceivedMetadata? {
    message.hasMetadata && !core.inbox.metadata.isPlain ? core.inbox.lastMetadata : nil
  }

  /// The remaining time in the message's metadata, in milliseconds; nil if there is none.
  func remaining(of message: Arrival) -> UInt32? {
    message.hasMetadata ? core.inbox.metadata.last.remaining : nil
  }
}
