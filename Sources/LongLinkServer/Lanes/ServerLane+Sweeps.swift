// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

extension ServerLane: TurnHandler {
  /// Sends a broadcast to the clients of some connections, of all that are there when it begins by
  /// default, after the broadcasts that came before.
  func broadcast(
    _ broadcast: Broadcast, number: UInt64, to ids: [UInt64]? = nil,
    _ gate: Gate<BroadcastReport>
  ) {
    sweeps.broadcasts.append(
      Sweep(work: .broadcast(broadcast, number: number, gate), rest: ids?[...]))
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
    if case .broadcast(_, let number, _) = sweep.work { broadcastsBegun = number }
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
