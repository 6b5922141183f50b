// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The client's state on its loop: performs the effects of the link machine, and owns links,
/// requests and handlers.
final class ClientCore {
  enum Timer: UInt64 {
    case machine = 1
    case closing
    case ways
  }

  let loop: EventLoop
  private let settings: Box<ClientConfiguration>
  var configuration: ClientConfiguration { settings.value }
  let router: Router
  let hub: PushHub
  let states: StateHub
  let requests: Requests
  let pushes: PushQueue
  let defaults: RequestDefaults
  /// For lines that the network and servers can cause.
  let log: PeerLog
  @safe @exclusivity(unchecked) var machine: LinkMachine
  var servers: ServerDirectory
  /// Nil where the long link is the only way.
  let shortLinks: ShortLinks?
  var connections: [ClientConnection] = []
  /// The server of the current or last round.
  var roundServer: Endpoint
  var addresses: [SocketAddress] = []
  let lookUps = LookUpOwner()
  /// The last round that has looked a name up; nil once that was withdrawn.
  var lookUpRound: UInt32?
  var lastFailure: ConnectFailure?
  /// Whether all attempts of the round that have failed met TLS; nil before the first has.
  var roundMetTLS: Bool?
  var connectWaiters: [@Sendable (Result<Void, LongLinkError>) -> Void] = []
  var suspendWaiters: [@Sendable () -> Void] = []
  var pings = PingWaiters()
  /// Nil where the heartbeat is not adaptive.
  let pathHeartbeat: PathHeartbeat?
  /// Nil where no credential is configured.
  let credentials: CredentialSource?
  var needs = RoundNeeds()
  /// Of connections.
  var refusals = CredentialRefusals()
  var counters = ClientTotals()
  lazy var totals = ConnectionTotals()
  var isPerforming = false
  private var shownState = LinkMachine.State.idle
  private var shownWay: Int?
  private var shownRefusal: ResponseCode?
  var machineTimer: LoopTimer?
  var machineArmedFor = LinkInstant.distantFuture
  @safe @exclusivity(unchecked) var closing: Closing?
  var watchers = ClientWatchers()
  /// The asynchronous handlers of the server's requests.
  let handlers: HandlerQueue
  /// Observes link events; set by tests.
  var observer: LinkObserver?

  /// What connections themselves cannot count.
  struct ClientTotals {
    var connects: UInt64 = 0
    var failedAttempts: UInt64 = 0
    var abandonedAttempts: UInt64 = 0
    var trialsPassed: UInt64 = 0
    var trialsFailed: UInt64 = 0
    var linksExpired: UInt64 = 0
    var alternativesIgnored: UInt64 = 0
  }

  init(
    settings: Box<ClientConfiguration>, on loop: EventLoop, router: Router, hub: PushHub,
    states: StateHub
  ) {
    self.loop = loop
    handlers = HandlerQueue(on: loop)
    self.settings = settings
    let configuration = settings.value
    self.router = router
    self.hub = hub
    self.states = states
    log = PeerLog(configuration.logger)
    defaults = RequestDefaults(
      timeout: configuration.timeout.clampedNanoseconds,
      offline: OfflinePolicy(waits: configuration.waitsForConnection))
    pushes = PushQueue(
      maxWaiting: configuration.maxWaiting, maxWaitingBytes: configuration.maxWaitingBytes,
      timeout: defaults.timeout, on: loop)
    requests = Requests(
      role: .client, limits: configuration.requestLimits,
      serials: configuration.dialect.facts(.client)?.serials, on: loop)
    servers = ServerDirectory(configuration.connectedServers)
    roundServer = configuration.connectedServers[0].endpoint
    shortLinks = ShortLinks(configuration)
    machine = LinkMachine(
      servers: servers.entries,
      settings: LinkMachine.Settings(
        reconnect: configuration.reconnect,
        servers: configuration.serverPolicy,
        connectTimeout: configuration.connectTimeout.clampedNanoseconds,
        lingering: configuration.lingering.clampedNanoseconds))
    pathHeartbeat = PathHeartbeat(configuration)
    credentials = configuration.credential.map {
      CredentialSource($0, timeout: configuration.connectTimeout.clampedNanoseconds, on: loop)
    }
    if shortLinks != nil {
      requests.onWaiting = { [unowned self] in updateWays() }
      requests.onTwoWay = { [unowned self] in endTrial() }
    }
    requests.onIdle = { [unowned self] in finishClosingIfDone() }
    requests.onRetired = { [unowned self] in finishIfDone($0) }
    requests.waitReason = { [unowned self] in waitReason }
    if configuration.serverPolicy.errorRatio?.countsDeadlines == true {
      requests.onExpired = { [unowned self] in recordOutcome(on: $0, isError: true) }
    }
  }

