public import LongLinkConnection
public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
import Logging
import Synchronization

/// A server: it accepts connections and runs the handlers of their requests.
///
/// Set the handlers, `start`, and in the end `shutDown`: a server that is merely let go of goes on.
/// It may be used from any thread.
public final class LongLinkServer: Sendable {
  private struct State {
    var phase = Phase.made
    var ownLoops: [EventLoop] = []
    var loops: [EventLoop] = []
    var lanes: [LoopBound<ServerLane>] = []
    var listeners: [LoopBound<Listener>] = []
    var addresses: [SocketAddress] = []
  }

  private enum Phase {
    case made
    case started
    case shutDown
  }

  /// What the server was told to do.
  public let configuration: ServerConfiguration
  private let settings: SessionSettings
  private let givenLoops: [EventLoop]
  private let router = Router()
  private let shared: ServerShared
  private let state = Mutex(State())
  private let ended = Gate<Void>()

  /// Makes a server. Nothing is opened yet.
  ///
  /// Sessions are spread over `loops`; with none the server makes its own, as many as configured.
  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
  public init(
    _ configuration: ServerConfiguration, on loops: [EventLoop] = []
  ) throws(LongLinkError) {
    try configuration.validate()
    self.configuration = configuration
    settings = configuration.sessionSettings
    givenLoops = loops
    shared = ServerShared(maxSessions: configuration.maxSessions)
  }

  /// Makes a server for one address with the default configuration; port 0 takes a free one.
  public convenience init(
    host: String, port: UInt16, on loops: [EventLoop] = []
  ) throws(LongLinkError) {
    try self.init(ServerConfiguration(listen: [.host(host, port: port)]), on: loops)
  }

  /// Where the server listens, with the ports that the system chose; empty before `start`.
  public var addresses: [SocketAddress] { state.withLock { $0.addresses } }

  /// The port of the first address; nil before `start`, and for a Unix-domain socket.
  public var port: UInt16? { addresses.first?.port }

  /// Called, on the session's loop, when a session can be used. Set it before `start`.
  public func onSession(_ handler: @escaping @Sendable (PeerSession) -> Void) {
    shared.onSession = handler
  }

  /// Called, on the session's loop, when a session that could be used has ended. Set it before
  /// `start`.
  public func onSessionEnd(_ handler: @escaping @Sendable (PeerSession) -> Void) {
    shared.onSessionEnd = handler
  }

  /// Sets the function that is called, on the session's loop, with each push of a type.
  public func onPush(
    _ type: MessageType, _ handler: @escaping @Sendable (Push, PeerSession) -> Void
  ) {
    shared.handle(type, handler)
  }
}

// MARK: - Routes

extension LongLinkServer {
  /// Sets a synchronous handler for a message type. Set it before `start`.
  ///
  /// It runs on the session's loop and must not block. What it returns is the body of a 200; it
  /// throws `Rejection` to answer with another code, and any other error is answered with 500.
  public func route(
    _ type: MessageType,
    _ handler: @escaping @Sendable (InboundRequest) throws -> any BodyEncodable & Sendable
  ) {
    router.set(type, .inline(handler))
  }

  /// Sets an asynchronous handler for a message type. Set it before `start`.
  ///
  /// It runs in a task on the session's loop unless told otherwise. The task is cancelled when the
  /// client cancels or goes, and when the request's deadline passes.
  public func route(
    _ type: MessageType, on placement: HandlerPlacement = .connectionLoop,
    _ handler: @escaping @Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    router.set(type, .task(placement, handler))
  }

  /// Sets a synchronous handler that is given the body as a message; 400 where it is not one.
  public func route<Message: BodyDecodable & SendableMetatype>(
    _ type: MessageType, _ message: Message.Type,
    _ handler:
      @escaping @Sendable (Message, InboundRequest) throws -> any BodyEncodable & Sendable
  ) {
    route(type) { request in
      try handler(try Message(copying: request.body), request)
    }
  }

  /// Sets an asynchronous handler that is given the body as a message; 400 where it is not one.
  public func route<Message: BodyDecodable & Sendable>(
    _ type: MessageType, _ message: Message.Type, on placement: HandlerPlacement = .connectionLoop,
    _ handler:
      @escaping @Sendable (Message, InboundRequest) async throws -> any BodyEncodable & Sendable
  ) {
    route(type, on: placement) { request in
      try await handler(try Message(copying: request.body), request)
    }
  }
}

// MARK: - Life

