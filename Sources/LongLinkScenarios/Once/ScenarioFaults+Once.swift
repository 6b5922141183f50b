// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkTesting
internal import Synchronization

// Faults that concern requests that run once.
extension ScenarioFaults {
  /// Injects one such fault; false if there is no victim.
  func disturbOnce(_ fault: ScenarioPlan.Fault) -> Bool {
    guard let once = ScenarioOnce(stage) else { return true }
    switch fault.kind {
    case .crashedRun: return crashRun(fault)
    case .secondClient:
      let client = Int(fault.victim % UInt64(stage.plan.clients.count))
      simulation.spawn { try await once.takeOver(client) }
    case .login: logIn(fault)
    case .failingStore, .lostStore, .storeClock: disturbStore(fault)
    default: break
    }
    return true
  }

  /// Lets a server crash at a point of the next request there that runs once.
  private func crashRun(_ fault: ScenarioPlan.Fault) -> Bool {
    let index = Int(fault.victim % UInt64(plan.servers.count))
    let process = stage.processes.withLock { $0[index] }
    guard stage.server(index) != nil, process.isRunning else { return false }
    let points = OncePoint.allCases
    let point = points[Int(fault.detail % UInt64(points.count))]
    let run = process.current
    let restart = min(fault.lasting / 10, .seconds(5))
    stage.oracle.once.crash(index, after: point) { [self] in
      // It may have stopped meanwhile.
      guard let server = stage.server(index), process.current === run else { return }
      crash(index, server, fault.detail & 8 == 0 ? .process : .machine, startingAfter: restart)
    }
    later(.seconds(60)) { [stage] in stage.oracle.once.cancelCrash(of: index) }
    return true
  }

  private func logIn(_ fault: ScenarioPlan.Fault) {
    let index = Int(fault.victim % UInt64(stage.clients.count))
    let client = stage.clients[index]
    simulation.spawn {
      await client.suspend()
      stage.state.withLock { $0.users[index] = ($0.users[index, default: 0] + 1) % 3 }
      // A second process of the application may go on with the user from before.
      stage.peers.mayBeSeveral(index)
      client.resume()
    }
  }

  private func disturbStore(_ fault: ScenarioPlan.Fault) {
    let stores = stage.state.withLock { $0.stores }
    guard !stores.isEmpty else { return }
    let store = stores[Int(fault.victim % UInt64(stores.count))]
    switch fault.kind {
    case .failingStore:
      store.setTrouble(LastingStore.muchTrouble)
      later(fault.lasting) { store.setTrouble(LastingStore.usualTrouble) }
    case .lostStore: store.lose()
    default:
      let length = min(fault.lasting, .seconds(60))
      store.disturbClock(
        by: fault.detail & 1 == 0 ? length : .zero - length,
        rate: [50, 90, 110, 150][Int(fault.detail >> 1 % 4)])
    }
  }
}
