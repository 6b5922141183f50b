// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// The part of a server that lives on one loop: its connections and their counters.
final class ServerLane {
  let loop: EventLoop
  /// The settings of every connection. A dialect may add a token for each.
  let settings: ConnectionSettings
  let configuration: ServerConfiguration
  let defaults: RequestDefaults
  let routes: Routes
  let hooks: ServerHooks
  /// What keeps the records of requests that run once; nil if nothing does.
  let keeper: (any OnceKeeper)?
  var log: PeerLog { shared.log }
  /// The bounds of waiting requests, and of waiting pushes, to one connection.
  let requestLimits = RequestLimits(maxWaiting: 1_024)
  let shared: ServerShared
  /// The asynchronous handlers that run on the loop.
  let handlers: HandlerQueue
  /// This lane's share of the memory budget; set before the first connection opens.
  private(set) var memory: MemoryShare?
  private(set) var connections: [UInt64: ServerConnection] = [:]
  /// Connections of proxies that have not said yet whose they are.
  var greetings: [UInt64: ProxyGreeting] = [:]
  private let totals = ConnectionTotals()
  private var requestTotals = RequestCounters()
  /// The calls of `authenticate`; nil if the server authenticates nobody.
  private let authentications: AuthenticationQueue?
  private var credentialsExpired: UInt64 = 0
  private var pushesUnhandled: UInt64 = 0
  /// The numbers of short links that were adopted.
  private var shortLinks: UInt64 = 0
  /// The end of the drain and its notice, once it has begun: new connections are closed at once.
  private var draining: (until: LinkInstant, notice: DrainNotice)?
  private var onDrained: (@Sendable () -> Void)?
  var sweeps = Sweeps()
  /// The number of the last broadcast that has begun here.
  var broadcastsBegun: UInt64 = 0
  /// The clients that may come back, by their numbers.
  var absences: [UInt64: Absence] = [:]