extension LongLinkServer {
  /// Listens, and returns when connections are accepted.
  ///
  /// Throws `connectFailed` with the system's error when an address cannot be listened on, after
  /// which it may be started again, and `closed` when it runs already or was shut down.
  public func start() async throws(LongLinkError) {
    let isFirst = state.withLock { state in
      guard state.phase == .made else { return false }
      state.phase = .started
      return true
    }
    guard isFirst else {
      throw LongLinkError(
        .closed, doing: "start the server", detail: "it runs already, or was shut down")
    }
    let (loops, own) = try makeLoopsOrReset()
    let routes = router.snapshot
    let lanes = loops.map { loop in
      LoopBound(
        ServerLane(loop: loop, configuration, settings, routes: routes, shared: shared),
        on: loop)
    }
    let isWanted = state.withLock { state in
      guard state.phase == .started else { return false }
      state.loops = loops
      state.ownLoops = own
      state.lanes = lanes
      return true
    }
    guard isWanted else {
      await stop(own)
      throw LongLinkServer.shutDownMeanwhile
    }
    do throws(LongLinkError) {
      for endpoint in configuration.listen { try await listen(on: endpoint, loops, lanes) }
    } catch {
      let farewell = Farewell(
        reason: "the server could not start", configuration, spread: nil, retryAfter: nil,
        alternatives: nil)
      let wasShutDown = await tearDown(within: .zero, farewell) == nil
      if !wasShutDown { state.withLock { $0 = State() } }
      throw error
    }
  }

  private func makeLoopsOrReset() throws(LongLinkError) -> (all: [EventLoop], own: [EventLoop]) {
    do throws(LongLinkError) {
      return try makeLoops()
    } catch {
      state.withLock { $0 = State() }
      throw error
    }
  }

  private static let shutDownMeanwhile = LongLinkError(
    .closed, doing: "start the server", detail: "it was shut down meanwhile")

  private func makeLoops() throws(LongLinkError) -> (all: [EventLoop], own: [EventLoop]) {
    guard givenLoops.isEmpty else { return (givenLoops, []) }
    var made: [EventLoop] = []
    for index in 0..<configuration.loops {
      do throws(SocketError) {
        made.append(
          try EventLoop(
            name: "longlink-\(index)",
            configuration: EventLoop.Configuration(onStall: { [logger = configuration.logger] in
              logger.warning(
                "A handler blocked an event loop",
                metadata: ["loop": "\($0.loop)", "duration": "\($0.duration)"])
            })))
      } catch {
        for loop in made { loop.shutDown() }
        throw LongLinkError(
          .connectFailed, doing: "make an event loop", detail: "\(error)",
          systemError: error.errno)
      }
    }
    return (made, made)
  }

  private func listen(
    on endpoint: Endpoint, _ loops: [EventLoop], _ lanes: [LoopBound<ServerLane>]
  ) async throws(LongLinkError) {
    for address in try await addresses(of: endpoint, loops[0]) {
      let result = await loops[0].run { [shared, configuration] in
        Result { () throws(SocketError) in
          let loop = loops[0]
          let socket = try loop.driver.listen(on: address, options: SocketOptions())
          let listener = Listener(
            socket: socket, on: loop, loops: loops, lanes: lanes, shared: shared,
            logger: configuration.logger)
          listener.start()
          return (LoopBound(listener, on: loop), socket.localAddress)
        }
      }
      switch result {
      case .success(let (listener, address)):
        let isWanted = state.withLock { state in
          guard state.phase == .started else { return false }
          state.listeners.append(listener)
          state.addresses.append(address)
          return true
        }
        guard isWanted else {
          await loops[0].run { listener.value.close() }
          throw LongLinkServer.shutDownMeanwhile
        }
        configuration.logger.info("Listening", metadata: ["address": "\(address)"])
      case .failure(let error):
        throw LongLinkError(
          .connectFailed, doing: "listen on \(endpoint)", detail: "\(error)", peer: address,
          systemError: error.errno)
      }
    }
  }

  private func addresses(
    of endpoint: Endpoint, _ loop: EventLoop
  ) async throws(LongLinkError) -> [SocketAddress] {
    switch endpoint.kind {
    case .unix(let path):
      return [.unix(path: path)]
    case .host(let host, let port):
      let result: Result<[SocketAddress], ResolveError> = await suspend { waiter in
        loop.execute {
          loop.driver.resolve(host: host, port: port) { waiter($0) }
        }
      }
      switch result {
      case .success(let found):
        return found
      case .failure(let error):
        throw LongLinkError(.connectFailed, doing: "listen on \(endpoint)", detail: "\(error)")
      }
    }
  }

