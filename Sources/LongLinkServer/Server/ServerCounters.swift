// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// A snapshot of a server's counters since it was started.
public struct ServerCounters: Hashable, Sendable {
  /// Connections that were accepted and have not ended, including `handshakes`.
  public internal(set) var openConnections = 0
  /// Clients that have an open connection, or whose last one ended less than `identity.linger` ago.
  public internal(set) var clients = 0
  /// Connections whose first frame has not come yet, or whose encryption is not set up, or whose
  /// client is not authenticated.
  public internal(set) var handshakes = 0
  /// Connections that were closed as the oldest of `handshakes`, to make room for newer ones within
  /// `limits.maxHandshakes` or `limits.maxConnections`.
  public internal(set) var handshakesEvicted: UInt64 = 0
  /// Connections that were accepted.
  public internal(set) var connectionsAccepted: UInt64 = 0
  /// Connections and short links that were rejected before any frame was read, by the setting that
  /// rejected them, such as `limits.maxConnections` or `onAccept`.
  public internal(set) var rejections: [String: UInt64] = [:]
  /// Connections that were rejected before any frame was read: the sum of `rejections`.
  public var connectionsTurnedAway: UInt64 { rejections.values.reduce(0, +) }
  /// Connections that were closed because their clients cancelled more requests per second than
  /// `limits.maxCancelsPerSecond` allows.
  public var cancelsOverLimit: UInt64 { endings["cancelLimit", default: 0] }
  /// Connections that the system failed to accept, for example because no descriptor was free.
  public internal(set) var acceptFailures: UInt64 = 0
  /// Short links that were accepted. They count as connections, too.
  public internal(set) var shortLinks: UInt64 = 0
  /// Requests that have not ended: fragments of them are missing, their handlers run, or their
  /// responses are being sent.
  public internal(set) var requestsRunning = 0
  /// Pushes that wait for room on their connections.
  public internal(set) var pushesWaiting = 0
  /// Bytes of output that wait to be written.
  public internal(set) var bytesUnwritten = 0
  /// Bytes that the server holds for all connections, as `limits.memoryLimit` counts them.
  public internal(set) var bytesHeld = 0
  /// Pushes of `Peer.pushNow` that were handed to the loop of the client's current connection, but
  /// could not be sent there.
  public internal(set) var pushesLost: UInt64 = 0
  /// Pushes of clients that were dropped because `onPush` has set no function for their type.
  public internal(set) var pushesUnhandled: UInt64 = 0
  /// Pushes of clients that were dropped because an access rule did not allow them.
  public internal(set) var pushesDenied: UInt64 = 0
  /// Turns of the server's own loops that work blocked for longer than 200 ms. Those of loops that
  /// you gave the server are not counted.
  public internal(set) var turnsTooLong: UInt64 = 0
  /// The sums of the counters of all connections, past and present, short links included.
  public internal(set) var connections = ConnectionCounters()
  /// Connections that ended, by the `token` of their `CloseReason`. Examples: `stalledPeer`, which
  /// took no byte for too long, and `unreadOutput`, for which too many bytes waited.
  public internal(set) var endings: [String: UInt64] = [:]
  /// Connections that ended because the client broke a rule of the protocol, by the rule's name.
  public internal(set) var violations: [String: UInt64] = [:]
  /// Requests that were to run once, by what became of them.
  ///
  /// `run` counts calls of handlers, `replayed` answers of earlier requests, and `gone` responses
  /// 410. The others were refused: `conflict` with 409, `terms` with 412, `full` with 429 by the
  /// store, `detached` with 429 by `once.maxDetachedHandlers`, `overloaded` with 429 by other
  /// limits of the server, and `store` with 503.
  public package(set) var onceRequests: [String: UInt64] = [:]
  /// Handlers that still run although the requests for which they were called have ended; see
  /// `once.maxDetachedHandlers`.
  public package(set) var onceDetached = 0
  /// Records in a `MemoryOnceStore`, expired ones that are not removed yet included; 0 with any
  /// other store.
  public package(set) var onceRecords = 0
  /// The bytes of the records in a `MemoryOnceStore`, as its `maxBytes` counts them; 0 with any
  /// other store.
  public package(set) var onceBytes = 0
  /// How the clients were authenticated; zero on a server without `authenticate`.
  package internal(set) var authentications = AuthenticationCounters()
  /// Counters of the server's own requests to its clients.
  public internal(set) var requests = RequestCounters()
}

extension ServerCounters {
  /// Clients that `authenticate` has accepted.
  public var authenticationsAccepted: UInt64 { authentications.accepted }
  /// Renewals of connected clients' credentials that `authenticate` has accepted.
  public var credentialsRenewed: UInt64 { authentications.renewed }
  /// Clients, and renewals of credentials, that `authenticate` has refused with 401 or 403.
  public var authenticationsRefused: UInt64 { authentications.refused }
  /// Calls of `authenticate` that threw an error other than a `Rejection` with 401 or 403; their
  /// clients got 503, and may come back.
  public var authenticationsFailed: UInt64 { authentications.failed }
  /// Clients, and renewals of credentials, that got 503 because `authenticate` did not return
  /// within `identity.timeout`, or did not begin.
  public var authenticationsTimedOut: UInt64 { authentications.timedOut }
  /// Connections that the server began to close because their credential had expired.
  public var credentialsExpired: UInt64 { authentications.expired }
}

extension ServerCounters: CustomStringConvertible {
  /// The counters that are not zero, a line for each.
  public var description: String { CounterText.lines(of: self) }
}
