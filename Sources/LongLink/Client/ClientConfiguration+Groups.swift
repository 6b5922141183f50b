// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
public import LongLinkCore

extension ClientConfiguration {
  /// How a client proves to a server who it is.
  public struct Identity: Sendable {
    /// Returns what proves the client's identity to a server, in a form that the server expects,
    /// such as a token; at most 60,000 bytes. Default nil: none.
    ///
    /// The client calls it once for each round of attempts to connect, and for each short link, so
    /// return the credential that is valid now. There is one call at a time, in a task on the
    /// client's loop, which it must not block. If it throws, or does not return within
    /// `timeouts.connect`, the round fails, and the client tries again later.
    ///
    /// If the server says when the credential expires, the client asks for the next one in time,
    /// and renews it on the connection. If servers refuse the same credential twice in a row, or
    /// any two with 403, the client stops: see `ConnectionState.notAccepted`.
    public var credential: (@Sendable () async throws -> [UInt8])?
    /// Whether the credential may be sent over connections that are not encrypted. Default false:
    /// a connect without encryption, or a short link over plain HTTP, then fails, except to this
    /// machine (loopback addresses and Unix sockets).
    public var sendsCredentialUnencrypted = false
    /// What makes a server recognise this client on each of its connections, so that it stays the
    /// same client when it moves to another one. Default: 16 random bytes of the client's own.
    public var client = ClientIdentity()
  }

  /// The limits of a client: how much waits, how much it keeps, and what it accepts from its
  /// server.
  public struct Limits: Sendable {
    /// The most requests that may wait for a connection, for room on it, or for a retry; and
    /// separately the most pushes that may wait for room. At least 0. Default 10,000.
    ///
    /// Further requests and pushes fail with `overloaded`. Requests that return from a lost
    /// connection count too, but never fail with it.
    public var maxWaiting = 10_000
    /// The most bytes in the bodies of all waiting requests, and separately in those of all waiting
    /// pushes; at least 0. Default 16 MiB each.
    public var maxWaitingBytes = 16_777_216
    /// The largest body accepted from the server, in bytes: 1 to 2,147,483,648. Default 16 MiB.
    public var maxBody = 16_777_216
    /// The most requests of the server that may be in progress on a connection; further ones are
    /// refused with 429. At least 1. Default 1,024.
    ///
    /// A request counts until it is answered and its handler has returned.
    public var maxInFlight = 1_024
    /// The most bytes in the server's incomplete requests and pushes and in the bodies of its
    /// requests whose handlers have not returned. At least `maxBody`. Default 32 MiB.
    ///
    /// Above it, requests are refused with 429, and a push ends the connection. Responses to this
    /// client's requests do not count: each is at most `maxBody`.
    public var maxRequestBytes = 33_554_432
    /// The sizes of the outgoing buffer at which requests and pushes begin to wait, and continue.
    /// Defaults: they begin to wait at 1 MiB, and continue at 512 KiB; large bodies, which are sent
    /// in fragments, begin to wait at 32 MiB.
    public var waterMarks = WaterMarks()
    /// The most bytes that may wait for a server that does not read; at least `waterMarks.high`.
    /// Default 64 MiB.
    ///
    /// A response to one of the server's requests ends the connection if more bytes wait already.
    public var maxUnreadOutput = 67_108_864
    /// How far the writers of streams can run ahead of their readers, on each connection. Defaults:
    /// 64 KiB, growing to 4 MiB, and 16 MiB for all streams together.
    public var streamWindows = StreamWindows()
  }

  /// The timeouts of a client. Each has a default.
  public struct Timeouts: Sendable {
    /// The timeout of requests whose options have none, from their creation, and of pushes that
    /// wait for room; above zero. Default 15 s.
    public var request: Duration = .seconds(15)
    /// The most time for one connect, including its handshake and `prepare`; above zero. Default
    /// 10 s.
    public var connect: Duration = .seconds(10)
    /// The most time from the first byte of a frame to its last; above zero. Default 30 s.
    public var frame: Duration = .seconds(30)
    /// How long a replaced connection may wait for its last responses; above zero. Default 60 s.
    ///
    /// Then it is closed, and its requests fail with `connectionLost`.
    public var lingering: Duration = .seconds(60)
  }
}