  var current: ClientConnection? {
    requests.current.flatMap { link in connections.first { $0.link === link } }
  }

  func bits() -> UInt64 { loop.driver.nextRandom() }
}

// MARK: - The machine's effects

extension ClientCore: TimerHandler {
  /// Starts to connect. A client that stopped, because it is not accepted, stays so unless it is to
  /// try `again`.
  func start(again: Bool = false) {
    guard closing == nil else { return }
    if configuration.hasLongLink, again || machine.state != .stopped {
      machine.start(at: loop.now, bits: bits)
    }
    shortLinks?.machine.start(at: loop.now)
    perform()
    updateWays()
  }

  /// Calls `completion` when there is a connection, or when an attempt has failed.
  func connect(_ completion: @escaping @Sendable (Result<Void, LongLinkError>) -> Void) {
    guard closing == nil else {
      completion(
        .failure(LongLinkError(.closed, doing: "connect", detail: "the client was closed")))
      return
    }
    if requests.current != nil {
      completion(.success(()))
      return
    }
    // Asking again is what starts a client that was not accepted.
    if shortLinks?.refusals.forget() == true { publishState() }
    if machine.state == .stopped { refusals.forget() }
    if machine.state == .suspended {
      completion(.failure(notConnected("connect")))
      return
    }
    if !configuration.hasLongLink || shortLinks?.machine.isTrying == true {
      completion(.success(()))
      return
    }
    connectWaiters.append(completion)
    start(again: true)
  }

  /// Performs the machine's effects, and sets its timer.
  func perform() {
    // An effect may fail at once and re-enter; the outer call continues with the rest.
    guard !isPerforming else { return }
    isPerforming = true
    while let effect = machine.nextEffect() { perform(effect) }
    isPerforming = false
    withdrawLookUp()
    publishState()
    armMachine()
    updateWays()
  }

  private func perform(_ effect: LinkMachine.Effect) {
    switch effect {
    case .resolve(let target, let round): resolve(target, round)
    case .connect(let attempt, let address): connect(attempt, addresses[address])
    case .abandon(let attempt, let reason): connection(attempt)?.link.close(reason)
    case .use(let attempt): use(attempt)
    case .retire(let attempt): retire(attempt)
    case .expire(let attempt): expire(attempt)
    case .probe(let attempt): probe(attempt)
    case .proven(let attempt):
      connection(attempt)?.hasWorked = true
      notifyObserver(.worked(attempt))
    case .roundFailed: roundFailed()
    case .wait(let wait):
      notifyObserver(
        .waiting(
          failures: wait.failures, window: .nanoseconds(wait.window),
          delay: .nanoseconds(wait.delay), wait.cause))
    }
  }

  func connection(_ id: UInt32) -> ClientConnection? {
    connections.first { $0.link.id == id }
  }

  private func connect(_ attempt: UInt32, _ address: SocketAddress) {
    notifyObserver(
      .attempt(
        attempt, round: machine.round, server: roundServer, address: address,
        replaces: machine.isReplacing))
    // Longer than the heartbeat takes, so that the heartbeat reports a dead peer first.
    let heartbeat = configuration.dialect.heartbeat(configuration.heartbeat)
    let options = SocketOptions(
      userTimeout: (heartbeat.interval + heartbeat.timeout * 2).clampedNanoseconds)
    if let failure = objection(toCredentialFor: address) {
      connectFailed(attempt, failure)
      return
    }
    var settings: ConnectionSettings
    do throws(FrameLayoutError) {
      settings = try configuration.connectionSettings()
      settings.pace = pathHeartbeat?.pace
      settings.credential = needs.credential ?? []
    } catch {
      let failure = ConnectFailure(
        "sessionPrefixFailed", detail: error.reason, address: address)
      connectFailed(attempt, failure)
      return
    }
    do throws(SocketError) {
      var transport = try loop.driver.connect(to: address, options: options)
      if let security = configuration.security {
        transport = security.provider.secure(transport, host: roundServer.host, on: loop)
      }
      let link = Link(
        id: attempt, transport: transport, isConnected: false, settings: settings,
        on: loop, log: log, observers: configuration.observers)
      let peer = Peer(
        id: UInt64(attempt), address: address, on: loop, observers: configuration.observers)
      peer.attach(to: self)
      let responder = Responder(
        routes: router.snapshot, peer: peer, handlers: handlers,
        observers: configuration.observers, on: loop)
      connections.append(
        ClientConnection(
          link: link, peer: peer, responder: responder, path: pathHeartbeat?.path ?? 0))
      link.start(for: self)
    } catch {
      let failure = ConnectFailure(
        .transport(error.errno), detail: error.reason, address: address)
      connectFailed(attempt, failure)
    }
  }

