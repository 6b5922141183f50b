// SPDX-License-Identifier: Apache-2.0

/// The limits and options of one side of a connection.
package struct ConnectionSettings: Sendable {
  package var role: Role
  /// Whether the stream is a short link, which carries one exchange; never with a dialect.
  package var isShort = false
  /// The dialect of the connection; nil for the native protocol.
  package var dialect: (any DialectFraming)?
  /// The largest body that this side accepts, in bytes.
  package var maxBody = Int(Wire.defaultBody)
  /// The most concurrent requests of the peer: those without a response, and those whose handlers
  /// have not returned.
  package var maxInFlight = Int(Wire.defaultInFlight)
  /// The most bytes that the peer's incomplete messages and the bodies of its requests can hold
  /// together. On a client, responses to its own requests do not count.
  package var maxRequestBytes = 33_554_432
  /// This side's heartbeat before the handshake, in nanoseconds.
  package var heartbeatInterval = Int64(Wire.defaultInterval) * 1_000_000
  package var heartbeatTimeout = Int64(Wire.defaultTimeout) * 1_000_000
  /// The initial ping interval in nanoseconds, if an adaptive heartbeat will change it; enables
  /// `.heartbeatAnswered`. Nil for the agreed interval.
  package var pace: Int64?
  /// The number of missed deadlines in a row, without a byte read, that cause a ping; 0 for never.
  package var missedDeadlines = 3
  /// The timeout for the first frame (of a client) or the welcome (of a server), in nanoseconds.
  package var handshakeTimeout: Int64 = 10_000_000_000
  /// The timeout for a frame, from its first byte to its last, in nanoseconds.
  package var frameTimeout: Int64 = 30_000_000_000
  /// The timeout for the next fragment of a request or push, in nanoseconds.
  package var messageTimeout: Int64 = 60_000_000_000
  /// How long waiting bytes can make no progress, in nanoseconds; shorter if the agreed heartbeat
  /// is.
  package var writingTimeout: Int64 = 40_000_000_000
  /// The number of unread bytes above which a peer is dropped when another message is sent to it.
  /// Above half of it, a server stops reading the peer's requests.
  package var maxUnread = 67_108_864
  /// The number of encoded bytes from which on the peer's requests are not read and frames are
  /// queued.
  package var encodeLimit = 262_144
  /// The marks at which requests and pushes of this side begin to wait, and resume.
  package var waterMarks = WaterMarks()
  /// How many requests the peer can cancel per second, and at once; nil for any number.
  package var cancelRate: TokenBucket.Rate?
  package var features = Features.supported
  /// The windows of streams.
  package var windows = StreamWindows()
  package var name = ""
  /// Whether this server decides about each client before it acts on what the client sends.
  package var identifies = false
  /// Client: whether it asks that its requests can run once. Server: whether it has a store for
  /// keys, and then it decides about each client that asks, too: see `Connection.admit`.
  package var usesOnce = false
  /// Whether the connection reports each request of the peer that it refuses by itself.
  package var reportsRefusals = false
  /// The credential of this client; at most `Wire.credentialLimit` bytes.
  package var credential: [UInt8] = []
  /// What names this client on all its connections; nil for a client of one connection alone.
  package var clientID: ClientID?
  /// A secret that spreads the peer's serials in tables, so that the peer cannot pick serials that
  /// collide. It affects only the time of look-ups.
  package var serialMix: UInt32 = 0

  package init(role: Role) {
    self.role = role
  }
}
