// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// Injects the faults of a scenario.
struct ScenarioFaults: Sendable {
  let stage: ScenarioStage

  var plan: ScenarioPlan { stage.plan }
  var simulation: Simulation { stage.simulation }

  /// Injects every fault of the plan at its time.
  func injectAll() async throws {
    for fault in plan.faults {
      let rest = fault.at - stage.elapsed
      if rest > .zero { try await simulation.sleep(for: rest) }
      // Until there is a victim, such as a link to break, the fault is tried again.
      while !inject(fault) { try await simulation.sleep(for: .milliseconds(500)) }
      stage.oracle.note("fault: \(fault.kind)")
      stage.state.withLock { $0.faults[fault.kind, default: 0] += 1 }
    }
    // Lasting faults end after their time, or when the world heals.
  }

  /// Injects one fault; false if there is no victim.
  private func inject(_ fault: ScenarioPlan.Fault) -> Bool {
    switch fault.kind {
    case .weakRadio, .smallPieces: return spoilLinks(fault)
    case .lostLinks: return breakAllLinks()
    case .lostLink, .reset, .halfClose, .halfOpen, .oneWay, .flippedBit, .cloggedLink,
      .stalledReader:
      return breakLink(fault)
    case .partition: return part(fault)
    case .refusedConnects, .ignoredConnects, .slowNames, .failingNames:
      return hinderConnects(fault)
    case .clockJump, .pause: return disturbMachine(fault)
    case .changedPath, .suspension: return moveClient(fault)
    case .blockedPorts: return blockPorts(fault)
    case .crash, .machineCrash, .restart, .flapping, .closedConnection, .endedPrincipal:
      return disturbServer(fault)
    case .crashedRun, .secondClient, .login, .failingStore, .lostStore, .storeClock:
      return disturbOnce(fault)
    // Certificates are replaced at times of their own in the plan.
    case .replacedCertificates: return true
    }
  }

  // MARK: Links

  private func spoilLinks(_ fault: ScenarioPlan.Fault) -> Bool {
    let conditions: LinkConditions =
      fault.kind == .weakRadio
      ? .weakRadio : LinkConditions(readSize: 1...200, writeSize: 1...200)
    simulation.network.conditions = conditions
    for link in simulation.network.links { link.setConditions(conditions) }
    // Another such fault may have begun before, so the conditions of now may not be the usual ones.
    later(fault.lasting) { [simulation, usual = plan.conditions] in
      simulation.network.conditions = usual
      for link in simulation.network.links { link.setConditions(usual) }
    }
    return true
  }

  private func breakAllLinks() -> Bool {
    guard !simulation.network.links.isEmpty else { return false }
    simulation.network.loseAllLinks()
    return true
  }

  private func breakLink(_ fault: ScenarioPlan.Fault) -> Bool {
    let links = simulation.network.links
    guard !links.isEmpty else { return false }
    let link = links[Int(fault.victim % UInt64(links.count))]
    let direction: SimulatedLink.Direction = fault.detail & 1 == 0 ? .toServer : .toClient
    switch fault.kind {
    case .lostLink: link.lose()
    case .reset: link.reset(direction)
    case .halfClose: link.halfClose(direction)
    case .halfOpen: link.silence(.both, for: fault.lasting)
    case .oneWay: link.silence(direction, for: fault.lasting)
    case .cloggedLink: link.clog(direction, for: fault.lasting)
    case .stalledReader: link.stopReading(direction, for: fault.lasting)
    default:
      let offset = link.bytesWritten(direction) + Int(fault.detail >> 8 % 400)
      link.flipBit(Int(fault.detail >> 4 % 8), ofByte: offset, direction)
    }
    return true
  }

  private func part(_ fault: ScenarioPlan.Fault) -> Bool {
    let client = simulation.machine(
      of: stage.clients[Int(fault.victim % UInt64(stage.clients.count))].loop)
    if fault.detail & 1 == 0 {
      simulation.network.isolate(client, for: fault.lasting)
    } else {
      let servers = stage.processes.withLock { $0.map(\.machine) }
      let server = servers[Int(fault.detail >> 8 % UInt64(servers.count))]
      simulation.network.partition([client], from: [server], for: fault.lasting)
    }
    return true
  }

  // MARK: Connecting

