// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

extension LongLinkServer {
  /// Returns all clients that have an open connection, each once, with its current connection; in
  /// no particular order.
  ///
  /// A client that is without a connection within `identity.linger` is not among them.
  public func peers() async -> [Peer] {
    var opened: [Peer] = []
    for (loop, lane) in lanesNow { opened += await loop.run { lane.value.peers } }
    // While the loops are asked, clients may move from one to another.
    var seen: Set<Peer> = []
    return opened.filter { seen.insert($0).inserted }
      .compactMap { peer in peer.client.map { $0.current } ?? peer }
  }

  /// Returns the clients of a principal that have an open connection, in the order of their
  /// arrival. Each is returned once, with its current connection.
  ///
  /// A client that is without a connection within `identity.linger` is not among them.
  public func peers(of principal: String) -> [Peer] { shared.clients.peers(of: principal) }

  /// Sends a one-way message to each client of a principal, without waiting for any. The message is
  /// encoded once, and sent after earlier broadcasts.
  ///
  /// A connection above its high-water mark is skipped, or, with `closingSlow`, closed with
  /// `unreadOutput`; one that does not accept a body of this size is skipped. The report counts
  /// clients. Throws `encodingFailed`, and `unsupported` if the dialect has no such push.
  ///
  /// A client without a connection does not get the message, not even if it comes back within
  /// `identity.linger`, and is not counted. If no client is connected, all counts are zero.
  @discardableResult
  public func push(
    to principal: String, _ type: MessageType, _ body: some BodyEncodable & Sendable,
    closingSlow closesSlow: Bool = false
  ) async throws(LongLinkError) -> BroadcastReport {
    let broadcast = try Broadcast(type, body, closingSlow: closesSlow, in: settings.dialect)
    let lanes = lanesNow
    var gates: [Gate<BroadcastReport>] = []
    var here: (lane: LoopBound<ServerLane>, number: UInt64, peers: [Peer])?
    shared.clients.broadcast(to: principal) { number, peers in
      // Nothing waits before it, and its connections are on this loop: it needs no turn of its own.
      if !shared.clients.areBroadcastsUnderWay,
        let (loop, lane) = lanes.first(where: { $0.0.isCurrent }), !lane.value.sweeps.isRunning,
        peers.allSatisfy({ $0.loop === loop })
      {
        here = (lane, number, peers)
        return
      }
      for (loop, lane) in lanes {
        let ids = peers.compactMap { $0.loop === loop ? $0.connectionID : nil }
        guard !ids.isEmpty else { continue }
        let gate = Gate<BroadcastReport>()
        shared.clients.broadcastHandedOver()
        loop.executeInOrder { lane.value.broadcast(broadcast, number: number, to: ids, gate) }
        gates.append(gate)
      }
    }
    if let here {
      return here.lane.value.broadcastNow(broadcast, number: here.number, to: here.peers)
    }
    return await sum(of: gates)
  }

  private func sum(of gates: [Gate<BroadcastReport>]) async -> BroadcastReport {
    var report = BroadcastReport()
    for gate in gates { report += await gate.value }
    return report
  }

  /// Sends a one-way message to every client, without waiting for any. It is encoded once.
  ///
  /// A client gets it over its current connection: never twice, but perhaps not at all if that
  /// connection ends meanwhile. A loop sends it to 256 connections in a turn, and then serves other
  /// work before it goes on. The call returns when each connection has had its turn. Broadcasts go
  /// one after another: each connection gets them in the same order, and a client does not get
  /// those that began on its loop before its first connection opened, or while it had none.
  ///
  /// A connection above its high-water mark is skipped, or, with `closingSlow`, closed with
  /// `unreadOutput`. A connection that does not accept a body of this size is skipped. The report
  /// counts both. Throws `encodingFailed`, and `unsupported` if the dialect has no such push.
  @discardableResult
  public func broadcast(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    closingSlow closesSlow: Bool = false
  ) async throws(LongLinkError) -> BroadcastReport {
    let broadcast = try Broadcast(type, body, closingSlow: closesSlow, in: settings.dialect)
    let lanes = lanesNow
    let gates = lanes.map { _ in Gate<BroadcastReport>() }
    shared.clients.broadcast { number in
      for ((loop, lane), gate) in zip(lanes, gates) {
        shared.clients.broadcastHandedOver()
        loop.executeInOrder { lane.value.broadcast(broadcast, number: number, gate) }
      }
    }
    return await sum(of: gates)
  }

