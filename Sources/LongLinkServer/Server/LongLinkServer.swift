// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
import LongLinkCore
@_spi(Loop) public import LongLinkTransport
import Logging
import Synchronization

/// A server, which accepts connections and runs the handlers of their requests.
///
/// Set the handlers, call `start`, and finally `shutDown`: without `shutDown`, the server goes on
/// listening even if nothing refers to it any more. Any thread may use it.
public final class LongLinkServer: Sendable {
  private struct State {
    var phase = Phase.made
    var ownLoops: [EventLoop] = []
    var loops: [EventLoop] = []
    var lanes: [LoopBound<ServerLane>] = []
    var listeners: [LoopBound<Listener>] = []
    var addresses: [SocketAddress] = []
    var hooks = ServerHooks()
    var keeper: (any OnceKeeper)?
    var isReady = false
    /// Whether the server has been ready since it was made.
    var wasReady = false

    /// Enters a phase in which the server stops, and returns whose task it is to stop it.
    mutating func stop(as next: Phase) -> Stopping {
      isReady = false
      switch phase {
      case .made, .started:
        defer { (phase, ownLoops, listeners) = (next, [], []) }
        return .here(ownLoops, listeners)
      case .failing:
        phase = .shutDown
        return .start
      case .shutDown:
        return .earlier
      }
    }
  }

  private enum Phase {
    case made
    case started
    /// `start` has failed, and is stopping what it had started.
    case failing
    case shutDown
  }

  /// The one whose task it is to stop a server.
  private enum Stopping {
    /// The caller has to stop these loops and listeners.
    case here([EventLoop], [LoopBound<Listener>])
    /// The `start` that has failed. It opens the gate `ended` afterwards.
    case start
    /// An earlier `shutDown`, which may have finished.
    case earlier
  }

  /// The configuration that the server was made with.
  public let configuration: ServerConfiguration
  let settings: ConnectionSettings
  let givenLoops: [EventLoop]
  let router = Router()
  let shared: ServerShared
  private let state = Mutex(State())
  private let ended = Gate<Void>()
  let shortTurns = ShortTurns()

  /// Makes a server, which does not listen yet; throws `invalidConfiguration` naming the field.
  ///
  /// Connections are distributed over `loops`. If there are none, the server makes its own, as many
  /// as `configuration.loops`.
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

  /// Sets functions of the application. It traps once the server has started, because each loop
  /// then has a snapshot of them.
  func beforeStart(
    _ action: @autoclosure () -> String, _ set: (inout ServerHooks) -> Void
  ) {
    state.withLock { state in
      precondition(state.phase == .made, "\(action()) before the server is started")
      set(&state.hooks)
    }
  }

  /// Makes a server for one or more endpoints with the default configuration. Port 0 takes a free
  /// port. Throws `invalidConfiguration`.
  public convenience init(
    listen endpoints: Endpoint..., on loops: [EventLoop] = []
  ) throws(LongLinkError) {
    try self.init(ServerConfiguration(listen: endpoints), on: loops)
  }

  /// Whether the server was started and has not been stopped.
  var isStarted: Bool { state.withLock { $0.phase == .started } }

  /// Whether the server takes new clients: true from when `start` has returned until the server
  /// begins to end. A server that runs as a service may still accept connections when this is
  /// false, so that balancers can notice it first.
  public var isReady: Bool { state.withLock { $0.isReady } }

  /// Whether the server takes new clients, not yet, or no more.
  package var standing: Standing {
    state.withLock { state in
      if state.isReady { return .ready }
      return state.wasReady || state.phase == .shutDown ? .draining : .starting
    }
  }

  /// Makes `isReady` false, for the time before `shutDown`.
  func withdraw() { state.withLock { $0.isReady = false } }

  /// Whether the server's loops are those of a simulation.
  package var isSimulated: Bool { givenLoops.contains { !$0.isOfSystem } }

  /// The server's addresses, with actual ports: empty before `start`. They stay after `shutDown`.
  public var addresses: [SocketAddress] { state.withLock { $0.addresses } }
}

