// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

/// What is done to many connections: to a slice of them in each turn of the loop, which serves
/// the others in between.
struct Sweep {
  enum Work {
    case broadcast(Broadcast, Waiter<BroadcastReport>)
    case drain(DrainNotice, until: LinkInstant, then: () -> Void)
  }

  /// The most connections in one turn. A push or a goaway, with its write, takes some 10 µs.
  static let slice = 256

  let work: Work
  /// The connections that it has still to come to; nil before it begins, with all of them.
  var rest: ArraySlice<UInt64>?
  var report = BroadcastReport()

  mutating func visit(_ connection: ServerConnection) {
    switch work {
    case .broadcast(let broadcast, _):
      if !connection.link.isShort { report.count(broadcast.send(on: connection.link)) }
    case .drain(let notice, let end, _):
      connection.drain(within: max(0, end - connection.peer.loop.now), notice) {}
    }
  }

  func ends() {
    switch work {
    case .broadcast(_, let waiter): waiter(report)
    case .drain(_, _, let completion): completion()
    }
  }
}

/// The sweeps of a loop. Drains go before broadcasts, and each goes before those that came later.
struct Sweeps {
  struct Line {
    private var waiting = Queue<Sweep>()
    /// The one that has begun and is not over.
    var begun: Sweep?

    var isEmpty: Bool { begun == nil && waiting.isEmpty }

    mutating func append(_ sweep: Sweep) { waiting.append(sweep) }
    mutating func popFirst() -> Sweep? { begun.take() ?? waiting.popFirst() }
  }

  var drains = Line()
  var broadcasts = Line()
  /// Whether a slice is being visited, or the next one follows at the end of the turn.
  var isRunning = false
}

extension ServerLane: TurnHandler {
  /// Sends a broadcast to every connection that is there when it begins, after the broadcasts that
  /// came before.
  func broadcast(_ broadcast: Broadcast, _ waiter: Waiter<BroadcastReport>) {
    sweeps.broadcasts.append(Sweep(work: .broadcast(broadcast, waiter)))
    if !sweeps.isRunning { sweepOn() }
  }

  /// Drains connections, before broadcasts go on, and calls `completion` when each was told.
  func drain(
    _ ids: [UInt64], until end: LinkInstant, _ notice: DrainNotice,
    then completion: @escaping () -> Void
  ) {
    sweeps.drains.append(Sweep(work: .drain(notice, until: end, then: completion), rest: ids[...]))
    if !sweeps.isRunning { sweepOn() }
  }

  func turnEnds(token: UInt64) { sweepOn() }

  private func sweepOn() {
    let line = sweeps.drains.isEmpty ? \Sweeps.broadcasts : \Sweeps.drains
    guard var sweep = sweeps[keyPath: line].popFirst() else { return }
    // A hook that is called when a connection ends may add others.
    sweeps.isRunning = true
    let rest = sweep.rest ?? connections.keys.sorted()[...]
    for id in rest.prefix(Sweep.slice) {
      if let connection = connections[id] { sweep.visit(connection) }
    }
    sweep.rest = rest.dropFirst(Sweep.slice)
    if rest.count > Sweep.slice { sweeps[keyPath: line].begun = sweep } else { sweep.ends() }
    // One that begins now waits for the next turn, too: each turn has one slice.
    sweeps.isRunning = !sweeps.drains.isEmpty || !sweeps.broadcasts.isEmpty
    if sweeps.isRunning { loop.atEndOfTurn(self, token: 0) }
  }

  /// The connections for which a condition holds, in the order in which they were accepted.
  func ids(where isMeant: (ServerConnection) -> Bool) -> [UInt64] {
    connections.compactMap { isMeant($0.value) ? $0.key : nil }.sorted()
  }
}
