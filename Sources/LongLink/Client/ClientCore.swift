// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The client's state on its loop: tells the machine what happens, performs its effects, and owns
/// links, requests and pushes.
final class ClientCore {
  let loop: EventLoop
  private let settings: Box<ClientConfiguration>
  var configuration: ClientConfiguration { settings.value }
  let router: Router
  let hub: PushHub
  let states: StateHub
  let requests: Requests
  let pushes: PushQueue
  let defaults: RequestDefaults
  /// The log for lines that the network and servers can cause.
  let log: PeerLog
  @safe @exclusivity(unchecked) var machine: ClientMachine
  var isSettling = false
  var timer: LoopTimer?
  var armedFor = LinkInstant.distantFuture
  var shownState = ClientMachine.State.idle
  var servers: ServerDirectory
  var connections: [ClientConnection] = []
  /// The ID that names the client on all its connections; drawn on the loop.
  private(set) lazy var clientID = configuration.identity.client.settled(on: loop)
  private(set) lazy var connector = Connector(for: self)
  /// The short links; nil where the long link is the only way.
  private(set) lazy var shortLinks = ShortLinks(for: self)
  /// Why the last attempt failed, or the last connection was lost.
  var lastFailure: ConnectFailure?
  private var connectWaiters: [@Sendable (Result<Void, LongLinkError>) -> Void] = []
  var suspendWaiters: [@Sendable () -> Void] = []
  var pings = PingWaiters()
  /// The adaptive heartbeat; nil if none is configured.
  let pathHeartbeat: PathHeartbeat?
  /// The source of credentials; nil if no credential is configured.
  let credentials: CredentialSource?
  var counters = ClientTotals()
  lazy var totals = ConnectionTotals()
  @safe @exclusivity(unchecked) var closing: Closing?
  var watchers = ClientWatchers()
  /// The asynchronous handlers of the server's requests.
  let handlers: HandlerQueue
  /// Observes link events; set by tests.
  var observer: LinkObserver?

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
      timeout: configuration.timeouts.request.clampedNanoseconds,
      offline: OfflinePolicy(waits: configuration.waitsForConnection))
    pushes = PushQueue(
      maxWaiting: configuration.limits.maxWaiting,
      maxWaitingBytes: configuration.limits.maxWaitingBytes,
      timeout: defaults.timeout, on: loop)
    requests = Requests(
      role: .client, limits: configuration.requestLimits,
      serials: configuration.dialect.facts(.client)?.serials, on: loop)
    servers = ServerDirectory(configuration.connectedServers)
    machine = ClientMachine(
      servers: servers.entries, configuration.linkSettings, ways: configuration.waySettings)
    pathHeartbeat = PathHeartbeat(configuration)
    credentials = configuration.identity.credential.map {
      CredentialSource($0, timeout: configuration.timeouts.connect.clampedNanoseconds, on: loop)
    }
    if machine.ways.settings.ways > 0 {
      requests.onWaiting = { [unowned self] in settle() }
      requests.onTwoWay = { [unowned self] in
        let hadTrial = endTrial()
        return machine.link.preparedUntil ?? (hadTrial ? loop.now : nil)
      }
    }
    requests.onIdle = { [unowned self] in finishClosingIfDone() }
    requests.onRetired = { [unowned self] in finishIfDone($0) }
    requests.waitReason = { [unowned self] in waitReason }
    if configuration.reconnect.errorRatio?.countsDeadlines == true {
      requests.onExpired = { [unowned self] in tell(.long(.outcome($0, isError: true))) }
    }
    loop.driver.hosts(self)
  }

  /// Whether neither connections nor short links are left.
  var hasNoLinks: Bool { connections.isEmpty && shortLinks?.connections.isEmpty ?? true }

  func bits() -> UInt64 { loop.driver.nextRandom() }

  /// Calls `completion` with the credential: at once if none is configured.
  func withCredential(_ completion: @escaping CredentialSource.Completion) {
    if let credentials { credentials.ask(completion) } else { completion(.success([])) }
  }

  /// Ends a trial before its time, because requests cannot take short links; returns whether there
  /// was a trial.
  func endTrial() -> Bool {
    guard machine.ways.isTrying else { return false }
    tell(.short(.unfit))
    return true
  }

  /// Sets the adaptive heartbeat's pace on each connection.
  func updateHeartbeatPace() {
    guard let pathHeartbeat else { return }
    for connection in connections { connection.link.setPace(pathHeartbeat.pace) }
  }
}

// MARK: - Waiting for a connection

extension ClientCore {
  /// Starts to connect.
  func start() {
    guard closing == nil else { return }
    tell(.wanted(again: false))
  }

