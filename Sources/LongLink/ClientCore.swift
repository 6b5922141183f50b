import Logging
import LongLinkConnection
import LongLinkCore
import LongLinkTransport

/// The client on its loop: it carries out what the link machine decides, and owns links, requests
/// and handlers.
final class ClientCore {
  /// One connection with what belongs to it.
  final class Connection {
    let link: Link
    let responder: Responder
    /// Whether its handshake was completed and won.
    var isEstablished = false
    /// What the server said when it went away in place of a welcome.
    var farewell: String?

    init(link: Link, responder: Responder) {
      self.link = link
      self.responder = responder
    }
  }

  enum Timer: UInt64 {
    case machine = 1
    case worked
    case closing
  }

  let loop: EventLoop
  let configuration: ClientConfiguration
  let router: Router
  let hub: PushHub
  let states: StateHub
  let requests: Requests
  let pushes: PushQueue
  var pushesGoFirst = false
  let defaults: RequestDefaults
  var logger: Logger
  var machine: LinkMachine
  var connections: [Connection] = []
  var addresses: [SocketAddress] = []
  /// Why the last attempt failed.
  var lastFailure: ConnectFailure?
  var connectWaiters: [@Sendable (Result<Void, LongLinkError>) -> Void] = []
  var pingWaiters: [PingWaiter] = []
  /// When the callers' pings of the last 10 s were sent.
  var pingTimes: [LinkInstant] = []
  /// The most of them: a server closes after 100, the heartbeat's own included.
  static let mostPings = 90
  var counters = ClientTotals()
  var isPerforming = false
  private var shownPhase = LinkMachine.Phase.idle
  var machineTimer: LoopTimer?
  var machineArmedFor = LinkInstant.distantFuture
  var workedTimer: LoopTimer?
  var closing: Closing?

  struct ConnectFailure {
    var detail: String
    var address: SocketAddress?
    var systemError: Int32?
    var reason: CloseReason?
  }

  struct PingWaiter {
    let id: UInt64
    let link: Link
    let completion: @Sendable (Result<Duration, LongLinkError>) -> Void
  }

  /// What is left of connections that have ended.
  struct ClientTotals {
    var ended = ConnectionCounters()
    var connects: UInt64 = 0
    var failedAttempts: UInt64 = 0
  }

  init(
    configuration: ClientConfiguration, on loop: EventLoop, router: Router, hub: PushHub,
    states: StateHub
  ) {
    self.loop = loop
    self.configuration = configuration
    self.router = router
    self.hub = hub
    self.states = states
    logger = configuration.logger
    defaults = RequestDefaults(
      deadline: configuration.deadline.clampedNanoseconds, offline: configuration.offline)
    pushes = PushQueue(
      maxWaiting: configuration.maxWaiting, deadline: defaults.deadline, on: loop)
    requests = Requests(role: .client, limits: configuration.requestLimits, on: loop)
    machine = LinkMachine(
      settings: LinkMachine.Settings(
        servers: configuration.servers.count,
        policy: configuration.reconnect,
        connectTimeout: configuration.connectTimeout.clampedNanoseconds))
    requests.onIdle = { [unowned self] in finishClosingIfDone() }
    requests.onRetired = { [unowned self] in finishIfDone($0) }
  }

  var current: Connection? {
    requests.current.flatMap { link in connections.first { $0.link === link } }
  }

  func bits() -> UInt64 { loop.driver.nextRandom() }
}

// MARK: - The machine's effects

extension ClientCore: TimerHandler {
  /// Wants a connection.
  func start() {
    guard closing == nil else { return }
    machine.start()
    perform()
  }

  /// Carries out what the machine asks for, and sets its timer.
  func perform() {
    // An effect may come to nothing at once and feed the machine; the outer call goes on.
    guard !isPerforming else { return }
    isPerforming = true
    while let effect = machine.nextEffect() { perform(effect) }
    isPerforming = false
    showState()
    armMachine()
  }

