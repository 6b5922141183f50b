// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

extension LongLinkServer {
  /// Returns the peers of all open connections.
  public func peers() async -> [Peer] {
    var peers: [Peer] = []
    for (loop, lane) in lanesNow {
      peers += await loop.run { lane.value.peers }
    }
    return peers
  }

  /// Sends a one-way message to every connection, without waiting for any. It is encoded once.
  ///
  /// A loop sends it to 256 connections in a turn, and then serves others before it goes on. The
  /// call returns when each connection has had its turn. Broadcasts go one after another: each
  /// connection gets them in one order, and does not get those that had their turn on its loop
  /// before it was accepted.
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
    var report = BroadcastReport()
    for (loop, lane) in lanesNow {
      report += await onLoop(loop) { lane.value.broadcast(broadcast, $0) }
    }
    return report
  }

  /// Returns a snapshot of the server's counters.
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

  /// Drains one connection: sends the client a goaway, lets its running requests finish within
  /// `bound`, and returns when the connection has ended.
  ///
  /// It returns at once if the connection has ended already, or belongs to another server. A client
  /// of this framework opens its next connection before it closes this one: drain connections to
  /// move clients to `alternatives`, or to balance the load. The other parameters are those of
  /// `shutDown`.
  public func drain(
    _ peer: Peer, within bound: Duration = .seconds(10), spread: Duration? = nil,
    retryAfter: Duration? = nil, alternatives: [Endpoint]? = nil
  ) async {
    let notice = DrainNotice(
      reason: "the server drains this connection", configuration, spread: spread,
      retryAfter: retryAfter, alternatives: alternatives)
    guard let (loop, lane) = lanesNow.first(where: { $0.0 === peer.loop }) else { return }
    await suspend { (waiter: Waiter<Void>) in
      loop.execute {
        lane.value.drain(peer, within: bound.clampedNanoseconds, notice) { waiter(()) }
      }
    }
  }

  /// Ends all connections of the principal with this name, and returns how many there were.
  ///
  /// Each client gets a goaway with 401; its running requests may finish within `bound`. Clients
  /// that connect meanwhile, whose `authenticate` call has not returned, are refused. A client
  /// of this framework comes back at once and shows its credential again: let `authenticate` refuse
  /// it from now on, if it is to stay out. Requests over HTTP that are running are not ended.
  @discardableResult
  public func endConnections(
    of principal: String, within bound: Duration = .zero,
    reason: String = "the server has ended the connections of this principal"
  ) async -> Int {
    let notice = DrainNotice(
      code: .unauthenticated, reason: reason, configuration, spread: .zero, retryAfter: .zero,
      alternatives: [])
    var count = 0
    for (loop, lane) in lanesNow {
      count += await onLoop(loop) {
        lane.value.end(principal: principal, within: bound.clampedNanoseconds, notice, $0)
      }
    }
    return count
  }

  /// Begins something on a loop, at once if this is the loop, and returns what it ends with.
  private func onLoop<Value: Sendable>(
    _ loop: EventLoop, _ body: @escaping @Sendable (Waiter<Value>) -> Void
  ) async -> Value {
    await suspend { waiter in
      if loop.isCurrent { body(waiter) } else { loop.execute { body(waiter) } }
    }
  }
}
