// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
import LongLinkTransport

extension ServerConfiguration {
  /// How a server finds out who its clients are.
  public struct Identity: Sendable {
    /// Decides about each client before anything that it sends is acted on. Default nil: every
    /// client is accepted, without a principal.
    ///
    /// The function gets what the client shows (its credential, its verified certificate, its
    /// address), and returns who the client is, or throws a `Rejection` with a reason for people,
    /// of which the client gets 1,024 bytes: with 401 (`unauthenticated`) if the client has not
    /// proved who it is, or its credential has expired; with 403 (`forbidden`) if it may not
    /// connect. A refused client comes back with a new credential, and stops if it is refused twice
    /// with the same one, or twice with 403. If the function throws anything else, or takes too
    /// long, the client gets 503 and may come back. It runs in a task on the connection's loop,
    /// which it must not block; the task is cancelled when the time is over or the connection ends.
    /// It also decides about each request over HTTP separately.
    public var authenticate: (@Sendable (AuthenticationRequest) async throws -> Authentication)?
    /// The most time for `authenticate`, including its wait to begin; above zero. Default 5 s.
    public var timeout: Duration = .seconds(5)
    /// The most calls of `authenticate` on one loop that have not returned, at least 1; further
    /// clients wait. Default 256.
    public var maxAuthentications = 256
    /// How long the requests of a client whose credential has expired may run on; not negative.
    /// Default 10 s.
    ///
    /// When the credential expires, the client gets a goaway with 401; after this time its
    /// connection is closed.
    public var credentialGrace: Duration = .seconds(10)
    /// How long a client may be without a connection before `onDisconnect` is called; not negative.
    /// Default 0 s.
    ///
    /// With some seconds, a change of network goes unnoticed: a client that comes back in time,
    /// with the same `ClientIdentity`, is the same client, and its `Peer` works again. Only the
    /// call of `onDisconnect` and the counter `clients` wait. Until it is back, `peers()` and
    /// `peers(of:)` do not contain it, `peer.push` throws `closed`, and `push(to:)` and `broadcast`
    /// pass it over: it does not get these pushes later. At most `limits.maxConnections` clients
    /// are waited for.
    public var linger: Duration = .zero
  }

  /// Limits on what a server accepts from each connection, and from all connections together.
  public struct Limits: Sendable {
    /// The most connections at once, at least 1. Default 10,000.
    ///
    /// If one more comes, the oldest that is not open is closed, as for `maxHandshakes`. If all are
    /// open, the new one is closed, and counted in `rejections`.
    public var maxConnections = 10_000
    /// The most connections that are not open yet, at least 1. Default 1,000.
    ///
    /// A connection opens when it is encrypted, its first frame has come (`timeouts.firstFrame`),
    /// and its client is authenticated (`identity.timeout`). If one more connection comes, the
    /// oldest that is not open is closed and counted in `handshakesEvicted`. So connections that
    /// never open do not keep out clients that open theirs. Until it opens, each connection makes
    /// the server hold at most 80 KiB, or 136 KiB with TLS. The same number limits, separately, the
    /// renewals of credentials that wait for a decision; further ones are refused with 429.
    public var maxHandshakes = 1_000
    /// The most requests of one connection in progress, at least 1; further ones are refused with
    /// 429. Default 1,024.
    ///
    /// A request counts until it is answered and its handler has returned, even if it was
    /// cancelled.
    public var maxInFlight = 1_024
    /// The most requests per second that one connection may cancel: 1 to 1,000,000, or nil for any
    /// number. Default 1,000.
    ///
    /// Ten times as many may come at once, but not more than 1,000,000. Beyond the limit, the
    /// connection is closed with `cancelLimit`, and its client gets a goaway with 429. With the
    /// defaults, a client can cancel `maxInFlight` requests several times over. If you raise
    /// `maxInFlight`, keep it well below ten times this limit.
    public var maxCancelsPerSecond: Int? = 1_000
    /// The most bytes per second that are read from one connection, at least 16,384; nil for any
    /// number. Default nil.
    ///
    /// One second's worth may come at once. Beyond it, the server does not read from the connection
    /// for a while, which slows the client down and is not an error: the heartbeat allows for it.
    /// With encryption, the decrypted bytes count. Set it well above what an honest client sends.
    public var maxBytesPerSecond: Int?
    /// The most frames per second that are read from one connection, at least 100; nil for any
    /// number. Default nil. At the limit, the server does as for `maxBytesPerSecond`.
    public var maxFramesPerSecond: Int?
    /// The largest body that is accepted, in bytes: 1 to 2,147,483,648. Default 16 MiB.
    public var maxBody = 16_777_216
    /// The most bytes of one connection in incomplete messages, and in bodies of requests whose
    /// handlers have not returned. Further requests are refused with 429. At least `maxBody`.
    /// Default 32 MiB.
    public var maxRequestBytes = 33_554_432
    /// The most bytes that the server holds for all connections. At least twice `maxBody`, or four
    /// times in a dialect with delimiters. Default 64 MiB.
    ///
    /// It counts incomplete input, requests whose handlers have not returned (their bodies and 4
    /// KiB each), and output that waits to be written. The server reacts in steps:
    /// - Above three eighths of the limit, reads are smaller, and connections whose clients leave
    ///   responses unread are not read.
    /// - Above three quarters, the connections that hold the most are closed with `memoryLimit`,
    ///   and their clients get a goaway with 429. The last quarter is for handlers that still run
    ///   after their requests were given up. If those hold more, open connections may hold less,
    ///   but always at least a quarter.
    /// - Above the limit, requests are refused with 429, except on connections with few requests,
    ///   which may use another quarter.
    public var memoryLimit = 67_108_864
    /// The most bytes that may wait for a client that does not read. At least `maxBody` and
    /// `waterMarks.high`. Default 64 MiB.
    ///
    /// A response, push or broadcast ends the connection if more bytes wait already. Above half of
    /// this limit, and earlier while memory is scarce, the connection's requests are not read.
    public var maxUnreadOutput = 67_108_864
    /// The sizes of a connection's outgoing buffer at which pushes and the server's own requests
    /// begin to wait, and continue. Defaults: 1 MiB, 512 KiB, and 32 MiB of bodies in fragments.
    public var waterMarks = WaterMarks()
    /// How many bytes of items clients can send before handlers read them. Defaults: 64 KiB for a
    /// stream, growing to 4 MiB, and 16 MiB for all streams of a connection.
    public var streamWindows = StreamWindows()
  }