  /// Calls `completion` when there is a connection, or when an attempt has failed.
  func connect(_ completion: @escaping @Sendable (Result<Void, LongLinkError>) -> Void) {
    guard closing == nil else {
      completion(
        .failure(LongLinkError(.closed, doing: "connect", detail: "the client was closed")))
      return
    }
    if requests.current != nil {
      // The application may have a credential that servers accept now.
      if machine.refusals.finalCode != nil { tell(.asked) }
      completion(.success(()))
      return
    }
    // `settle` follows further down, so that the state in between is not shown.
    note(.asked)
    if machine.state == .suspended {
      settle()
      completion(.failure(notConnected("connect")))
      return
    }
    if !configuration.hasLongLink || machine.ways.isTrying {
      settle()
      completion(.success(()))
      return
    }
    connectWaiters.append(completion)
    tell(.wanted(again: true))
  }

  func resumeConnectWaiters(_ result: Result<Void, LongLinkError>) {
    let waiters = connectWaiters
    connectWaiters = []
    for waiter in waiters { waiter(result) }
  }

  /// Fails the requests that have nothing to wait for after a setback, and callers of `connect` if
  /// it concerns them.
  func failWaiting(
    after setback: Setback, resumesConnect: Bool = false,
    _ error: (LongLinkError.Operation) -> LongLinkError
  ) {
    let failing = machine.failing(after: setback)
    if failing != .none {
      requests.failWaiting(all: failing == .all) { operation, _ in error(operation) }
    }
    guard resumesConnect else { return }
    // For callers that wait for a connection, short links are one too.
    resumeConnectWaiters(failing == .none ? .success(()) : .failure(error("connect")))
  }

  /// Fails what waits, if there is no link and the servers have refused the credential for good.
  func failIfRefused() {
    guard machine.refusals.finalCode != nil, !machine.link.isReplacing else { return }
    failWaiting(after: .refused, resumesConnect: true, notConnected)
  }

  /// Returns the error of an operation that does not wait for a connection, with the reason why
  /// there is none.
  func notConnected(_ operation: LongLinkError.Operation) -> LongLinkError {
    (lastFailure ?? .unknown).error(.notConnected, doing: operation)
  }

  /// Why requests cannot be sent now; nil if there is a connection, or none was tried.
  private var waitReason: WaitReason? {
    guard !requests.hasLink else { return nil }
    let limit = machine.ways.settings.limit
    if machine.ways.carriesRequests, machine.ways.count >= limit {
      return WaitReason("it waited for one of the \(limit) short links")
    }
    return lastFailure?.waitReason
  }

  /// Closes a link that takes no new requests once the last request of either side has ended. A
  /// client that goes on leaves it to the server to close, so that its last pushes arrive.
  func finishIfDone(_ link: Link) {
    let connection = connections.first { $0.link === link }
    guard !requests.isCurrent(link), connection?.isPreparing != true else { return }
    if goesOn {
      guard connection?.awaitsNext != true else { return }
      link.leaveIfUnused(by: requests)
      closeOldestLeft()
    } else {
      link.shutDownIfUnused(by: requests)
    }
  }

  /// Whether the client goes on after the end of a connection.
  var goesOn: Bool { closing == nil && machine.state != .suspended }

  /// Leaves the connection to a draining server that was kept until there was another.
  func leaveDrained() {
    for connection in connections where connection.awaitsNext {
      connection.awaitsNext = false
      finishIfDone(connection.link)
    }
  }

  /// The most connections that the client has left, and that their servers have not closed.
  private static let mostLeft = 3

  /// Closes the oldest connection that the client has left, if there are too many: servers that
  /// send it away and do not close could else make it hold any number.
  func closeOldestLeft() {
    let left = connections.filter(\.awaitsEnd)
    if left.count > ClientCore.mostLeft { left[0].link.close(.closedHere) }
  }
}

extension ClientCore: LoopResident {
  /// The handlers of servers' requests that have not returned, a line each.
  var unfinished: [String] { connections.flatMap(\.link.unfinishedHandlers) }
}

extension ClientConfiguration {
  fileprivate var linkSettings: LinkMachine.Settings {
    LinkMachine.Settings(
      reconnect: reconnect, connectTimeout: timeouts.connect.clampedNanoseconds,
      lingering: timeouts.lingering.clampedNanoseconds, prepares: prepare != nil)
  }

  fileprivate var waySettings: WayMachine.Settings {
    WayMachine.Settings(
      hasLongLink: hasLongLink, ways: ways.count { $0.opener != nil },
      connectBound: timeouts.connect.clampedNanoseconds, reconnect: reconnect)
  }
}
