// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkOnce
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Logging
internal import Synchronization

/// One run of a scenario: the world, its processes, and the results so far.
final class ScenarioStage: Sendable {
  /// The message types.
  enum Kind {
    static let inline: MessageType = 1
    static let delayed: MessageType = 2
    static let rejecting: MessageType = 3
    static let hanging: MessageType = 4
    static let missing: MessageType = 99
    static let onceInline: MessageType = 41
    static let onceDelayed: MessageType = 42
    static let onceRejecting: MessageType = 43
    static let onceNotFinal: MessageType = 44
    static let onceRunsAgain: MessageType = 45
    static let onceCompleting: MessageType = 46
    static let onceHanging: MessageType = 47
    static let onceLarge: MessageType = 48
    /// The code after which a request of `onceNotFinal` runs again.
    static let notFinal: ResponseCode = 1_001
    static let push: MessageType = 100
    static let broadcast: MessageType = 101
    /// The type of a request with an empty body: it contains the request's key.
    static func empty(_ key: UInt64) -> MessageType {
      MessageType(integerLiteral: 0x10_0000 + UInt32(key))
    }
  }

  struct State {
    var clients: [LongLinkClient] = []
    /// The running server of each process; nil while the process does not run.
    var servers: [LongLinkServer?] = []
    /// The gateway of each server, if clients have short links.
    var gateways: [SimulatedGateway?] = []
    /// The number of running handlers.
    var running = 0
    var isFlapping: Set<Int> = []
    var faults: [FaultKind: Int] = [:]
    /// For each server: how often its certificates were replaced, and the security that replaces
    /// them.
    var editions: [Int: Int] = [:]
    var replaceable: [Int: ReplaceableSecurity] = [:]
    /// The number of credentials that each client has asked for.
    var credentials: [Int: Int] = [:]
    /// The stores that outlive processes, and the number of processes that have used them.
    var stores: [LastingStore] = []
    var sessions = 0
    /// For each server: the store in the memory of its process.
    var memories: [Int: MemoryOnceStore] = [:]
    /// The bytes of tickets that applications keep, by the requests' numbers.
    var tickets: [UInt64: [UInt8]] = [:]
    /// For each client: which of its users has logged in.
    var users: [Int: Int] = [:]
    /// What the loops have recorded, at the end of the run.
    var recordings: [RecorderSnapshot] = []
    /// Whether the faults have stopped.
    var isHealed = false
  }

  let scenario: Scenario
  let plan: ScenarioPlan
  let simulation: Simulation
  let oracle: Oracle
  let pushes = PushLedger()
  let peers = ClientLedger()
  let state = Mutex(State())
  let processes = Mutex<[SimulatedProcess]>([])
  /// The security of all connections; nil in a scenario without security.
  let security: ScenarioSecurity?
  let isRecording: Bool

  init(_ scenario: Scenario, recording: Bool, security: ScenarioSecurity? = nil) {
    self.scenario = scenario
    self.security = security
    isRecording = recording
    plan = ScenarioPlan(
      seed: scenario.seed, profile: scenario.profile, isSecured: security != nil)
    simulation = Simulation(
      seed: scenario.seed, configuration: Simulation.Configuration(traceCapacity: 64))
    if security != nil { simulation.networkState { $0.hashesBytes = false } }
    oracle = Oracle(simulation, recorder: recording ? TimelineRecorder() : nil)
  }

  var clients: [LongLinkClient] { state.withLock { $0.clients } }

  func server(_ index: Int) -> LongLinkServer? { state.withLock { $0.servers[index] } }

  /// Releases clients, servers and processes, whose handlers hold the stage.
  func clear() {
    state.withLock { state in
      (state.clients, state.servers, state.replaceable) = ([], [], [:])
      (state.stores, state.memories) = ([], [:])
    }
    processes.withLock { $0 = [] }
  }

  /// The result so far.
  var report: ScenarioReport {
    ScenarioReport(
      scenario: scenario,
      isSecured: security != nil,
      findings: oracle.findings,
      traceHash: simulation.traceHash,
      traceCount: simulation.traceCount,
      virtualTime: .nanoseconds(simulation.now.nanoseconds),
      requests: oracle.requests.askedCount,
      succeeded: oracle.requests.succeededCount,
      streams: oracle.items.openedCount,
      completedStreams: oracle.items.completedCount,
      items: oracle.items.readCount,
      renewals: oracle.box.value.withLock { $0.renewals },
      once: oracle.once.total,
      faults: state.withLock { $0.faults },
      timeline: isRecording ? oracle.box.value.withLock { $0.recorder?.timeline } : nil,
      recordings: state.withLock { $0.recordings })
  }
}

// MARK: - The course of the run

extension ScenarioStage {
  /// Plays the whole plan, and lets the oracle check it.
  func play() async throws {
    simulation.network.conditions = plan.conditions
    ScenarioOnce(self)?.makeStores()
    makeProcesses()
    for process in processes.withLock({ $0 }) { try await process.start() }
    try makeClients()
    let faults = simulation.spawn { try await ScenarioFaults(stage: self).injectAll() }
    let certificates = simulation.spawn {
      try await ScenarioCertificates(stage: self).replaceAll()
    }
    let samples = simulation.spawn { try await self.sample() }
    let streams = simulation.spawn { try await ScenarioStreams(stage: self).open() }
    let once = simulation.spawn { try await ScenarioOnce(self)?.ask() }
    let work = simulation.spawn { try await self.ask() }
    try await work.value
    try await streams.value
    try await once.value
    try await simulation.sleep(for: max(.zero, plan.healing - elapsed))
    faults.cancel()
    certificates.cancel()
    _ = await faults.result
    _ = await certificates.result
    await heal()
    try await recover()
    try await ScenarioOnce(self)?.repeatLate()
    samples.cancel()
    _ = await samples.result
    try await close()
    _ = await oracle.finish()
    if isRecording { await keepRecordings() }
    // The closures for a process's end hold its objects; a crash releases them.
    for process in processes.withLock({ $0 }) { process.crash() }
  }