// MARK: - Life

extension LongLinkServer {
  /// Starts to listen, and returns once connections are accepted.
  ///
  /// Throws `connectFailed` if it cannot listen on an endpoint, look up its name, make a loop, or
  /// ask the store of `once`; you may start it again then. Throws `closed` if it is already running
  /// or was shut down.
  public func start() async throws(LongLinkError) {
    let hooks = state.withLock { state -> ServerHooks? in
      guard state.phase == .made else { return nil }
      state.phase = .started
      return state.hooks.settled(counting: shared)
    }
    guard let hooks else {
      throw LongLinkError(
        .closed, doing: "start the server", detail: "it is already running, or was shut down")
    }
    let (loops, own) = try makeLoopsOrReset(router.names)
    let keeper = try await makeKeeper(on: loops[0], own)
    let routes = router.snapshot { hooks.settled($1, of: $0, runsOnce: keeper != nil) }
    let observers =
      hooks.observers.isEmpty
      ? configuration.observers : Observers((configuration.observers?.all ?? []) + hooks.observers)
    let lanes = loops.enumerated().map { number, loop in
      let lane = ServerLane(
        loop: loop, number: number, configuration, settings, routes: routes, hooks: hooks,
        keeper: keeper, shared: shared, observers: observers)
      lane.share(shared.memory)
      return LoopBound(lane, on: loop)
    }
    let isWanted = state.withLock { state in
      guard state.phase == .started else { return false }
      state.loops = loops
      state.ownLoops = own
      state.lanes = lanes
      state.keeper = keeper
      return true
    }
    guard isWanted else {
      await stop(own)
      throw LongLinkServer.shutDownMeanwhile
    }
    warnOfAccess(hooks)
    await loops[0].run { [self] in startServices(hooks.services, on: loops[0]) }
    do throws(LongLinkError) {
      for endpoint in configuration.listen { try await listen(on: endpoint, loops, lanes, hooks) }
    } catch {
      let notice = DrainNotice(
        reason: "the server could not start", as: .shutdown, configuration, spread: nil,
        retryAfter: nil, alternatives: nil)
      if case .here(let own, let listeners) = state.withLock({ $0.stop(as: .failing) }) {
        await tearDown(own, listeners, within: .zero, notice)
        // A `shutDown` may wait for this.
        if reset() { await end() }
      }
      throw error
    }
    state.withLock { state in
      guard state.phase == .started else { return }
      (state.isReady, state.wasReady) = (true, true)
    }
  }

  /// Lets a server start again whose `start` has failed, unless it was shut down meanwhile. Returns
  /// whether it was.
  @discardableResult
  private func reset() -> Bool {
    state.withLock { state in
      guard state.phase != .shutDown else { return true }
      state = State(hooks: state.hooks)
      return false
    }
  }

  private func makeLoopsOrReset(
    _ names: [MessageType: String]
  ) throws(LongLinkError) -> (all: [EventLoop], own: [EventLoop]) {
    do throws(LongLinkError) {
      return try makeLoops(names)
    } catch {
      reset()
      throw error
    }
  }

  /// Begins with what keeps the records of requests that run once. If that fails, the server can be
  /// started again.
  private func makeKeeper(
    on loop: EventLoop, _ own: [EventLoop]
  ) async throws(LongLinkError) -> (any OnceKeeper)? {
    do throws(LongLinkError) {
      return try await configuration.onceProvider?.start(on: loop, log: shared.log)
    } catch {
      await stop(own)
      reset()
      throw error
    }
  }

  private static let shutDownMeanwhile = LongLinkError(
    .closed, doing: "start the server", detail: "it was shut down meanwhile")

