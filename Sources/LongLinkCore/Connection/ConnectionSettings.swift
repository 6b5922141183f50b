// SPDX-License-Identifier: Apache-2.0

/// What one side of a connection allows and asks for.
package struct ConnectionSettings: Sendable {
  package var role: Role
  /// The dialect that is spoken; nil for the native protocol.
  package var dialect: (any DialectFraming)?
  /// The largest body that this side accepts, in bytes.
  package var maxBody = Int(Wire.defaultBody)
  /// The most requests of the peer at once: those that are not answered, and those whose handlers
  /// have not returned.
  package var maxInFlight = Int(Wire.defaultInFlight)
  /// The most bytes that the peer's unfinished messages and the bodies of its requests may hold
  /// together. Responses to this side's own requests do not count for a client.
  package var maxRequestBytes = 33_554_432
  /// This side's heartbeat, in nanoseconds, until both agree on another.
  package var heartbeatInterval = Int64(Wire.defaultInterval) * 1_000_000
  package var heartbeatTimeout = Int64(Wire.defaultTimeout) * 1_000_000
  /// How long this side itself lets a silence last at first, in nanoseconds, where that is to
  /// change: answered heartbeats are told then. Nil for the agreed interval.
  package var pace: Int64?
  /// Requests in a row, without a byte read, whose deadlines raise suspicion; 0 for never.
  package var missedDeadlines = 3
  /// How long the first frame (of a client) or the welcome (of a server) may take, in nanoseconds.
  package var handshakeTimeout: Int64 = 10_000_000_000
  /// How long one frame may take from its first byte to its last, in nanoseconds.
  package var frameTimeout: Int64 = 30_000_000_000
  /// How long a request or push may wait for its next fragment, in nanoseconds.
  package var messageTimeout: Int64 = 60_000_000_000
  /// How long the peer may take no byte of what waits for it, in nanoseconds.
  package var writingTimeout: Int64 = 40_000_000_000
  /// A peer is dropped when one more message is to join more than so many bytes that wait for it;
  /// from half of them on a server does not read its requests.
  package var maxUnread = 67_108_864
  /// From this many encoded bytes on the peer's requests are not read, and frames are kept back.
  package var encodeLimit = 262_144
  /// Where requests and pushes of this side begin to wait, and where they go on.
  package var waterMarks = WaterMarks()
  package var features = Features.supported
  package var name = ""
  /// Spreads the peer's serials in tables, so that it cannot pick ones that collide. It changes
  /// nothing but the time that looking them up takes.
  package var serialMix: UInt32 = 0

  package init(role: Role) {
    self.role = role
  }
}