  /// The addresses that may connect to a server, and the most that each of them may do.
  public struct Addresses: Sendable {
    /// The addresses and networks that may connect; all, if it is empty. Default: empty.
    ///
    /// Peers of Unix sockets have no address, and may connect. The `proxies` may connect as well;
    /// behind one of them, the address of the client that it names is judged.
    public var allowed: [AddressRange] = []
    /// The addresses and networks that may not connect, even if they are `allowed`. Default: empty.
    public var denied: [AddressRange] = []
    /// The load balancers and other proxies that send a header of the PROXY protocol, version 2, at
    /// the beginning of each connection, which states the client's address. Default: none.
    ///
    /// From these peers alone, a header is expected and required: a connection without one, or with
    /// a broken one, is closed and counted. `Peer.address`, `onAccept`, and the limits of each
    /// address are then those of the client. The proxies' own addresses have no such limits. The
    /// header precedes the encryption, has at most 536 bytes, and comes within
    /// `timeouts.firstFrame`. Name proxies that you trust only: they can state any address.
    public var proxies: [AddressRange] = []
    /// The most open connections from one IPv4 address, or from one IPv6 network of 64 bits, at
    /// least 1; further ones are closed and counted. Default 1,000.
    ///
    /// Unix sockets do not count, and loopback addresses only with `limitsLoopback`. Behind a
    /// proxy, all clients have the proxy's address: name it in `proxies`, or raise the limits of
    /// addresses.
    public var maxConnections = 1_000
    /// The most new connections per second from one IPv4 address, or from one IPv6 network of 64
    /// bits: 1 to 1,000,000; further ones are closed and counted. Default 50.
    ///
    /// Four times as many may come at once. With the default, 1,000 clients behind one address are
    /// all connected again 16 seconds after an outage, and one address costs the server about 50
    /// handshakes per second. Renewals of credentials count as well, and get 429 beyond it. Unix
    /// sockets do not count, and loopback addresses only with `limitsLoopback`. The most recent
    /// 8,192 to 16,384 addresses are remembered.
    public var maxConnectionRate = 50
    /// The most short links per second from one address, counted as for `maxConnectionRate`: 1 to
    /// 1,000,000; further ones are answered with 503. Default 500.
    ///
    /// Each short link is a single request, so the default is higher. Four times as many may come
    /// at once.
    public var maxShortLinkRate = 500
    /// Whether the limits of each address apply to loopback addresses. Default false.
    public var limitsLoopback = false
  }

  /// The most time that a server waits for requests, frames and messages.
  public struct Timeouts: Sendable {
    /// The timeout of the server's own requests without one; above zero. Default 15 s.
    public var request: Duration = .seconds(15)
    /// The most time from the acceptance of a connection until its first frame has come, its
    /// encryption included; above zero. Default 10 s. The time for `identity.authenticate` follows.
    public var firstFrame: Duration = .seconds(10)
    /// The most time from the first byte of a frame to its last; above zero. Default 30 s. After
    /// it, the connection is closed.
    public var frame: Duration = .seconds(30)
    /// The most time between two fragments of a message; above zero. Default 60 s.
    ///
    /// After it, a request is refused with 408; an incomplete push ends the connection.
    public var message: Duration = .seconds(60)
  }

  /// What clients are told to do when a server drains.
  public struct Drain: Sendable {
    /// The time over which clients spread their reconnects after a drain; not negative. Default:
    /// 5 s.
    public var spread: Duration = .seconds(5)
    /// The least time before clients reconnect after a drain, to which a random part of `spread`
    /// is added; not negative. Default 0 s.
    public var retryAfter: Duration = .zero
    /// The servers that drained clients should try instead, best first; at most 8, each with a host
    /// and a port. Default: none. A server that names some keeps a connection without requests
    /// until its client has the next one, within the bound of the drain; one that names none closes
    /// it at once.
    public var alternatives: [Endpoint] = []
  }
}
