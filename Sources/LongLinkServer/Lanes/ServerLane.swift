// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The part of a server that lives on one loop: its connections and their counters.
final class ServerLane {
  let loop: EventLoop
  /// The number of the loop among the server's, from 0; at most 255.
  let number: UInt8
  /// The settings of each new connection. A dialect may have a different token for each.
  private(set) var settings: ConnectionSettings
  private(set) var configuration: ServerConfiguration
  /// The number of the last change of limits that the lane has taken over.
  private var limitChange: UInt64 = 0
  let defaults: RequestDefaults
  let routes: Routes
  let hooks: ServerHooks
  /// What keeps the records of requests that run once; nil if nothing does.
  let keeper: (any OnceKeeper)?
  var log: PeerLog { shared.log }
  /// The limits for requests and pushes that wait for room on one connection.
  let requestLimits = RequestLimits(maxWaiting: 1_024)
  let shared: ServerShared
  /// The observers of exchanges and links; nil if there are none.
  let observers: Observers?
  /// The asynchronous handlers that run on the loop.
  let handlers: HandlerQueue
  /// This lane's share of the memory budget; set before the first connection opens.
  private(set) var memory: MemoryShare?
  private(set) var connections: [UInt64: ServerConnection] = [:]
  /// Connections of proxies that have not named their clients yet.
  var greetings: [UInt64: ProxyGreeting] = [:]
  let totals = ConnectionTotals()
  private(set) var requestTotals = RequestCounters()
  /// The calls of `authenticate`; nil if the server authenticates no clients.
  private let authentications: AuthenticationQueue?
  private var credentialsExpired: UInt64 = 0
  private(set) var pushesUnhandled: UInt64 = 0
  /// The number of short links that this lane has taken.
  private(set) var shortLinks: UInt64 = 0
  /// The survey of all connections that is under way; nil if there is none.
  var survey: SurveyRun?
  /// When the drain ends, and its notice. Nil before the drain; during it, new connections are
  /// closed.
  private var draining: (until: LinkInstant, notice: DrainNotice)?
  private var onDrained: (@Sendable () -> Void)?
  /// Whether a drain takes no time.
  private var isHurried = false
  var sweeps = Sweeps()
  /// The number of the last broadcast that has begun on this loop.
  var broadcastsBegun: UInt64 = 0
  /// The absences of clients that may come back, by the client's number.
  var absences: [UInt64: Absence] = [:]

  init(
    loop: EventLoop, number: Int, _ configuration: ServerConfiguration,
    _ settings: ConnectionSettings, routes: Routes, hooks: ServerHooks,
    keeper: (any OnceKeeper)?, shared: ServerShared, observers: Observers?
  ) {
    self.loop = loop
    self.number = UInt8(clamping: number)
    handlers = HandlerQueue(on: loop)
    self.routes = routes
    self.hooks = hooks
    self.keeper = keeper
    self.shared = shared
    self.observers = observers
    self.configuration = configuration
    self.settings = settings
    authentications = configuration.identity.authenticate.map {
      AuthenticationQueue(
        $0, limit: configuration.identity.maxAuthentications,
        timeout: configuration.identity.timeout.clampedNanoseconds, shared: shared, on: loop)
    }
    defaults = RequestDefaults(
      timeout: configuration.timeouts.request.clampedNanoseconds, offline: .wait)
    loop.driver.hosts(self)
  }

  /// Takes over limits that have changed.
  func takeChangedLimits() {
    guard let change = shared.change(after: limitChange) else { return }
    (limitChange, configuration, settings) = (
      change.number, change.configuration, change.settings
    )
  }

  /// Makes this lane's share of the server's memory budget.
  func share(_ budget: MemoryBudget) {
    let reference = LoopBound(Reference(lane: self), on: loop)
    memory = budget.makeShare(on: loop) {
      reference.value.lane?.relieveMemory()
    } recover: {
      reference.value.lane?.recover()
    }
  }

  /// A weak reference, so that the memory share does not retain its lane.
  private final class Reference {
    weak let lane: ServerLane?

    init(lane: ServerLane) {
      self.lane = lane
    }
  }

  /// Frees empty buffers. If that is not enough, evicts the connections that hold the most memory.
  private func relieveMemory() {
    guard let budget = memory?.budget else { return }
    for connection in connections.values { connection.link.releaseRoom() }
    guard budget.mustEvict else { return }
    for connection in heaviest where !budget.isRelieved { connection.link.evict() }
  }

