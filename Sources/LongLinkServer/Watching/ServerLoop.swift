// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
import LongLinkDriver
@_spi(Loop) package import LongLinkTransport

/// One loop of a server, for those who watch and operate the server from a thread of their own.
package struct ServerLoop: Sendable {
  package let loop: EventLoop
  private let lane: LoopBound<ServerLane>

  fileprivate init(_ loop: EventLoop, _ lane: LoopBound<ServerLane>) {
    self.loop = loop
    self.lane = lane
  }

  /// Calls a function on the loop, which may be much later.
  package func visit(_ body: @escaping @Sendable (ServerLoopVisit) -> Void) {
    loop.execute { body(ServerLoopVisit(lane: lane.value)) }
  }
}

/// What can be asked and done on a loop of a server, within one call. A loop with many connections
/// serves other work in between if `connections` is called for a slice of them.
package struct ServerLoopVisit {
  let lane: ServerLane

  /// Lets `loop.handler` say exactly which handler runs, until each call with true was followed by
  /// one with false.
  package func timeHandlers(_ isWanted: Bool) { lane.loop.timeHandlers(isWanted) }

  /// What the recorder of the loop holds; nil if nothing was recorded.
  package var recorded: RecorderSnapshot? { lane.loop.recorded }

  /// The numbers of all connections, in no particular order: to sort them takes the loop too long.
  package var ids: [UInt64] { Array(lane.connections.keys) }

  /// Surveys all connections in as many turns as it takes, and calls `eachTurn` in each of them. A
  /// further survey replaces one that is under way.
  package func survey(
    eachTurn: @escaping () -> Void = {}, then: @escaping (LaneSurvey) -> Void
  ) {
    lane.survey(eachTurn: eachTurn, then: then)
  }

  /// The open connections with these numbers.
  package func connections(_ ids: ArraySlice<UInt64>) -> [ConnectionView] {
    ids.compactMap { id in connection(id).map(ConnectionView.init) }
  }

  /// Drains the connection with this number: its client is told to leave, and it ends when nothing
  /// runs on it any more and, if the client can be told to move, it has its next one. Nil if the
  /// loop has no such open connection.
  package func drain(_ id: UInt64) -> ConnectionView? {
    end(id, reason: "an operator drains this connection", as: .drained, within: Self.drainBound)
  }

  /// How long requests may run on a connection that an operator drains, in nanoseconds: a day.
  private static let drainBound: Int64 = 86_400_000_000_000

  /// Ends the connection with this number at once. Nil if the loop has no such open connection.
  package func close(_ id: UInt64) -> ConnectionView? {
    end(id, reason: "an operator has ended this connection", as: .ended, within: 0)
  }

  private func end(
    _ id: UInt64, reason: String, as departure: LinkRecord.Departure, within bound: Int64
  ) -> ConnectionView? {
    guard let connection = connection(id) else { return nil }
    var view = ConnectionView(connection)
    view.isDraining = true
    let notice = DrainNotice(
      reason: reason, as: departure, lane.configuration, spread: .zero, retryAfter: .zero,
      alternatives: [], goesOn: departure == .drained && !lane.isDraining)
    connection.drain(within: bound, notice) {}
    return view
  }

  private func connection(_ id: UInt64) -> ServerConnection? {
    lane.connections[id].flatMap { $0.wasOpened ? $0 : nil }
  }
}

extension LongLinkServer {
  /// Whether a server takes new clients.
  package enum Standing: Sendable {
    /// It has not started yet.
    case starting
    case ready
    /// It ends, or has ended.
    case draining
  }

  /// The server's loops in order; none before `start`. They stay after `shutDown`.
  package var watchedLoops: [ServerLoop] { lanesNow.map(ServerLoop.init) }

  /// The names of the methods that have handlers.
  package var methodNames: [MessageType: String] { router.names }

  /// Whether the server rejects new connections, because it has as many as it may have.
  package var isFull: Bool { shared.isFull }

  /// The counters that no loop has to be asked for. On any thread, without waiting for a loop.
  package var sharedCounters: ServerCounters {
    var counters = ServerCounters()
    shared.fill(&counters)
    keeper?.count(in: &counters)
    return counters
  }
}