  init(
    loop: EventLoop, _ configuration: ServerConfiguration, _ settings: ConnectionSettings,
    routes: Routes, hooks: ServerHooks, keeper: (any OnceKeeper)?, shared: ServerShared
  ) {
    self.loop = loop
    handlers = HandlerQueue(on: loop)
    self.routes = routes
    self.hooks = hooks
    self.keeper = keeper
    self.shared = shared
    self.configuration = configuration
    self.settings = settings
    authentications = configuration.identity.authenticate.map {
      AuthenticationQueue(
        $0, limit: configuration.identity.maxAuthentications,
        timeout: configuration.identity.timeout.clampedNanoseconds, shared: shared, on: loop)
    }
    defaults = RequestDefaults(
      timeout: configuration.timeouts.request.clampedNanoseconds, offline: .wait)
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

  /// Keeps the share from retaining its lane.
  private final class Reference {
    weak let lane: ServerLane?

    init(lane: ServerLane) {
      self.lane = lane
    }
  }

  /// Frees empty buffers, and then evicts the connections that hold the most until enough is free.
  private func relieveMemory() {
    guard let budget = memory?.budget else { return }
    for connection in connections.values { connection.link.releaseRoom() }
    guard budget.mustEvict else { return }
    for connection in heaviest where !budget.isRelieved { connection.link.evict() }
  }

  /// The connections that hold anything, those of the greatest weight first.
  ///
  /// Connections of one address whose clients make no progress weigh as much as all of them
  /// together, so that many that hold little do not outlast one that moves much.
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

  /// Lifts the connections' bounds when memory is no longer scarce.
  private func recover() {
    for connection in connections.values { connection.link.recover() }
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

  /// Takes a short link that a gateway has accepted, unless a limit or the application is against
  /// it. While the server drains, its request is refused.
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

  /// Returns the next connection's settings; nil, and logged, if its dialect's token does not fit.
  private func settingsOfNext() -> ConnectionSettings? {
    guard configuration.dialect.source?.isPerConnection == true else { return settings }
    var settings = settings
    do throws(FrameLayoutError) {
      settings.dialect = try configuration.dialect.source?.framing(
        .server, maxBody: settings.maxBody)
      return settings
    } catch {
      log.log(.error, "Could not open a connection", at: loop.now) { ["error": "\(error)"] }
      return nil
    }
  }

  /// The serials of the server's own requests, in a dialect.
  var serials: ClosedRange<UInt32>? { configuration.dialect.facts(.server)?.serials }
  /// Why the dialect allows no requests of a server, as text; nil if it does.
  var objectionToRequests: String? {
    guard let dialect = configuration.dialect.facts(.server), serials == nil else { return nil }
    return "\(dialect.name) does not let a server send requests"
  }

  /// Asks the application who the client of a connection is, or about its next credential. A server
  /// that does not ask accepts everyone.
  func identify(_ connection: ServerConnection) {
    guard let authentications else { return connection.accepted(.anonymous) }
    authentications.identify(connection)
  }

  /// Asks a client whose credential has expired to come back with another one.
  func credentialExpired(_ connection: ServerConnection) {
    credentialsExpired += 1
    let notice = DrainNotice(
      code: .unauthenticated, reason: "the credential has expired", configuration, spread: .zero,
      retryAfter: .zero, alternatives: [])
    connection.drain(within: configuration.identity.credentialGrace.clampedNanoseconds, notice) {}
  }

  /// Ends the connections of a principal, and reports how many there were. Those of which
  /// `authenticate` is deciding are turned away if they turn out to be the principal's. A short
  /// link is over with its request, which was authenticated on its own.
  func end(
    principal name: String, within bound: Int64, _ notice: DrainNotice, _ waiter: Waiter<Int>
  ) {
    authentications?.end(principal: name, notice.reason)
    let ended = ids {
      !$0.link.isShort && $0.peer.principal?.name.isSameBytes(as: name) == true
    }
    drain(ended, until: loop.now + bound, notice) { waiter(ended.count) }
  }

  func opened(_ connection: ServerConnection, isNew: Bool) {
    let link = connection.link
    connection.isUnopened = false
    shared.connectionOpened(connection.admission)
    // The gateway may have closed it meanwhile, for example to make room.
    if let accepted = connection.accepted.take(), !accepted.opened() {
      return link.close(.closedByPeer)
    }
    // A short link is one exchange: nobody can do anything with its peer.
    guard !link.isShort else { return }
    link.log(.debug, "Connection opened", ["name": "\(PeerText(link.connection.agreement.name))"])
    connection.wasOpened = true
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

  /// Counts why a connection ends. The connection may linger until the peer has read the reason.
  func abandoned(_ connection: ServerConnection, _ reason: CloseReason) {
    authentications?.ended(connection.id)
    totals.ended(reason)
  }

  func ended(_ connection: ServerConnection) {
    guard connections.removeValue(forKey: connection.id) != nil else { return }
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
    draining = (loop.now + bound, notice)
    onDrained = completion
    endAbsences()
    abandonGreetings()
    drain(connections.keys.sorted(), until: loop.now + bound, notice) {}
    finishDraining()
  }

  /// How long the requests of connections that are asked to move may run on, in nanoseconds.
  static let moveBound: Int64 = 60_000_000_000

  /// Drains every connection that is open now; new ones are accepted.
  func drainAll(within bound: Int64, _ notice: DrainNotice) {
    drain(ids { !$0.link.isShort }, until: loop.now + bound, notice) {}
  }

  /// Drains one connection and calls `completion` when it has ended.
  func drain(
    _ peer: Peer, within bound: Int64, _ notice: DrainNotice,
    _ completion: @escaping @Sendable () -> Void
  ) {
    // The loop may be shared with another server, which may use the same number.
    guard let connection = connections[peer.connectionID], connection.peer === peer else {
      completion()
      return
    }
    connection.drain(within: bound, notice, completion)
  }

  /// Whether no new connection is opened any more.
  var isDraining: Bool { draining != nil }

  /// Ends the drain if the last connection has ended.
  func finishDraining() {
    guard connections.isEmpty, greetings.isEmpty, let onDrained else { return }
    self.onDrained = nil
    onDrained()
  }
}