  private func hinderConnects(_ fault: ScenarioPlan.Fault) -> Bool {
    let server = plan.servers[Int(fault.victim % UInt64(plan.servers.count))]
    let network = simulation.network
    switch fault.kind {
    case .refusedConnects, .ignoredConnects:
      let behavior: ConnectBehavior = fault.kind == .refusedConnects ? .refused : .ignored
      network.setConnects(behavior, to: server.address)
      later(fault.lasting) { network.setConnects(nil, to: server.address) }
    case .slowNames:
      stage.tellName(of: server, delay: .milliseconds(Int(fault.detail % 15_000)))
      later(fault.lasting) { [stage] in stage.tellName(of: server) }
    default:
      network.failLookUps(of: server.name, with: "the name server fails", code: -3)
      later(fault.lasting) { [stage] in stage.tellName(of: server) }
    }
    return true
  }

  private func blockPorts(_ fault: ScenarioPlan.Fault) -> Bool {
    let network = simulation.network
    let ports = plan.servers.map(\.address)
    for port in ports { network.setConnects(fault.detail & 1 == 0 ? .ignored : .refused, to: port) }
    for link in network.links where link.destination.map(ports.contains) == true {
      link.silence(.both, for: fault.lasting)
      if fault.detail & 2 == 0 { link.lose() }
    }
    later(fault.lasting) { for port in ports { network.setConnects(nil, to: port) } }
    return true
  }

  // MARK: Processes

  private func disturbMachine(_ fault: ScenarioPlan.Fault) -> Bool {
    let machines =
      stage.clients.map { simulation.machine(of: $0.loop) }
      + stage.processes.withLock { $0.map(\.machine) }
    let machine = machines[Int(fault.victim % UInt64(machines.count))]
    if fault.kind == .pause {
      machine.pause(for: fault.lasting)
    } else {
      machine.moveClock(by: fault.lasting)
    }
    return true
  }

  private func moveClient(_ fault: ScenarioPlan.Fault) -> Bool {
    let client = stage.clients[Int(fault.victim % UInt64(stage.clients.count))]
    guard fault.kind == .suspension else {
      client.pathChanged()
      return true
    }
    let bound = Duration.milliseconds(Int(fault.detail % 2_000))
    simulation.spawn { await client.suspend(within: bound) }
    later(fault.lasting) { client.resume() }
    return true
  }

  private func disturbServer(_ fault: ScenarioPlan.Fault) -> Bool {
    let index = Int(fault.victim % UInt64(plan.servers.count))
    let process = stage.processes.withLock { $0[index] }
    guard let server = stage.server(index), process.isRunning else { return false }
    switch fault.kind {
    case .crash, .machineCrash:
      crash(
        index, server, fault.kind == .crash ? .process : .machine, startingAfter: fault.lasting)
    case .restart:
      let gateway = stage.state.withLock { state in
        state.servers[index] = nil
        return state.gateways[index]
      }
      let bound = Duration.milliseconds(Int(fault.detail % 8_000))
      simulation.spawn { [self] in
        await server.shutDown(within: bound)
        await stage.close(gateway, of: index)
        startAgain(process, after: fault.lasting / 4)
      }
    case .flapping:
      stage.state.withLock { _ = $0.isFlapping.insert(index) }
      closeConnections(of: server)
      later(fault.lasting) { [stage] in stage.state.withLock { _ = $0.isFlapping.remove(index) } }
    case .endedPrincipal:
      ScenarioLogins(stage: stage).endPrincipal(fault, at: server)
    default:
      closeConnections(of: server)
    }
    return true
  }

  /// Lets a server crash, and starts it again after a time.
  func crash(
    _ index: Int, _ server: LongLinkServer, _ kind: SimulatedProcess.Crash,
    startingAfter time: Duration
  ) {
    let process = stage.processes.withLock { $0[index] }
    stage.oracle.lost(server)
    stage.state.withLock { ($0.servers[index], $0.gateways[index]) = (nil, nil) }
    process.crash(kind)
    startAgain(process, after: time)
  }

  private func closeConnections(of server: LongLinkServer) {
    simulation.spawn { for peer in await server.peers() { peer.close() } }
  }

  private func startAgain(_ process: SimulatedProcess, after time: Duration) {
    simulation.spawn { [self] in
      try await simulation.sleep(for: min(time, max(.zero, plan.healing - stage.elapsed)))
      // The store of a server may not answer at first.
      while stage.elapsed < plan.healing, (try? await process.start()) == nil {
        try await simulation.sleep(for: .seconds(1))
      }
    }
  }

  /// Ends a fault after a time, unless the world heals first.
  func later(_ time: Duration, _ end: @escaping @Sendable () -> Void) {
    guard stage.elapsed + time < plan.healing else { return }
    simulation.spawn { [simulation] in
      try await simulation.sleep(for: time)
      end()
    }
  }
}