  private func listen(
    on endpoint: Endpoint, _ loops: [EventLoop], _ lanes: [LoopBound<ServerLane>],
    _ hooks: ServerHooks
  ) async throws(LongLinkError) {
    for address in try await endpoint.addresses(on: loops[0]) {
      let result = await loops[0].run { [shared] in
        Result { () throws(SocketError) in
          let loop = loops[0]
          let socket = try loop.driver.listen(on: address, options: SocketOptions())
          let listener = Listener(
            socket: socket, on: loop, lanes: lanes, onAccept: hooks.accept, shared: shared)
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
        logListening(on: address)
      case .failure(let error):
        throw LongLinkError(
          .connectFailed, doing: "listen on \(endpoint.text(at: address))", detail: error.reason,
          peer: address, systemError: error.errno)
      }
    }
  }

  /// Drains and stops the server: stops accepting, sends every client a goaway, lets running
  /// requests finish within `bound`, and returns when every connection has ended. That takes up to
  /// a second longer than `bound`, if clients do not read the end of their streams.
  ///
  /// The goaway tells the client how many of its requests were accepted, so that it can retry the
  /// others elsewhere; to reconnect after `retryAfter` plus a random time within `spread`; and
  /// which servers to try instead, best first. Of these, at most the first 8 with a host and a port
  /// are sent; with any, an idle connection stays open until its client has the next one. For nil,
  /// the value in `configuration.drain` applies. A second call does not wait for the first; use
  /// `waitUntilShutDown`.
  public func shutDown(
    within bound: Duration = .seconds(10), spread: Duration? = nil, retryAfter: Duration? = nil,
    alternatives: [Endpoint]? = nil
  ) async {
    let notice = DrainNotice(
      reason: "the server is shutting down", as: .shutdown, configuration, spread: spread,
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
    var cutOff = 0
    switch state.withLock({ $0.stop(as: .shutDown) }) {
    case .here(let own, let listeners):
      cutOff = await tearDown(own, listeners, within: bound, notice)
    case .start: await ended.value
    case .earlier: return
    }
    if wasStarted {
      let after = await counters().connections
      let given = after.handlersAbandoned - before.connections.handlersAbandoned
      var details: Logger.Metadata = ["requestsAbandoned": "\(given)"]
      if configuration.onceProvider != nil { details["onceCutOff"] = "\(cutOff)" }
      configuration.logger.info("Stopped", metadata: details)
    }
    await end()
  }

  /// Tells the services and all who wait that the server has ended.
  private func end() async {
    let services = state.withLock { state in
      defer { state.hooks.services = [] }
      return state.hooks.services
    }
    for service in services { await service.serverEnded() }
    ended.open(())
  }

  /// Stops the listeners, connections, services and own loops. Returns how many handlers of
  /// requests that run once were cut off.
  @discardableResult
  private func tearDown(
    _ own: [EventLoop], _ listeners: [LoopBound<Listener>], within bound: Duration,
    _ notice: DrainNotice
  ) async -> Int {
    // The lanes stay in the state, so that `counters()` still works.
    let lanes = lanesNow
    let end = lanes.first.map { $0.0.driver.now + bound.clampedNanoseconds }
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
    shortTurns.end()
    // Their handlers go on without connections.
    var cutOff = 0
    if let keeper, let loop = lanes.first?.0, let end {
      cutOff = await keeper.drain(within: max(0, end - loop.driver.now), on: loop)
    }
    if let loop = lanes.first?.0 {
      let services = state.withLock { $0.hooks.services }
      await stopServices(services, on: loop)
    }
    await stop(own)
    return cutOff
  }

  private func stop(_ own: [EventLoop]) async {
    guard !own.isEmpty else { return }
    // The caller may be a handler on one of these loops, so another thread shuts them down.
    await Task.detached { for loop in own { loop.shutDown() } }.value
  }

  /// Waits until `shutDown` was called and has finished.
  public func waitUntilShutDown() async {
    await ended.value
  }

  /// What keeps the records of requests that run once; nil if nothing does, and before `start`.
  var keeper: (any OnceKeeper)? { state.withLock { $0.keeper } }

  /// The loops and their lanes; none before `start`. They stay after `shutDown`, for the counters.
  var lanesNow: [(EventLoop, LoopBound<ServerLane>)] {
    state.withLock { Array(zip($0.loops, $0.lanes)) }
  }
}