  /// Handles a connect that failed before there was a link.
  private func connectFailed(_ attempt: UInt32, _ failure: ConnectFailure) {
    counters.failedAttempts += 1
    noteFailure(failure)
    notifyObserver(.failed(attempt, failure.reason))
    machine.failed(attempt, at: loop.now, bits: bits)
  }

  private func roundFailed() {
    let endpoint = roundServer
    let failure = lastFailure ?? .unknown
    notifyObserver(.roundFailed(server: endpoint, replaces: machine.isReplacing))
    shortLinks?.machine.roundFailed()
    log.log(.warning, "Could not connect", at: loop.now) {
      ["server": "\(endpoint)"].merging(failure.logMetadata) { $1 }
    }
    // While a link is being replaced, requests wait for room on it, not for this round.
    guard !machine.isReplacing else { return }
    // Callers that are about to be resumed may read the state. If another round follows at once,
    // its state is shown when it begins.
    if case .waiting = machine.state { publishState() }
    // The error has the address, which does not show the host name.
    let isNamed = failure.address.map { "\($0)" != "\(endpoint)" } ?? false
    servers.failed(endpoint, speaksTLS: roundMetTLS == true)
    failWaiting(after: servers.areAllSecured ? .refused : .failed, resumesConnect: true) {
      failure.error(.connectFailed, doing: $0, to: isNamed ? "\(endpoint): " : "")
    }
  }

  /// Fails the requests that have nothing to wait for after a setback, and callers of `connect` if
  /// it concerns them.
  func failWaiting(
    after setback: Setback, resumesConnect: Bool = false,
    _ error: (LongLinkError.Operation) -> LongLinkError
  ) {
    let failing = setback.failing(
      hasLink: requests.hasLink || machine.isReplacing,
      shortLinks: takesShortLinks ? .open : hasShortWays ? .paused : .unused)
    if failing != .none {
      requests.failWaiting(all: failing == .all) { operation, _ in error(operation) }
    }
    guard resumesConnect else { return }
    // Short links are a connection too, to whoever waits for one.
    resumeConnectWaiters(failing == .none ? .success(()) : .failure(error("connect")))
  }

  func resumeConnectWaiters(_ result: Result<Void, LongLinkError>) {
    let waiters = connectWaiters
    connectWaiters = []
    for waiter in waiters { waiter(result) }
  }

  /// Publishes the machine's state as the client's `ConnectionState`.
  func publishState() {
    let state = machine.state
    let refusal = shortLinks?.refusals.finalCode
    let way = refusal == nil ? shortLinks?.machine.current : nil
    // Compare machine states, because the remaining time of `waiting` differs at each call.
    guard state != shownState || way != shownWay || refusal != shownRefusal else { return }
    shownState = state
    shownWay = way
    shownRefusal = refusal
    switch state {
    case .idle where way != nil, .connecting where way != nil, .waiting where way != nil:
      show(.short(shortLinks?.name(of: way) ?? ""))
    case .idle: show(refusal.map { .notAccepted($0) } ?? .idle)
    case .connecting: show(.connecting(roundServer))
    case .connected(let attempt): show(.connected(connection(attempt)?.link.peer))
    case .migrating(let attempt, _):
      show(.migrating(connection(attempt)?.link.peer, to: roundServer))
    case .waiting(let until): show(.waiting(.nanoseconds(max(0, until - loop.now))))
    case .suspended: show(.suspended)
    case .stopped where way != nil: show(.short(shortLinks?.name(of: way) ?? ""))
    case .stopped: show(.notAccepted(refusal ?? refusals.finalCode ?? .unauthenticated))
    case .closed: if hasNoLinks { show(.closed) }
    }
  }

  /// Tells the watchers and then the subscribers of a state.
  func show(_ state: ConnectionState) {
    guard state != states.state else { return }
    watchers.connectionChanged(to: state)
    states.set(state)
  }

  private func armMachine() {
    let deadline = machine.deadline
    guard deadline != machineArmedFor else { return }
    if let machineTimer { loop.cancel(machineTimer) }
    machineTimer = nil
    machineArmedFor = deadline
    guard deadline != .distantFuture else { return }
    machineTimer = loop.schedule(at: deadline, self, token: Timer.machine.rawValue)
  }

  func timerFired(token: UInt64) {
    switch Timer(rawValue: token) {
    case .machine:
      machineTimer = nil
      machineArmedFor = .distantFuture
      for connection in connections {
        if connection.link.isReached { machine.reached(connection.link.id) }
        if connection.isHeard { machine.heard(connection.link.id) }
      }
      machine.elapsed(to: loop.driver.now, bits: bits)
      perform()
    case .closing:
      closingElapsed()
    case .ways:
      waysElapsed()
    case nil:
      break
    }
  }
}
