// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

extension ServerLane: TurnHandler {
  /// Sends a broadcast to the clients of the connections `ids`, after all earlier broadcasts. Nil
  /// stands for all connections that exist when it begins.
  func broadcast(
    _ broadcast: Broadcast, number: UInt64, to ids: [UInt64]? = nil,
    _ gate: Gate<BroadcastReport>
  ) {
    sweeps.broadcasts.append(
      Sweep(work: .broadcast(broadcast, number: number, gate), rest: ids?[...]))
    if !sweeps.isRunning { sweepOn() }
  }

  /// Pushes to the clients of these connections at once. Call it only if no broadcast and no sweep
  /// is under way.
  func broadcastNow(
    _ broadcast: Broadcast, number: UInt64, to peers: [Peer]
  ) -> BroadcastReport {
    // A hook for the end of a connection may add a sweep.
    sweeps.isRunning = true
    broadcastsBegun = number
    var report = BroadcastReport()
    for peer in peers {
      guard let connection = connections[peer.connectionID] else { continue }
      report.count(broadcast, number: number, on: connection)
    }
    sweepLater()
    return report
  }

  /// Drains connections, ahead of waiting broadcasts. Calls `completion` when each was sent a
  /// goaway.
  func drain(
    _ ids: [UInt64], until end: LinkInstant, _ notice: DrainNotice,
    then completion: @escaping () -> Void
  ) {
    sweeps.drains.append(Sweep(work: .drain(notice, until: end, then: completion), rest: ids[...]))
    if !sweeps.isRunning { sweepOn() }
  }

  /// What goes on at the end of a turn.
  enum Turn: UInt64 {
    case sweep
    case survey
  }

  func turnEnds(token: UInt64) {
    if token == Turn.survey.rawValue { surveyOn() } else { sweepOn() }
  }

  private func sweepOn() {
    let line = sweeps.drains.isEmpty ? \Sweeps.broadcasts : \Sweeps.drains
    guard var sweep = sweeps[keyPath: line].popFirst() else { return }
    // A hook for the end of a connection may add another sweep.
    sweeps.isRunning = true
    if case .broadcast(_, let number, _) = sweep.work { broadcastsBegun = number }
    let rest = sweep.rest ?? connections.keys.sorted()[...]
    for id in rest.prefix(Sweep.slice) {
      if let connection = connections[id] { sweep.visit(connection) }
    }
    sweep.rest = rest.dropFirst(Sweep.slice)
    if rest.count > Sweep.slice { sweeps[keyPath: line].begun = sweep } else { end(sweep) }
    sweepLater()
  }

  private func end(_ sweep: Sweep) {
    switch sweep.work {
    case .broadcast(_, _, let gate):
      shared.clients.broadcastEnded()
      gate.open(sweep.report)
    case .drain(_, _, let completion): completion()
    }
  }

  /// Goes on at the end of the turn if there is more to do. A sweep that is added now also waits
  /// for the next turn, since each turn has one slice.
  private func sweepLater() {
    sweeps.isRunning = !sweeps.drains.isEmpty || !sweeps.broadcasts.isEmpty
    if sweeps.isRunning { loop.atEndOfTurn(self, token: Turn.sweep.rawValue) }
  }

  /// The numbers of connections for which a condition holds, in the order of their acceptance.
  func ids(where isMeant: (ServerConnection) -> Bool) -> [UInt64] {
    connections.compactMap { isMeant($0.value) ? $0.key : nil }.sorted()
  }
}

extension ServerLane: LoopResident {
  /// The handlers that have not returned, a line each.
  var unfinished: [String] {
    ids { _ in true }.flatMap { connections[$0]?.link.unfinishedHandlers ?? [] }
      + (keeper?.unfinished(on: loop) ?? [])
  }
}