  /// Stops accepting, tells every client to go, lets running requests finish within a bound, and
  /// returns when every session has ended. A second call waits for nothing.
  ///
  /// Clients are told how many of their requests were accepted, so that they can make the others
  /// elsewhere; to stay away for `retryAfter` and then for a random time within `spread`; and which
  /// servers to try instead, best first. What is nil is as configured. Of the alternatives 8 are
  /// told, those with a host and a port.
  public func shutDown(
    within bound: Duration = .seconds(10), spread: Duration? = nil, retryAfter: Duration? = nil,
    alternatives: [Endpoint]? = nil
  ) async {
    let farewell = Farewell(
      reason: "the server is shutting down", configuration, spread: spread,
      retryAfter: retryAfter, alternatives: alternatives)
    if await tearDown(within: bound, farewell) != nil { ended.open(()) }
  }

  /// Tells one client to go, lets its running requests finish within a bound, and returns when its
  /// session has ended; at once where it has ended before, or is another server's.
  ///
  /// A client of this framework opens its next connection before it lets this one go: drain
  /// sessions to move clients to `alternatives`, or to even out the load. The other parameters are
  /// those of `shutDown`.
  public func drain(
    _ session: PeerSession, within bound: Duration = .seconds(10), spread: Duration? = nil,
    retryAfter: Duration? = nil, alternatives: [Endpoint]? = nil
  ) async {
    let farewell = Farewell(
      reason: "the session is moved", configuration, spread: spread, retryAfter: retryAfter,
      alternatives: alternatives)
    guard let (loop, lane) = lanesNow.first(where: { $0.0 === session.loop }) else { return }
    await suspend { (waiter: Waiter<Void>) in
      loop.execute {
        lane.value.drain(session, within: bound.clampedNanoseconds, farewell) { waiter(()) }
      }
    }
  }

  /// Ends everything; nil when that was done, or is being done, by an earlier call.
  private func tearDown(within bound: Duration, _ farewell: Farewell) async -> Void? {
    let parts = state.withLock { state -> (own: [EventLoop], listeners: [LoopBound<Listener>])? in
      guard state.phase != .shutDown else { return nil }
      defer {
        state.phase = .shutDown
        state.listeners = []
        state.ownLoops = []
      }
      return (state.ownLoops, state.listeners)
    }
    guard let (own, listeners) = parts else { return nil }
    // What the lanes have counted can still be asked for when they are gone.
    let lanes = lanesNow
    for listener in listeners {
      await lanes[0].0.run { listener.value.close() }
    }
    await withTaskGroup(of: Void.self) { group in
      for (loop, lane) in lanes {
        group.addTask {
          await suspend { (waiter: Waiter<Void>) in
            loop.execute {
              lane.value.drain(within: bound.clampedNanoseconds, farewell) { waiter(()) }
            }
          }
        }
      }
    }
    await stop(own)
    return ()
  }

  private func stop(_ own: [EventLoop]) async {
    guard !own.isEmpty else { return }
    // The caller may be a handler, on one of these loops.
    await Task.detached { for loop in own { loop.shutDown() } }.value
  }

  /// Waits until `shutDown` has been called and has done its work.
  public func waitUntilShutDown() async {
    await ended.value
  }
}

// MARK: - Sessions

extension LongLinkServer {
  /// The sessions that are open now.
  public func sessions() async -> [PeerSession] {
    var sessions: [PeerSession] = []
    for (loop, lane) in lanesNow {
      sessions += await loop.run { lane.value.sessions }
    }
    return sessions
  }

  /// Sends a one-way message to every session; it is encoded once, and waits for none of them.
  ///
  /// A session above its high-water mark is passed over, or dropped, as `policy` says; one that
  /// does not accept a body of its size is passed over. Both are counted. Throws `encodingFailed`,
  /// and in a dialect `unsupported` for a type that is no push's.
  @discardableResult
  public func broadcast(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    toSlow policy: SlowSessionPolicy = .skip
  ) async throws(LongLinkError) -> BroadcastReport {
    let broadcast = try Broadcast(type, body, toSlow: policy, in: settings.dialect)
    var report = BroadcastReport()
    for (loop, lane) in lanesNow {
      report += await loop.run { lane.value.broadcast(broadcast) }
    }
    return report
  }

  /// What the server has counted so far.
  public func counters() async -> ServerCounters {
    var counters = ServerCounters()
    shared.fill(&counters)
    for (loop, lane) in lanesNow {
      let soFar = counters
      counters = await loop.run {
        var counters = soFar
        lane.value.count(in: &counters)
        return counters
      }
    }
    return counters
  }

  private var lanesNow: [(EventLoop, LoopBound<ServerLane>)] {
    state.withLock { Array(zip($0.loops, $0.lanes)) }
  }
}
