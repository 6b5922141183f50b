// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) public import LongLinkTransport

/// One persistent connection to a server, kept up for as long as the client lives.
///
/// It connects when `connect()` or a first request asks for it, and again, after a delay, whenever
/// the connection ends, until `close`. It may be used from any thread; from tasks on its own event
/// loop (`Task(executorPreference: client.loop)`) requests cost least, since no thread is changed.
/// A client that is let go of without `close` aborts what is in flight.
public final class LongLinkClient: Sendable {
  /// What the client was told to do.
  public var configuration: ClientConfiguration { settings.value }
  /// The loop that the connection lives on.
  public let loop: EventLoop
  let core: LoopBound<ClientCore>
  @usableFromInline let port: RequestPort
  /// Once for the client and its core: there may be thousands of clients.
  private let settings: Box<ClientConfiguration>
  let router = Router()
  let hub = PushHub()
  let stateHub = StateHub()

  /// Makes a client. Nothing is opened yet.
  ///
  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
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
    port = RequestPort(core, on: loop)
  }

  /// Makes a client of one or more servers, the most wanted first, with the default configuration,
  /// or in another protocol.
  public convenience init(
    to endpoints: Endpoint..., dialect: Dialect = .native, on loop: EventLoop = .shared
  ) throws(LongLinkError) {
    var configuration = ClientConfiguration(servers: endpoints)
    configuration.dialect = dialect
    try self.init(configuration, on: loop)
  }

  deinit {
    // A loop that takes no turn any more, as after a simulation, would keep what it is to do.
    guard stateHub.state != .closed else { return }
    loop.execute { [core] in core.value.close(within: nil) {} }
  }

  /// Waits for the connection.
  ///
  /// Returns at once where there is one. Throws `connectFailed` when each address of one server has
  /// failed (the client goes on trying), `closed`, or `cancelled` when the task is.
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

  /// Where the connection stands.
  public var state: ConnectionState { stateHub.state }

  /// The present state, then each change; it ends with `closed`. A slow consumer sees the newest
  /// 64.
  public func states() -> AsyncStream<ConnectionState> { stateHub.subscribe() }

  /// Closes and returns when the connection has ended; every request has ended by then.
  ///
  /// What is in flight may finish within `bound`; nil aborts it. New requests fail with `closed`.
  public func close(within bound: Duration? = nil) async {
    let gate = Gate<Void>()
    loop.execute { [core] in
      core.value.close(within: bound?.clampedNanoseconds) { gate.open(()) }
    }
    await gate.value
  }

  /// The time from a ping to its pong.
  ///
  /// Throws `notConnected` without a connection, `connectionLost` when it ends before the pong,
  /// `overloaded` past 90 pings in 10 seconds, since a server closes after 100, and `unsupported`
  /// in a dialect where no ping of a client is answered.
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

  /// What the client has counted so far.
  public func counters() async -> ClientCounters {
    await loop.run { [core] in core.value.snapshot }
  }
}

// MARK: - Requests of the server

extension LongLinkClient {
  /// Sets the handler of the server's requests of a type, for connections made from now on.
  ///
  /// It runs in a task on the client's loop unless told otherwise, and is cancelled when the server
  /// cancels or the connection ends. A type without a handler is refused with 404.
  public func onRequest(
    _ type: MessageType,
    on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    router.set(type, .task(placement, handler))
  }
}