  /// Keeps what the loops of clients and of running servers have recorded.
  private func keepRecordings() async {
    let servers = plan.servers.indices.flatMap { server($0)?.watchedLoops ?? [] }
    for loop in clients.map(\.loop) + servers.map(\.loop) {
      guard let recorded = await loop.run({ loop.recorded }) else { continue }
      state.withLock { $0.recordings.append(recorded) }
    }
  }

  /// The virtual time since the beginning.
  var elapsed: Duration { .nanoseconds(simulation.now.nanoseconds) }

  private func sample() async throws {
    while true {
      try await simulation.sleep(for: .seconds(7))
      await sampleOnce()
      ScenarioLogins(stage: self).restartStoppedClients()
    }
  }

  func sampleOnce() async {
    await oracle.sample()
    await peers.checkLists(at: simulation.now)
  }

  /// Ends all faults, and restarts processes that do not run.
  private func heal() async {
    oracle.note("the faults stop")
    simulation.heal()
    ScenarioOnce(self)?.heal()
    simulation.network.conditions = .normal
    for link in simulation.network.links { link.setConditions(.normal) }
    for server in plan.servers { tellName(of: server) }
    state.withLock { ($0.isFlapping, $0.isHealed) = ([], true) }
    for client in clients { client.resume() }
    for (index, process) in processes.withLock({ $0 }).enumerated() where server(index) == nil {
      _ = try? await process.start()
    }
  }

  /// Waits until every client is connected, and sends a request of each, which has to succeed.
  private func recover() async throws {
    var hint = plan.servers.map(\.drainSpread).max() ?? .zero
    // Credentials from before the healing may still be asked for and judged.
    if scenario.profile.refusesCredentials { hint += .seconds(15) }
    for (index, client) in clients.enumerated() {
      let hasLongLink = plan.clients[index].hasLongLink
      let limit = Oracle.recoveryTime(of: client.configuration, hint: hint)
      if hasLongLink {
        await client.wantConnection()
        await oracle.expectRecovery(of: client, within: limit)
      }
      var key = UInt64(900_000 + index)
      // Hanging requests may fill the server, and waiting ones the client, until their deadlines.
      let end = elapsed + limit + Self.longestDeadline
      while let error = await requestFinally(client, key, deadline: end - elapsed) {
        guard error.code == .overloaded || error.response == .overloaded, elapsed < end else {
          oracle.found(.recovers, "a request of client-\(index) failed after the faults: \(error)")
          break
        }
        try await simulation.sleep(for: .milliseconds(500))
        key += 1_000
      }
      guard hasLongLink else { continue }
      try await ScenarioStreams(stage: self).openLast(
        index, client, within: limit + Self.longestDeadline * 2)
    }
    try await ScenarioStreams(stage: self).awaitAll()
  }

  /// The longest time that any request of a plan may take.
  private static let longestDeadline = Duration.seconds(60)

  /// Sends a client's request ahead of all waiting ones; returns its error.
  private func requestFinally(
    _ client: LongLinkClient, _ key: UInt64, deadline: Duration
  ) async -> LongLinkError? {
    oracle.requests.asked(key)
    let body = ScenarioBody(key: key, answerSize: 100)
    let result = await Self.result { () async throws(LongLinkError) in
      try await client.request(
        Kind.inline, body.bytes(count: 100),
        options: RequestOptions(timeout: deadline, waitsForConnection: true, priority: 9))
    }
    oracle.requests.ended(key, result, isOwnAnswer: isAnswer(result, to: body))
    if case .failure(let error) = result { return error }
    return nil
  }

  /// Waits for all requests to end, closes everything, and waits for the rest to end.
  private func close() async throws {
    let end = simulation.now.advanced(by: .seconds(90))
    oracle.once.close()
    while oracle.requests.endedCount < oracle.requests.askedCount, simulation.now < end {
      try await simulation.sleep(for: .milliseconds(500))
    }
    for client in clients { await client.close(within: .seconds(1)) }
    for index in plan.servers.indices {
      await close(state.withLock { $0.gateways[index] }, of: index)
      await server(index)?.shutDown(within: .seconds(1))
    }
    // Time for lost messages to be noticed, and for cancelled handlers to end.
    try await simulation.sleep(for: .seconds(5))
    let running = state.withLock { $0.running }
    if running > 0 { oracle.found(.nothingLeft, "\(running) handlers have not ended") }
    for (promise, detail) in pushes.broken + peers.broken { oracle.found(promise, detail) }
  }

  /// The outcome of a request.
  static func result(
    _ body: () async throws(LongLinkError) -> [UInt8]
  ) async -> Result<[UInt8], LongLinkError> {
    do throws(LongLinkError) {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }
}

extension LongLinkClient {
  /// Starts connecting, without waiting for success.
  fileprivate func wantConnection() async {
    if case .connected = state { return }
    // It throws when the first round fails, but keeps trying.
    _ = try? await connect()
  }
}
