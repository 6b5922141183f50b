// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnce
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// The requests of a scenario that run once: the applications that make and repeat them, and the
/// stores of the servers.
struct ScenarioOnce: Sendable {
  let stage: ScenarioStage
  let plan: OncePlan

  init?(_ stage: ScenarioStage) {
    guard let plan = stage.plan.once else { return nil }
    self.stage = stage
    self.plan = plan
  }

  private var ledger: OnceLedger { stage.oracle.once }
  private var simulation: Simulation { stage.simulation }

  // MARK: Servers

  /// Makes the stores that outlive processes, one for all servers or one for each.
  func makeStores() {
    let count = plan.keeping == .memory ? 0 : plan.keeping == .own ? stage.plan.servers.count : 1
    let stores = (0..<count).map { index in
      LastingStore(
        "store-\(index)", plan, SeededGenerator(seed: simulation.random()), in: simulation)
    }
    stage.state.withLock { $0.stores = stores }
  }

  /// Sets up a server of a process that starts.
  func configure(
    _ configuration: inout ServerConfiguration, of index: Int, _ run: SimulatedProcess.Run
  ) -> MemoryOnceStore? {
    var memory: MemoryOnceStore?
    let store: any OnceStore
    if let lasting = lasting(index) {
      let number = stage.state.withLock { state in
        state.sessions += 1
        return state.sessions
      }
      let session = StoreSession(
        store: lasting, run: run, server: index, number: number, ledger: ledger,
        simulation: simulation, timeout: plan.storeTimeout)
      session.keepLease()
      store = session
    } else {
      let made = MemoryOnceStore(
        maxRecords: plan.maxRecords, maxBytes: 64 << 20,
        name: Array("memory-\(index)-\(run.number)".utf8)
      ) { [simulation] in simulation.now.nanoseconds / 1_000_000 + 1 }
      (memory, store) = (made, made)
    }
    stage.state.withLock { $0.memories[index] = memory }
    configuration.once = OnceConfiguration(
      store: store, retention: plan.retention, storeTimeout: plan.storeTimeout)
    return memory
  }

  private func lasting(_ server: Int) -> LastingStore? {
    stage.state.withLock { state in
      state.stores.isEmpty ? nil : state.stores[server % state.stores.count]
    }
  }

  /// Where the requests of a client are kept now; nil if different servers keep different records.
  private func view(of client: Int) -> OnceLedger.View? {
    let (stores, memory, user) = stage.state.withLock { state in
      (state.stores, state.memories[0], state.users[client, default: 0])
    }
    guard plan.keeping == .shared || stage.plan.servers.count == 1 else { return nil }
    guard let status = stores.first?.status ?? memory?.statusNow else { return nil }
    let principal =
      plan.anonymous.contains(client) ? nil : ScenarioLogins.principal(client, user).name
    return OnceLedger.View(store: status.name, time: status.time, principal: principal)
  }

  // MARK: Applications

  /// Makes every request of the plan at its time.
  func ask() async throws {
    for store in stage.state.withLock({ $0.stores }) {
      store.setTrouble(LastingStore.usualTrouble)
    }
    for request in plan.requests {
      let rest = request.at - stage.elapsed
      if rest > .zero { try await simulation.sleep(for: rest) }
      simulation.spawn { await make(request) }
    }
  }

  /// Makes a request, and repeats it as an application would that wants its answer.
  private func make(_ request: OncePlan.Request) async {
    let client = stage.clients[request.client]
    var ticket: OnceTicket?
    var kept: [UInt8]?
    switch request.identification {
    case .ticket: ticket = OnceTicket(key: Self.key(request.keyNumber))
    case .keptTicket:
      ticket = try? await client.ticket(key: Self.key(request.keyNumber))
      kept = ticket?.bytes
      stage.state.withLock { $0.tickets[request.number] = kept }
      // Where answers are kept is not known yet.
      ticket = ticket ?? OnceTicket(key: Self.key(request.keyNumber))
    case .key, .nothing: break
    }
    var error = await use(request, ticket, by: client)
    for pause in request.repeats where error != nil || request.isEager {
      guard stage.elapsed + pause < stage.plan.healing else { break }
      guard (try? await simulation.sleep(for: pause)) != nil else { break }
      if let kept, request.isEager { ticket = OnceTicket(bytes: kept) }
      error = await use(request, ticket, by: client)
    }
  }

  static func key(_ number: UInt64) -> [UInt8] { ScenarioBody(key: number).bytes(count: 0) }

