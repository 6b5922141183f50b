// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) public import LongLinkTransport

/// A client with one persistent connection, which it re-establishes automatically.
///
/// It connects on `connect()` or the first request, and reconnects after a delay whenever the
/// connection ends, until `close`. It may be used from any thread. Requests are cheapest in tasks
/// on its event loop (`Task(executorPreference: client.loop)`), because they never switch threads.
/// A client that is released without `close` aborts everything in flight.
public final class LongLinkClient: RequestSender {
  /// The configuration that the client was made with.
  public var configuration: ClientConfiguration { settings.value }
  /// The event loop on which the client and its connections live.
  public let loop: EventLoop
  let core: LoopBound<ClientCore>
  /// The port through which types of yours can send their requests over the client's connections:
  /// see ``RequestSender``.
  public let senderPort: SenderPort
  /// The configuration, stored once for the client and its core: there may be thousands of clients.
  private let settings: Box<ClientConfiguration>
  let router = Router()
  let hub = PushHub()
  let stateHub = StateHub()

  /// Makes a client. It does not connect yet.
  ///
  /// Throws `invalidConfiguration`, with the field's name, if the configuration is invalid.
  public init(
    _ configuration: ClientConfiguration, on loop: EventLoop = .shared
  ) throws(LongLinkError) {
    try configuration.validate()
    let settings = Box(configuration.settled(on: loop))
    self.settings = settings
    self.loop = loop
    let core = ClientCore(
      settings: settings, on: loop, router: router, hub: hub, states: stateHub)
    self.core = LoopBound(core, on: loop)
    senderPort = SenderPort(
      RequestPort(core, observers: configuration.requestObservers, on: loop))
  }

  /// Makes a client of one or more servers, in order of preference, with a default configuration.
  /// It does not connect yet.
  ///
  /// The client calls `prepare`, unless it is nil, on each new connection before anything else: see
  /// ``ClientConfiguration/prepare``. Throws `invalidConfiguration`, for example without a server.
  public convenience init(
    to endpoints: Endpoint..., dialect: Dialect = .native, on loop: EventLoop = .shared,
    prepare: (@Sendable (Peer) async throws -> Void)? = nil
  ) throws(LongLinkError) {
    var configuration = ClientConfiguration(servers: endpoints)
    configuration.dialect = dialect
    configuration.prepare = prepare
    try self.init(configuration, on: loop)
  }

  deinit {
    // A loop that no longer runs, as after a simulation, would retain the closure forever.
    guard stateHub.state != .closed else { return }
    loop.execute { [core] in core.value.close(within: nil) {} }
  }

  /// Waits for a connection; starts to connect if the client is idle.
  ///
  /// Returns at once if there is a connection, and also once requests take short links. Throws
  /// `connectFailed` when each address of one server has failed, or there is no credential for it
  /// (the client continues with its retries); in its place `securityFailed` or `notAccepted`, if
  /// that is why; `notConnected` while the client is suspended, `closed`, and `cancelled` if the
  /// task is cancelled.
  ///
  /// Requests connect on their own. With short ways, you need it only to try again after
  /// ``ConnectionState/notAccepted(_:)``. Without the long link it returns at once.
  public func connect() async throws(LongLinkError) {
    let gate = Gate<Result<Void, LongLinkError>>()
    loop.execute { [core] in
      core.value.connect { gate.open($0) }
    }
    let result = await withTaskCancellationHandler {
      await gate.value
    } onCancel: {
      gate.open(.failure(LongLinkError(.cancelled, doing: "connect")))
    }
    try result.get()
  }

  /// Returns a ticket for a request that is to run once, whose ``OnceTicket/bytes`` you can keep
  /// before you send the request. A random key is made unless you give one, of 1 to 255 bytes.
  ///
  /// Waits for a connection, as ``connect()`` does, and throws its errors; also `unsupported` if
  /// the server keeps no answers for this client, or if that is not known yet because requests take
  /// short links and none has run once; and `tooLarge` if the key is too long.
  public func ticket(key: [UInt8] = []) async throws(LongLinkError) -> OnceTicket {
    try await connect()
    return try await loop.run { [core] in core.value.ticket(key) }.get()
  }