  /// The connections that hold memory, the heaviest first.
  ///
  /// If clients at one address make no progress, each of their connections weighs as much as all of
  /// these together. So a large number of connections that hold little do not outlast one that
  /// moves much data.
  private var heaviest: [ServerConnection] {
    var stalled: [SocketAddress.Group: Int] = [:]
    let weights = connections.values.map { connection in
      let weight = connection.link.memoryWeight
      let group = weight.isStalled ? connection.admission.group : nil
      if let group { stalled[group, default: 0] += weight.amount }
      return (connection: connection, amount: weight.amount, group: group)
    }
    return weights.filter { $0.amount > 0 }
      .map { (rank: $0.group.flatMap { stalled[$0] } ?? $0.amount, $0.amount, $0.connection) }
      .sorted { ($0.rank, $0.1, $0.2.id) > ($1.rank, $1.1, $1.2.id) }
      .map { $0.2 }
  }

  /// Lifts the restrictions of connections when memory is no longer scarce.
  private func recover() {
    for id in ids(where: { _ in true }) { connections[id]?.link.recover() }
  }

  /// Opens a connection that the listener accepted for this loop.
  func adopt(_ accepted: any AcceptedTransport, _ admission: Admission) {
    do throws(SocketError) {
      open(try accepted.adopt(on: loop), admission)
    } catch {
      logFailure(error, admission)
    }
  }

  /// Opens a connection that was admitted.
  func open(_ transport: any Transport, _ admission: Admission) {
    takeChangedLimits()
    guard draining == nil, !shared.isLeaving(admission), let settings = settingsOfNext() else {
      transport.close()
      shared.connectionEnded(admission)
      return
    }
    var transport = transport
    if let security = configuration.security {
      transport = security.provider.secure(transport, on: loop)
    }
    start(ServerConnection(admission, transport, limited(settings, by: admission), lane: self))
  }

  private func start(_ connection: ServerConnection) {
    connections[connection.id] = connection
    connection.link.start(for: connection)
  }

  func logFailure(_ error: SocketError, _ admission: Admission) {
    log.log(.warning, "Could not set up a connection", of: admission.group, at: loop.now) {
      ["error": "\(error)"]
    }
    shared.connectionEnded(admission)
  }

  /// Takes a short link that a gateway has accepted, unless a limit or the application rejects it.
  /// While the server drains, the short link's request is refused.
  func accept(short accepted: any AcceptedTransport) {
    let address = accepted.peerAddress
    do throws(ConnectionRejection) {
      let admission = try shared.admit(
        address, at: loop.now, to: LoopBound(self, on: loop), isShort: true, asking: hooks.accept)
      open(short: accepted, admission)
    } catch {
      shared.logRejection(error, of: address, at: loop.now)  // Releasing the transport ends it.
    }
  }

  private func open(short accepted: any AcceptedTransport, _ admission: Admission) {
    do throws(SocketError) {
      let transport = try accepted.adopt(on: loop)
      takeChangedLimits()
      var settings = limited(settings, by: admission)
      settings.dialect = nil
      settings.isShort = true
      let connection = ServerConnection(admission, transport, settings, lane: self)
      connection.isSecuredByProxy = accepted.isSecuredByProxy
      connection.accepted = accepted
      shortLinks += 1
      start(connection)
      if let draining {
        connection.drain(within: max(0, draining.until - loop.now), draining.notice) {}
      }
    } catch {
      logFailure(error, admission)
    }
  }

  /// Returns the settings of a new connection; nil, after logging, if the dialect's token does not
  /// fit.
  private func settingsOfNext() -> ConnectionSettings? {
    guard configuration.dialect.source?.isPerConnection == true else { return settings }
    var settings = settings
    do throws(DialectTokenError) {
      settings.dialect = try configuration.dialect.source?.framing(
        .server, maxBody: settings.maxBody)
      return settings
    } catch {
      log.log(.error, "Could not open a connection", at: loop.now) { ["error": "\(error)"] }
      return nil
    }
  }

  /// The range of serials for the server's own requests in a dialect; nil without one.
  var serials: ClosedRange<UInt32>? { configuration.dialect.facts(.server)?.serials }
  /// Why the dialect does not let a server send requests; nil if it does.
  var objectionToRequests: String? {
    guard let dialect = configuration.dialect.facts(.server), serials == nil else { return nil }
    return "\(dialect.name) does not let a server send requests"
  }

  /// Lets `authenticate` decide about a connection's client, or about its renewed credential. A
  /// server without the function accepts everyone.
  func identify(_ connection: ServerConnection) {
    guard let authentications else { return connection.accepted(.anonymous) }
    authentications.identify(connection)
  }

  /// Drains a connection whose credential has expired: the client reconnects with another one.
  func credentialExpired(_ connection: ServerConnection) {
    credentialsExpired += 1
    let notice = DrainNotice(
      code: .unauthenticated, reason: "the credential has expired", as: .credential, configuration,
      spread: .zero, retryAfter: .zero, alternatives: [])
    connection.drain(within: configuration.identity.credentialGrace.clampedNanoseconds, notice) {}
  }