  /// Makes a request once; returns the error, unless it was answered for good.
  @discardableResult
  func use(
    _ request: OncePlan.Request, _ ticket: OnceTicket?, by client: LongLinkClient,
    isShared: Bool = false
  ) async -> LongLinkError? {
    let use = ledger.asked(request, isShared: isShared)
    let before = view(of: request.client)
    let asked = Asked(request)
    let options = RequestOptions(
      timeout: request.deadline,
      idempotencyKey: request.identification == .key ? Self.key(request.keyNumber) : [],
      retry: .once, ticket: ticket)
    let task = simulation.spawn(on: client.loop) {
      await ScenarioStage.result { () async throws(LongLinkError) in
        try await client.request(asked.type, asked.bytes, options: options)
      }
    }
    if let time = request.cancelAfter {
      simulation.spawn {
        try await simulation.sleep(for: time)
        task.cancel()
      }
    }
    guard let result = try? await task.value else { return nil }
    ledger.ended(
      request, use: use, result, isReplayed: ticket?.isReplayed == true, from: before,
      to: view(of: request.client))
    guard case .failure(let error) = result else { return nil }
    let isFinal = error.delivery == .answered && error.response != ScenarioStage.Kind.notFinal
    return isFinal ? nil : error
  }

  /// Lets a second process of a client's application repeat what the first one has begun, while
  /// the first one's connection may still be there.
  func takeOver(_ client: Int) async throws {
    let second = try stage.makeClient(client, named: "client-\(client)-again")
    let tickets = stage.state.withLock { $0.tickets }
    let open = plan.requests.filter {
      $0.client == client && $0.at <= stage.elapsed && tickets[$0.number] != nil
    }
    await withTaskGroup(of: Void.self) { group in
      for request in open.suffix(6) {
        guard let bytes = tickets[request.number] else { continue }
        group.addTask(executorPreference: simulation.mainLoop) {
          await use(request, OnceTicket(bytes: bytes), by: second, isShared: true)
        }
      }
    }
    await second.close(within: .seconds(1))
  }

  // MARK: After the faults

  /// Ends the faults of stores, and those that wait for a request.
  func heal() {
    ledger.cancelCrashes()
    for store in stage.state.withLock({ $0.stores }) {
      store.setTrouble(0)
      store.disturbClock(by: .zero, rate: 100)
    }
  }

  /// Waits until all records are over, and lets each client make a request. Then repeats requests
  /// that had been answered: none of these is remembered, and none runs again.
  func repeatLate() async throws {
    let end = simulation.now.advanced(by: .seconds(120))
    while ledger.openCount > 0, simulation.now < end {
      try await simulation.sleep(for: .milliseconds(500))
    }
    let status = stage.state.withLock { $0.stores.first?.status }
    // A store's clock that was set back may stand still for a while.
    try await simulation.sleep(for: plan.retention * 2 + .seconds(60))
    if let status {
      while let now = stage.state.withLock({ $0.stores.first?.status }),
        now.time < status.time + Int64(plan.retention / .milliseconds(1)) * 2
      {
        try await simulation.sleep(for: .seconds(5))
      }
    }
    // Handlers that hang may fill a small store until their time is over.
    let limit = simulation.now.advanced(
      by: OnceConfiguration(store: MemoryOnceStore()).detachedHandlerTimeout + .seconds(60))
    for (client, made) in stage.clients.enumerated() {
      let last = OncePlan.Request(last: client)
      var failure = await use(last, OnceTicket(key: Self.key(last.number)), by: made)
      while failure?.response == .overloaded, simulation.now < limit {
        try await simulation.sleep(for: .seconds(5))
        failure = await use(last, OnceTicket(key: Self.key(last.number)), by: made)
      }
      if let error = failure {
        stage.oracle.found(
          .recovers,
          "a request of client-\(client) that runs once failed after the faults: \(error)")
      }
    }
    let tickets = stage.state.withLock { $0.tickets }
    for request in plan.requests where tickets[request.number] != nil {
      guard ledger.hasRun(request.number), let bytes = tickets[request.number] else { continue }
      var request = request
      (request.cancelAfter, request.deadline) = (nil, nil)
      let client = stage.clients[request.client]
      if await use(request, OnceTicket(bytes: bytes), by: client, isShared: true) == nil {
        stage.oracle.found(
          .answersKept, "request \(request.number) is remembered beyond twice its time")
      }
    }
  }
}

/// A request in the form that the client takes.
private struct Asked: Sendable {
  let type: MessageType
  let bytes: [UInt8]

  init(_ request: OncePlan.Request) {
    var delay = Duration.zero
    switch request.work {
    case .inline: type = ScenarioStage.Kind.onceInline
    case .delayed(let time): (type, delay) = (ScenarioStage.Kind.onceDelayed, time)
    case .rejecting: type = ScenarioStage.Kind.onceRejecting
    case .notFinal: type = ScenarioStage.Kind.onceNotFinal
    case .runsAgain(let time): (type, delay) = (ScenarioStage.Kind.onceRunsAgain, time)
    case .completing: type = ScenarioStage.Kind.onceCompleting
    case .hanging: type = ScenarioStage.Kind.onceHanging
    case .large: type = ScenarioStage.Kind.onceLarge
    }
    bytes = ScenarioBody(
      key: request.number, answerSize: UInt32(request.answerSize), delay: delay.wireMilliseconds
    ).bytes(count: request.size)
  }
}
