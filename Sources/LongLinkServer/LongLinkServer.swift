// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
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
  private let settings: ConnectionSettings
  private let givenLoops: [EventLoop]
  private let router = Router()
  private let shared: ServerShared
  private let state = Mutex(State())
  private let ended = Gate<Void>()

  /// Makes a server. Nothing is opened yet.
  ///
  /// Connections are spread over `loops`; with none the server makes its own, as many as
  /// configured. Throws `invalidConfiguration`, naming the field, when the configuration cannot
  /// work.
  public init(
    _ configuration: ServerConfiguration, on loops: [EventLoop] = []
  ) throws(LongLinkError) {
    try configuration.validate()
    let configuration = configuration.settled(on: loops)
    self.configuration = configuration
    settings = configuration.connectionSettings
    givenLoops = loops
    shared = ServerShared(configuration)
  }

  /// Makes a server for one or more endpoints with the default configuration; port 0 takes a free
  /// one.
  public convenience init(
    listen endpoints: Endpoint..., on loops: [EventLoop] = []
  ) throws(LongLinkError) {
    try self.init(ServerConfiguration(listen: endpoints), on: loops)
  }

  /// Sets the handler of a message type. Loops have their own copies of the routes once the server
  /// has started: a route that came later would never be used.
  func setRoute(_ type: MessageType, _ route: Route) {
    state.withLock { state in
      precondition(
        state.phase == .made, "set the route of message type \(type) before the server is started")
      router.set(type, route)
    }
  }

  /// Where the server listens, with the ports that the system chose; empty before `start`.
  public var addresses: [SocketAddress] { state.withLock { $0.addresses } }

  /// Where clients on this machine reach the server: its addresses, as a client takes them; empty
  /// before `start`.
  public var endpoints: [Endpoint] { addresses.map(Endpoint.init) }

  /// The first of `endpoints`. It traps where there is none: before `start`, and after `shutDown`.
  public var endpoint: Endpoint {
    guard let first = endpoints.first else { preconditionFailure("the server is not started") }
    return first
  }

  /// Called with each connection's address, before anything is read from it; false closes it, and
  /// counts it in `connectionsTurnedAway`. The address is nil where the peer has none, as over a
  /// Unix-domain socket. Set it before `start`.
  ///
  /// It runs on a loop, which it must not block: look the address up in a table, or count it.
  public func onAccept(_ handler: @escaping @Sendable (SocketAddress?) -> Bool) {
    shared.onAccept = handler
  }

  /// Called, on the connection's loop, when a connection can be used. Set it before `start`.
  public func onConnect(_ handler: @escaping @Sendable (Peer) -> Void) {
    shared.onConnect = handler
  }

  /// Called, on the connection's loop, when such a connection has ended. Set it before `start`.
  public func onDisconnect(_ handler: @escaping @Sendable (Peer) -> Void) {
    shared.onDisconnect = handler
  }

  /// Sets the function that is called, on the connection's loop, with each push of a type.
  public func onPush(
    _ type: MessageType, _ handler: @escaping @Sendable (Push, Peer) -> Void
  ) {
    shared.handle(type, handler)
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
      let lane = ServerLane(loop: loop, configuration, settings, routes: routes, shared: shared)
      lane.share(shared.memory)
      return LoopBound(lane, on: loop)
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
      let notice = DrainNotice(
        reason: "the server could not start", configuration, spread: nil, retryAfter: nil,
        alternatives: nil)
      let wasShutDown = await tearDown(within: .zero, notice) == nil
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
            configuration: EventLoop.Configuration(onStall: { [log = shared.log] stall in
              guard let loop = EventLoop.current else { return }
              log.log(.warning, "An event loop was blocked", at: loop.now) {
                [
                  "loop": "\(stall.loop)", "ms": .milliseconds(stall.duration.clampedNanoseconds),
                  "type": "\(stall.messageType.map(String.init(describing:)) ?? "unknown")",
                ]
              }
            })))
      } catch {
        for loop in made { loop.shutDown() }
        throw LongLinkError(
          .connectFailed, doing: "make an event loop", detail: error.reason,
          systemError: error.errno)
      }
    }
    return (made, made)
  }

  private func listen(
    on endpoint: Endpoint, _ loops: [EventLoop], _ lanes: [LoopBound<ServerLane>]
  ) async throws(LongLinkError) {
    for address in try await addresses(of: endpoint, loops[0]) {
      let result = await loops[0].run { [shared] in
        Result { () throws(SocketError) in
          let loop = loops[0]
          let socket = try loop.driver.listen(on: address, options: SocketOptions())
          let listener = Listener(
            socket: socket, on: loop, loops: loops, lanes: lanes, shared: shared)
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
          .connectFailed, doing: "listen on \(endpoint.text(at: address))", detail: error.reason,
          peer: address, systemError: error.errno)
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
  /// returns when every connection has ended. A second call waits for nothing.
  ///
  /// Clients are told how many of their requests were accepted, so that they can make the others
  /// elsewhere; to stay away for `retryAfter` and then for a random time within `spread`; and which
  /// servers to try instead, best first. What is nil is as configured. Of the alternatives 8 are
  /// told, those with a host and a port.
  public func shutDown(
    within bound: Duration = .seconds(10), spread: Duration? = nil, retryAfter: Duration? = nil,
    alternatives: [Endpoint]? = nil
  ) async {
    let notice = DrainNotice(
      reason: "the server is shutting down", configuration, spread: spread,
      retryAfter: retryAfter, alternatives: alternatives)
    let wasStarted = state.withLock { $0.phase == .started }
    let before = await counters()
    if wasStarted {
      configuration.logger.info(
        "Draining",
        metadata: [
          "connections": "\(before.openConnections)", "requests": "\(before.requestsRunning)",
          "boundMs": .milliseconds(bound.clampedNanoseconds),
        ])
    }
    guard await tearDown(within: bound, notice) != nil else { return }
    if wasStarted {
      let after = await counters().connections
      let given = after.handlersAbandoned - before.connections.handlersAbandoned
      configuration.logger.info("Stopped", metadata: ["requestsAbandoned": "\(given)"])
    }
    ended.open(())
  }

  /// Tells one client to go, lets its running requests finish within a bound, and returns when its
  /// connection has ended; at once where it has ended before, or is another server's.
  ///
  /// A client of this framework opens its next connection before it lets this one go: drain
  /// connections to move clients to `alternatives`, or to even out the load. The other parameters
  /// are those of `shutDown`.
  public func drain(
    _ peer: Peer, within bound: Duration = .seconds(10), spread: Duration? = nil,
    retryAfter: Duration? = nil, alternatives: [Endpoint]? = nil
  ) async {
    let notice = DrainNotice(
      reason: "the peer is moved", configuration, spread: spread, retryAfter: retryAfter,
      alternatives: alternatives)
    guard let (loop, lane) = lanesNow.first(where: { $0.0 === peer.loop }) else { return }
    await suspend { (waiter: Waiter<Void>) in
      loop.execute {
        lane.value.drain(peer, within: bound.clampedNanoseconds, notice) { waiter(()) }
      }
    }
  }

  /// Ends everything; nil when that was done, or is being done, by an earlier call.
  private func tearDown(within bound: Duration, _ notice: DrainNotice) async -> Void? {
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
              lane.value.drain(within: bound.clampedNanoseconds, notice) { waiter(()) }
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

// MARK: - Connections

extension LongLinkServer {
  /// The connections that are open now.
  public func peers() async -> [Peer] {
    var peers: [Peer] = []
    for (loop, lane) in lanesNow {
      peers += await loop.run { lane.value.peers }
    }
    return peers
  }

  /// Sends a one-way message to every connection; it is encoded once, and waits for none of them.
  ///
  /// A connection above its high-water mark is passed over, or dropped, as `policy` says; one that
  /// does not accept a body of its size is passed over. Both are counted. Throws `encodingFailed`,
  /// and in a dialect `unsupported` for a type that is no push's.
  @discardableResult
  public func broadcast(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    toSlow policy: SlowPeerPolicy = .skip
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