  private func perform(_ effect: LinkMachine.Effect) {
    switch effect {
    case .resolve(let server, let round): resolve(configuration.servers[server], round)
    case .connect(let attempt, let address): connect(attempt, addresses[address])
    case .abandon(let attempt): connection(attempt)?.link.close(.handshakeTimeout)
    case .roundFailed(let server): roundFailed(configuration.servers[server])
    }
  }

  func connection(_ id: UInt32) -> Connection? {
    connections.first { $0.link.id == id }
  }

  private func resolve(_ endpoint: Endpoint, _ round: UInt32) {
    switch endpoint.kind {
    case .unix(let path):
      resolved(round, .success([.unix(path: path)]), endpoint)
    case .host(let host, let port):
      let bound = LoopBound(self, on: loop)
      loop.driver.resolve(host: host, port: port) { result in
        bound.value.resolved(round, result, endpoint)
        bound.value.perform()
      }
    }
  }

  private func resolved(
    _ round: UInt32, _ result: Result<[SocketAddress], ResolveError>, _ endpoint: Endpoint
  ) {
    switch result {
    case .success(let found):
      addresses = found
      if found.isEmpty { lastFailure = ConnectFailure(detail: "\(endpoint) has no address") }
    case .failure(let error):
      addresses = []
      lastFailure = ConnectFailure(detail: "\(error)")
    }
    machine.resolved(round: round, addresses: addresses.count, at: loop.now, bits: bits)
  }

  private func connect(_ attempt: UInt32, _ address: SocketAddress) {
    // Behind the heartbeat, which knows better what its loss means.
    let heartbeat = configuration.heartbeat
    let options = SocketOptions(
      userTimeout: (heartbeat.interval + heartbeat.timeout * 2).clampedNanoseconds)
    do throws(SocketError) {
      let stream = try loop.driver.connect(to: address, options: options)
      let link = Link(
        id: attempt, stream: stream, isConnected: false, settings: configuration.sessionSettings,
        on: loop, owner: self, logger: logger)
      let session = PeerSession(id: UInt64(attempt), address: address, on: loop, owner: self)
      let responder = Responder(link: link, routes: router.snapshot, session: session)
      connections.append(Connection(link: link, responder: responder))
      link.start()
    } catch {
      counters.failedAttempts += 1
      lastFailure = ConnectFailure(
        detail: "\(error)", address: address, systemError: error.errno)
      machine.failed(attempt, at: loop.now, bits: bits)
    }
  }

  private func roundFailed(_ endpoint: Endpoint) {
    let failure = lastFailure
    logger.warning(
      "Could not connect",
      metadata: ["server": "\(endpoint)", "reason": "\(failure?.detail ?? "unknown")"])
    let make = { (operation: String) in
      LongLinkError(
        .connectFailed, doing: operation, detail: "\(endpoint): \(failure?.detail ?? "unknown")",
        peer: failure?.address, systemError: failure?.systemError, closeReason: failure?.reason)
    }
    requests.failWaiting(all: false) { operation, _ in make(operation) }
    resumeConnectWaiters(.failure(make("connect")))
  }

  func resumeConnectWaiters(_ result: Result<Void, LongLinkError>) {
    let waiters = connectWaiters
    connectWaiters = []
    for waiter in waiters { waiter(result) }
  }

  private func showState() {
    // The time that is left of a wait would be another state at each look.
    guard machine.phase != shownPhase else { return }
    shownPhase = machine.phase
    switch machine.phase {
    case .idle: break
    case .resolving, .connecting:
      if requests.current == nil {
        states.set(.connecting(configuration.servers[machine.server]))
      }
    case .up: states.set(.connected(requests.current?.peer))
    case .waiting(let until): states.set(.waiting(.nanoseconds(max(0, until - loop.now))))
    case .closed: if connections.isEmpty { states.set(.closed) }
    }
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
      machine.elapsed(to: loop.driver.now, bits: bits)
      perform()
    case .worked:
      workedTimer = nil
      machine.worked()
    case .closing:
      closingElapsed()
    case nil:
      break
    }
  }
}