  /// Returns a snapshot of the server's counters. The loops are asked one after the other, so that
  /// their figures are not of one instant. All are zero before `start`; they stay after `shutDown`.
  public func counters() async -> ServerCounters {
    var counters = ServerCounters()
    shared.fill(&counters)
    keeper?.count(in: &counters)
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

  /// Drains the connections of one client: sends it a goaway, lets its running requests finish
  /// within `bound`, and returns when the connections have ended.
  ///
  /// It returns at once if they have ended already, or belong to another server. A client
  /// of this framework opens its next connection before it leaves these, and gets pushes on these
  /// until then, for `bound` at most: keep `spread` and `retryAfter` well below `bound`. Drain
  /// clients to move them to `alternatives`, or to balance the load. The other parameters are those
  /// of `shutDown`.
  public func drain(
    _ peer: Peer, within bound: Duration = .seconds(10), spread: Duration? = nil,
    retryAfter: Duration? = nil, alternatives: [Endpoint]? = nil
  ) async {
    let notice = DrainNotice(
      reason: "the server drains this connection", as: .drained, configuration, spread: spread,
      retryAfter: retryAfter, alternatives: alternatives, goesOn: true)
    let gates = (peer.client?.connected ?? [peer]).compactMap { peer -> Gate<Void>? in
      guard let lane = lanesNow.first(where: { $0.0 === peer.loop })?.1 else { return nil }
      let gate = Gate<Void>()
      peer.loop.execute {
        lane.value.drain(peer, within: bound.clampedNanoseconds, notice) { gate.open(()) }
      }
      return gate
    }
    for gate in gates { await gate.value }
  }

  /// Ends all connections of the principal with this name, and returns how many there were. It does
  /// not wait until they have ended.
  ///
  /// Each client gets a goaway with 401; its running requests may finish within `bound`. Clients
  /// whose `authenticate` call is still running are refused. A client of this framework comes back
  /// at once and shows its credential again: if it is to stay out, let `authenticate` refuse it
  /// from now on. Requests over HTTP that are running are not ended.
  @discardableResult
  public func endConnections(
    of principal: String, within bound: Duration = .zero,
    reason: String = "the server has ended the connections of this principal"
  ) async -> Int {
    let notice = DrainNotice(
      code: .unauthenticated, reason: reason, as: .credential, configuration, spread: .zero,
      retryAfter: .zero, alternatives: [])
    var count = 0
    for (loop, lane) in lanesNow {
      count += await onLoop(loop) {
        lane.value.end(principal: principal, within: bound.clampedNanoseconds, notice, $0)
      }
    }
    return count
  }

  /// Runs `body` on a loop, at once if this is the current loop, and returns its result.
  private func onLoop<Value: Sendable>(
    _ loop: EventLoop, _ body: @escaping @Sendable (Waiter<Value>) -> Void
  ) async -> Value {
    await suspend { waiter in
      if loop.isCurrent { body(waiter) } else { loop.execute { body(waiter) } }
    }
  }
}

extension LongLinkServer {
  /// Replaces the limits of new connections by those of a configuration that differs from the
  /// server's in these alone: `limits` without `memoryLimit` and `waterMarks`, `addresses`, and
  /// `timeouts` without `request`. Open connections keep theirs, and those that are accepted when
  /// this returns have the new ones. The configuration has to be valid.
  package func change(to configuration: ServerConfiguration) {
    shared.change(to: configuration)
  }
}
