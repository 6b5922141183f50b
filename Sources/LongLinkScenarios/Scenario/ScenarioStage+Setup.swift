// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Logging
internal import Synchronization

// The processes of a scenario.
extension ScenarioStage {
  func makeProcesses() {
    for (index, server) in plan.servers.enumerated() {
      tellName(of: server)
      let process = simulation.process(named: server.name) { [self] run in
        try await start(server, index, run)
      }
      processes.withLock { $0.append(process) }
      state.withLock {
        $0.servers.append(nil)
        $0.gateways.append(nil)
      }
      if scenario.profile.hasShortLinks { oracle.leaveOut(linksTo: server.gateway) }
    }
  }

  /// Lets a server's name resolve to its addresses, after `delay`.
  func tellName(of server: ScenarioPlan.Server, delay: Duration = .milliseconds(1)) {
    let addresses = [server.deadAddress, server.address].compactMap { $0 }
    simulation.network.host(server.name, addresses: addresses, delay: delay)
    if let dead = server.deadAddress { simulation.network.setConnects(.ignored, to: dead) }
  }

  /// The observers of a client's or server's records, in every other scenario; nil in the others.
  private var observers: Observers? {
    guard scenario.seed % 2 == 0 else { return nil }
    return Observers([RecordWatch(hasTickets: plan.once != nil)])
  }

  private func start(
    _ plan: ScenarioPlan.Server, _ index: Int, _ run: SimulatedProcess.Run
  ) async throws {
    var configuration = ServerConfiguration(
      listen: [.host(plan.address.host ?? "", port: plan.address.port ?? 0)])
    configuration.logger = Self.silent
    configuration.heartbeat = plan.heartbeat
    configuration.limits.maxInFlight = plan.maxInFlight
    configuration.drain.spread = plan.drainSpread
    configuration.limits.streamWindows = self.plan.serverWindows[index]
    configuration.name = plan.name
    if isRecording { configuration.recorderBytes = Self.recorderBytes }
    configuration.observers = observers
    configuration.security = try ScenarioCertificates(stage: self).security(ofServer: index)
    configuration.identity.authenticate = { [self, loop = run.loop] request in
      try await ScenarioLogins(stage: self).authenticate(request, on: loop)
    }
    let once = ScenarioOnce(self)
    let memory = once?.configure(&configuration, of: index, run)
    let server = try LongLinkServer(configuration, on: [run.loop])
    oracle.watch(server, on: [run.loop], named: plan.name)
    let sink = HandlerSink(stage: self, isAlive: { run.isAlive })
    sink.handleAll { type, placement in
      switch placement {
      case .inline(let handler): server.route(type, handler)
      case .task(let handler): server.route(type, handler)
      }
    }
    StreamSink(stage: self, loop: simulation.mainLoop, isAlive: { run.isAlive }).handleAll {
      type, shape, placement, handler in
      server.routeStream(type, shape, on: placement, handler)
    }
    if once != nil {
      OnceSink(stage: self, server: index, run: run, memory: memory).handleAll(of: server)
    }
    server.onPush(Kind.push) { push, peer in
      if run.isAlive { self.took(push, from: "peer \(peer.connectionID) of \(plan.name)") }
    }
    let name = "\(plan.name) of run \(run.number)"
    peers.watch(server, named: name, isAlive: { run.isAlive })
    server.onConnectionOpened { peer in
      if run.isAlive { self.peers.opened(peer, of: name) }
      if self.state.withLock({ $0.isFlapping.contains(index) }) { peer.close() }
    }
    run.atEnd { [self] in
      state.withLock { state in
        if state.servers[index] === server { state.servers[index] = nil }
      }
      await server.shutDown(within: .zero)
    }
    try await server.start()
    if scenario.profile.hasShortLinks {
      let gateway = try await SimulatedGateway.start(at: plan.gateway, for: server, on: run.loop)
      state.withLock { $0.gateways[index] = gateway }
      run.atEnd { [self] in await close(gateway, of: index) }
    }
    state.withLock { $0.servers[index] = server }
  }

  /// Closes the gateway of a server, if it has one. The server may have another one by now.
  func close(_ gateway: SimulatedGateway?, of index: Int) async {
    guard let gateway else { return }
    state.withLock { state in
      if state.gateways[index] === gateway { state.gateways[index] = nil }
    }
    await gateway.close()
  }

  func makeClients() throws {
    for index in plan.clients.indices {
      let client = try makeClient(index, named: "client-\(index)")
      state.withLock { $0.clients.append(client) }
    }
  }

  /// Makes a client as the plan says. Several can be made of one plan, which have one identity.
  func makeClient(_ index: Int, named name: String) throws -> LongLinkClient {
    let client = plan.clients[index]
    let loop = simulation.eventLoop(named: name)
    var configuration = ClientConfiguration(
      servers: client.servers.map { .host(plan.servers[$0].name, port: 7_000) })
    configuration.logger = Self.silent
    configuration.heartbeat = client.heartbeat
    configuration.timeouts.connect = client.connectTimeout
    configuration.reconnect = client.reconnect
    configuration.limits.maxWaiting = client.maxWaiting
    configuration.waitsForConnection = client.waits
    configuration.limits.streamWindows = plan.clientWindows[index]
    configuration.name = name
    if isRecording { configuration.recorderBytes = Self.recorderBytes }
    configuration.observers = observers
    configuration.security = try security.map { oracle.watching(try $0.client()) }
    configuration.identity.credential = { [self] in
      try await ScenarioLogins(stage: self).credential(of: index, on: loop)
    }
    configuration.identity.sendsCredentialUnencrypted = true
    // Each process of an application with tickets has the identity that it keeps with them.
    if plan.once != nil {
      configuration.identity.client = try ClientIdentity(
        bytes: [UInt8](repeating: UInt8(index + 1), count: 16))
    }
    if client.hasShortLinks {
      configuration.ways =
        (client.hasLongLink ? [.longLink] : [])
        + client.servers.map { .simulatedShort(to: plan.servers[$0].gateway) }
    }
    let made = try LongLinkClient(configuration, on: loop)
    oracle.watch(made, named: name)
    HandlerSink(stage: self, isAlive: { true }).handleAll { type, placement in
      switch placement {
      case .inline(let handler): made.onRequest(type, handler)
      case .task(let handler): made.onRequest(type, handler)
      }
    }
    StreamSink(stage: self, loop: simulation.mainLoop, isAlive: { true }).handleAll {
      type, shape, placement, handler in
      made.onStreamRequest(type, shape, on: placement, handler)
    }
    made.onPush(Kind.push) { push in self.took(push, from: nil) }
    made.onPush(Kind.broadcast) { push in
      guard let body = ScenarioBody(push.body) else {
        self.pushes.arrivedDamaged("a broadcast of \(push.body.count) bytes is damaged")
        return
      }
      self.peers.received(body.key, at: index)
    }
    return made
  }

  /// Records a push. Without `link`, its body identifies the link.
  private func took(_ push: Push, from link: String?) {
    guard let body = ScenarioBody(push.body) else {
      pushes.arrivedDamaged("a push of \(push.body.count) bytes is damaged")
      return
    }
    pushes.arrived(
      body.key, size: push.body.count,
      on: link ?? "peer \(body.answerSize) of server \(body.delay)")
  }

  /// The size of the recorders of a run that is recorded, in bytes: enough for all of it.
  private static let recorderBytes = 67_108_864

  private static let silent: Logger = {
    var logger = Logger(label: "longlink.scenario") { _ in SwiftLogNoOpLogHandler() }
    logger.logLevel = .critical
    return logger
  }()
}