  /// Ends the connections of a principal, and reports their number. Clients about which
  /// `authenticate` is still deciding are refused if they turn out to be this principal. A short
  /// link ends with its request, which was authenticated on its own.
  func end(
    principal name: String, within bound: Int64, _ notice: DrainNotice, _ waiter: Waiter<Int>
  ) {
    authentications?.end(principal: name, notice.reason)
    let ended = ids {
      !$0.link.connection.settings.isShort && $0.peer.principal?.name.isSameBytes(as: name) == true
    }
    drain(ended, until: loop.now + bound, notice) { waiter(ended.count) }
  }

  func opened(_ connection: ServerConnection, isNew: Bool) {
    let link = connection.link
    connection.isUnopened = false
    shared.connectionOpened(connection.admission)
    // The gateway may have closed the short link meanwhile, for example to make room.
    if let accepted = connection.accepted.take(), !accepted.opened() {
      return link.close(.closedByPeer)
    }
    // A short link carries a single exchange, so its peer is of no use to the application.
    guard !link.connection.settings.isShort else { return }
    connection.openedAt = loop.now
    connection.logOpening()
    if isNew { hooks.connect?(connection.peer) }
    hooks.connectionOpened?(connection.peer)
  }

  func received(_ push: Push, from peer: Peer) {
    guard let handler = hooks.pushes[push.type] else {
      pushesUnhandled += 1
      return
    }
    handler(push, peer)
  }

  /// Counts the reason why a connection ends. It may linger until the peer has read the reason.
  func abandoned(_ connection: ServerConnection, _ reason: CloseReason) {
    authentications?.ended(connection.id)
    totals.ended(reason)
  }

  func ended(_ connection: ServerConnection) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
    survey?.ended(connection)
    connection.link.count(in: totals)
    requestTotals += connection.requestCounters
    shared.connectionEnded(connection.admission)
    if connection.wasOpened { left(connection) }
    finishDraining()
  }

  /// The peers of all connections that have opened.
  var peers: [Peer] { ids(where: \.wasOpened).compactMap { connections[$0]?.peer } }

  /// Adds the counters of this loop's connections, past and present.
  func count(in counters: inout ServerCounters) {
    counters.connections += totals.counters
    counters.endings.merge(totals.endings, uniquingKeysWith: +)
    counters.violations.merge(totals.violations, uniquingKeysWith: +)
    counters.requests += requestTotals
    counters.pushesUnhandled += pushesUnhandled
    counters.shortLinks += shortLinks
    if let authentications { counters.authentications += authentications.counters }
    counters.authentications.expired += credentialsExpired
    for connection in connections.values {
      let link = connection.link
      counters.connections += link.counters
      counters.requests += connection.requestCounters
      counters.requestsRunning += link.connection.inbound.count
      counters.pushesWaiting += connection.pushesWaiting
      counters.bytesUnwritten += link.connection.outbox.totalBytes
    }
  }

  /// Drains every connection and calls `completion` when the last one has ended.
  func drain(
    within bound: Int64, _ notice: DrainNotice, _ completion: @escaping @Sendable () -> Void
  ) {
    let end = isHurried ? loop.now : loop.now + bound
    draining = (end, notice)
    onDrained = completion
    endAbsences()
    abandonGreetings()
    drain(connections.keys.sorted(), until: end, notice) {}
    finishDraining()
  }

  /// Ends the drain at once, also one that has not begun yet.
  func hurryDrain() {
    isHurried = true
    guard let notice = draining?.notice else { return }
    draining = (loop.now, notice)
    drain(connections.keys.sorted(), until: loop.now, notice) {}
  }

  /// How long requests may run on after their connection was asked to move, in nanoseconds.
  static let moveBound: Int64 = 60_000_000_000

  /// Drains all connections that are open now. New ones are still accepted.
  func drainAll(within bound: Int64, _ notice: DrainNotice) {
    drain(ids { !$0.link.connection.settings.isShort }, until: loop.now + bound, notice) {}
  }

  /// Drains one connection and calls `completion` when it has ended.
  func drain(
    _ peer: Peer, within bound: Int64, _ notice: DrainNotice,
    _ completion: @escaping @Sendable () -> Void
  ) {
    // Another server may share the loop and use the same number for a connection.
    guard let connection = connections[peer.connectionID], connection.peer === peer else {
      completion()
      return
    }
    connection.drain(within: bound, notice, completion)
  }

  /// Whether the lane opens no new connections any more.
  var isDraining: Bool { draining != nil }

  /// Completes the drain if the last connection has ended.
  func finishDraining() {
    guard connections.isEmpty, greetings.isEmpty, let onDrained else { return }
    self.onDrained = nil
    onDrained()
  }
}