  /// The state of the client's connection now.
  public var state: ConnectionState { stateHub.state }

  /// Returns a sequence of the current state and each later one; it ends after `closed`. If a
  /// consumer is slow, it buffers the newest 64 states.
  public func states() -> AsyncStream<ConnectionState> { stateHub.subscribe() }

  /// Closes the client, and returns when its connections and all requests have ended.
  ///
  /// Requests and pushes that wait or are in flight may finish within `bound`; then they fail with
  /// `closed`. Nil, the default, ends them at once. New ones fail with `closed`.
  public func close(within bound: Duration? = nil) async {
    let gate = Gate<Void>()
    loop.execute { [core] in
      core.value.close(within: bound?.clampedNanoseconds) { gate.open(()) }
    }
    await gate.value
  }

  /// Sends a ping, and returns the time until its pong.
  ///
  /// Throws `notConnected` without a connection, or `securityFailed` or `notAccepted` if that is
  /// why there is none; `connectionLost` if it ends before the pong; `overloaded` above 90 pings in
  /// 10 seconds (a server closes the connection after 100); `unsupported` in a dialect that does
  /// not answer a client's pings; `closed`; and `cancelled`.
  public func ping() async throws(LongLinkError) -> Duration {
    let gate = Gate<Result<Duration, LongLinkError>>()
    loop.execute { [core] in core.value.ping { gate.open($0) } }
    let result = await withTaskCancellationHandler {
      await gate.value
    } onCancel: {
      gate.open(.failure(LongLinkError(.cancelled, delivery: .sent, doing: "ping")))
    }
    return try result.get()
  }

  /// Returns how the current connection is secured, with the server's certificate; nil if there is
  /// no connection, or if it is not encrypted.
  public func security() async -> ConnectionSecurity? {
    await loop.run { [core] in core.value.requests.current?.security }
  }

  /// Returns a snapshot of the client's counters.
  public func counters() async -> ClientCounters {
    await loop.run { [core] in ClientCounters(of: core.value) }
  }
}

// MARK: - Requests of the server

extension LongLinkClient {
  /// Sets the handler of the server's requests of a type, for connections made after this call. It
  /// replaces an earlier handler of the type.
  ///
  /// The handler returns the body of the response; to respond with another code than 200, it throws
  /// a ``Rejection``. It runs in a task, by default on the client's loop, which it must not block.
  /// The task is cancelled when the server cancels the request, its deadline passes, or the
  /// connection ends. A request without a handler is refused with 404.
  public func onRequest(
    _ type: MessageType,
    on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    router.set(type, .task(placement, handler))
  }

  /// Sets the handler of the server's requests of a type whose exchanges carry items, for
  /// connections made after this call. It replaces an earlier handler of the type.
  ///
  /// `shape` says which side sends items; the server is the requester. A request with another shape
  /// is refused with 400. The handler reads the server's items, writes its own, and returns the
  /// body of the response. It runs in a task, by default on the client's loop, which it must not
  /// block. The task is cancelled when the server cancels, the connection ends, or the deadline
  /// passes. If a wait for an item, or for the server to take one, lasts longer than `itemTimeout`
  /// (default: no limit), reading or writing throws `deadlineExceeded`; a handler that throws this
  /// on responds with 408.
  public func onStreamRequest(
    _ type: MessageType, _ shape: StreamShape, on placement: HandlerPlacement = .connectionLoop,
    itemTimeout: Duration? = nil,
    _ handler:
      @escaping @Sendable (InboundRequest, Items<[UInt8]>, ItemWriter<[UInt8]>) async throws
      -> any BodyEncodable & Sendable
  ) {
    router.set(
      type, .stream(StreamRoute(shape, on: placement, itemTimeout: itemTimeout, handler)))
  }
}
