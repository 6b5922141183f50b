// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkDriver
@testable import LongLinkOnce
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Servers that share a store whose name changes, and what clients make of it.
@Suite struct OnceNameTests {
  private static let wrong = [UInt8](repeating: 5, count: 16)

  /// Runs a body with a server of a store that is waited for.
  private func run(
    _ body: @escaping @Sendable (OnceStage, ScriptedStore, Simulation) async throws -> Void
  ) async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store) { $0.limits.maxInFlight = 5_000 }
      try await body(stage, store, simulation)
      await stage.server.shutDown(within: .zero)
    }
  }

  /// Sends requests of a space that no name of the store has.
  private func sendUnknown(_ caller: OnceCaller, _ serials: Range<UInt32>) {
    for serial in serials {
      caller.client.send(
        .request(
          OnceStage.quick, serial: serial, [], metadata: caller.metadata([6], space: Self.wrong)))
    }
  }

  @Test func `a flood of unknown spaces costs the store ten questions in a second`() async throws {
    try await run { stage, store, simulation in
      let caller = try await stage.client()
      let (start, asked) = (simulation.now, store.script.withLock { $0.statuses })
      for round in 0..<100 as Range<UInt32> {
        sendUnknown(caller, (100 + 50 * round)..<(150 + 50 * round))
        try await simulation.sleep(for: .milliseconds(10))
      }
      for serial in 100..<5_100 as Range<UInt32> {
        #expect(try await caller.answer(to: serial) == .refused(.preconditionFailed))
      }
      let most = 2 + Int((simulation.now - start) / 100_000_000)
      #expect((5...most).contains(store.script.withLock { $0.statuses } - asked))
      #expect(stage.runs([6]) == 0)
    }
  }

  @Test func `those who wait for the name are bounded in number, and share a timer`() async throws {
    try await run { stage, store, simulation in
      let callers = [try await stage.client(1), try await stage.client(2)]
      store.script.withLock { $0.statusDelay = .seconds(2) }
      let (asked, timers) = (
        store.script.withLock { $0.statuses }, simulation.mainLoop.timerHandlers.count
      )
      // The others come when the store has been asked for the first one.
      sendUnknown(callers[0], 100..<101)
      try await simulation.sleep(for: .milliseconds(1))
      for (caller, first) in zip(callers, [101, 100] as [UInt32]) {
        sendUnknown(caller, first..<3_100)
      }
      // Those for whom there is no room are refused at once.
      let most = UInt32(NameQuestion<Run>.mostWaiting)
      for serial in most - 3_000 + 100..<3_100 {
        #expect(try await callers[1].answer(to: serial) == .refused(.draining))
      }
      #expect(simulation.mainLoop.timerHandlers.count < timers + 10)
      for (caller, end) in zip(callers, [3_100, most - 3_000 + 100]) {
        for serial in 100..<end {
          #expect(try await caller.answer(to: serial) == .refused(.preconditionFailed))
        }
      }
      #expect(store.script.withLock { $0.statuses } - asked == 2)
      let counters = await stage.server.counters()
      #expect(counters.onceRequests["terms"] == UInt64(most))
      #expect(counters.onceRequests["store"] == UInt64(6_000 - most))
    }
  }

  @Test func `those who wait for the name are answered as soon as it is known`() async throws {
    try await run { stage, store, simulation in
      let caller = try await stage.client()
      store.script.withLock {
        $0.name = [9, 9]
        $0.statusDelay = .milliseconds(500)
      }
      let response = try await caller.client.request(
        OnceStage.quick, metadata: caller.metadata([8]))
      let space = response.metadata?.keySpace ?? []
      #expect(space != caller.welcome.keySpace)
      let start = simulation.now
      #expect(try await caller.ask(OnceStage.quick, [8], space: Self.wrong).isRefused)
      let passed = Int64((simulation.now - start) / 1_000_000)
      #expect((500..<505).contains(passed), "\(passed) ms")
    }
  }

  @Test(arguments: [0, 500])
  func `a server that stops lets nobody wait for the name`(delay: Int) async throws {
    try await run { stage, store, simulation in
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [6], space: Self.wrong).isRefused)
      store.script.withLock { $0.statusDelay = .milliseconds(delay) }
      let asked = store.script.withLock { $0.statuses }
      sendUnknown(caller, 100..<110)
      try await simulation.sleep(for: .milliseconds(20))
      await stage.server.shutDown(within: .zero)
      let timers = simulation.mainLoop.timerHandlers.map { "\(type(of: $0))" }
      #expect(!timers.contains("QuestionTimer"), "\(timers)")
      try await simulation.sleep(for: .seconds(1))
      #expect(store.script.withLock { $0.statuses } == asked)
    }
  }

  @Test func `a question answers those that came before it, and the next one the others`() {
    func at(_ milliseconds: Int64) -> LinkInstant {
      LinkInstant(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }
    var question = NameQuestion<String>()
    func add(_ name: String, _ arrival: Int64, now: Int64) -> NameQuestion<String>.Step {
      question.add(name, arrivedAt: at(arrival), at: at(now))
    }
    func begin(_ now: Int64) -> Bool { question.begin(at: at(now)) }
    #expect(add("a", 0, now: 0) == .begins)
    // It waits before the question has begun, which is on another loop.
    #expect(add("b", 1, now: 1) == .waits)
    #expect(begin(2))
    // It has arrived before the question, and need not wait for the next one.
    #expect(add("c", 1, now: 3) == .waits)
    #expect(add("d", 4, now: 4) == .waits)
    #expect(!begin(5))
    var end = question.end(.known)
    #expect(end.asking == ["a", "b", "c"] && end.next == at(102))
    #expect(add("e", 2, now: 6) == .hears(.known))
    #expect(add("f", 7, now: 7) == .waits)
    #expect(begin(102))
    end = question.end(.failed)
    #expect(end.asking == ["d", "f"] && end.next == nil)
    #expect(add("g", 110, now: 110) == .waitsUntil(at(202)))
    #expect(add("h", 300, now: 300) == .waits)
    #expect(begin(301))
    let waiting = question.stop().waiting
    #expect(waiting == ["g", "h"])
  }

  @Test func `an old name that comes late does not replace a newer one`() async throws {
    try await OnceStage.run { simulation, memory in
      let now = simulation.now
      func status(_ name: UInt8) -> OnceStoreStatus { OnceStoreStatus(name: [name], time: 1_000) }
      let table = OnceTable(
        OnceConfiguration(store: memory), status(1), at: now, counting: 1,
        log: PeerLog(LogLines().logger))
      table.learn(status(3), askedAt: now + 50, at: now + 100)
      table.learn(status(2), askedAt: now + 40, at: now + 110)
      #expect(table.status(at: now).name == [3])
      table.learn(status(4), askedAt: now + 60, at: now + 120)
      #expect(table.status(at: now).name == [4])
    }
  }

  @Test func `an unknown name is not asked for while other calls of the store fail`() async throws {
    try await run { stage, store, simulation in
      let caller = try await stage.client()
      store.script.withLock {
        $0.failingBegins = .max
        $0.failingAbandons = .max
      }
      for number in 0..<OnceTable.mostLateCalls + 1 {
        let key = [UInt8(number >> 8), UInt8(number & 255)]
        #expect(try await caller.ask(OnceStage.quick, key) == .refused(.draining))
      }
      let asked = store.script.withLock { $0.statuses }
      #expect(
        try await caller.ask(OnceStage.quick, [6], space: Self.wrong) == .refused(.draining))
      #expect(store.script.withLock { $0.statuses } == asked)
      store.script.withLock {
        $0.failingBegins = 0
        $0.failingAbandons = 0
      }
      try await simulation.sleep(for: .seconds(20))
      #expect(
        try await caller.ask(OnceStage.quick, [6], space: Self.wrong)
          == .refused(.preconditionFailed))
    }
  }

  @Test func `a request of a new name waits for room, and is not told to settle`() async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store) { $0.once?.maxDetachedHandlers = 4 }
      let first = try await stage.client()
      first.send(OnceStage.waits, [1], serial: 50)
      try await stage.awaitWaiting(1)
      first.client.reset()
      try await simulation.sleep(for: .seconds(1))
      store.script.withLock { $0.name = [9, 9] }
      let next = try await stage.client()
      #expect(
        try await next.ask(OnceStage.quick, [6], space: Self.wrong) == .refused(.overloaded))
      stage.letGo()
      try await simulation.sleep(for: .seconds(1))
      #expect(
        try await next.ask(OnceStage.quick, [6], space: Self.wrong)
          == .refused(.preconditionFailed))
      await stage.server.shutDown(within: .zero)
    }
  }

  /// Two servers that share a store, and a client of each; both are the same client to the store.
  private func runTwo(
    _ body:
      @escaping @Sendable (
        _ stages: [OnceStage], _ clients: [LongLinkClient], _ rename: () -> Void
      ) async throws -> Void
  ) async throws {
    try await OnceStage.run { simulation, memory in
      let stores = (0..<2).map { _ in ScriptedStore(memory, clock: simulation.clock) }
      var (stages, clients): ([OnceStage], [LongLinkClient]) = ([], [])
      for store in stores {
        let stage = try await OnceStage(simulation, store: store)
        var configuration = ClientConfiguration(servers: [stage.server.endpoint])
        configuration.identity.client = try ClientIdentity(bytes: [UInt8](repeating: 7, count: 16))
        let client = try LongLinkClient(configuration, on: simulation.mainLoop)
        try await client.connect()
        stages.append(stage)
        clients.append(client)
      }
      try await body(stages, clients) {
        for store in stores { store.script.withLock { $0.name = [9, 9] } }
      }
      for client in clients { await client.close() }
      for stage in stages { await stage.server.shutDown(within: .zero) }
    }
  }

  @Test func `a ticket of a new name runs at a server that has not heard of it`() async throws {
    try await runTwo { stages, clients, rename in
      let once = RequestOptions(idempotencyKey: [7], retry: .once)
      rename()
      // The refusal says the new name, and the request runs over the same connection.
      #expect(try await clients[0].request(OnceStage.quick, [1], options: once) == [1])
      let ticket = try await clients[0].ticket(key: [8])
      let kept = try #require(ticket.bytes)
      let options = RequestOptions(ticket: ticket)
      #expect(try await clients[0].request(OnceStage.quick, [1], options: options) == [1])

      let again = try #require(OnceTicket(bytes: kept))
      let repeats = RequestOptions(ticket: again)
      #expect(try await clients[1].request(OnceStage.quick, [1], options: repeats) == [1])
      #expect(again.isReplayed)
      // The client takes over the new name when it is refused.
      #expect(try await clients[1].request(OnceStage.quick, [1], options: once) == [1])
      #expect(stages[0].runs([7]) == 1 && stages[1].runs([7]) == 0)
      #expect(stages[0].runs([8]) == 1 && stages[1].runs([8]) == 0)
      for (stage, client) in zip(stages, clients) {
        #expect(await client.counters().connects == 1)
        #expect(await stage.server.counters().connectionsAccepted == 1)
      }
    }
  }

  @Test func `a ticket of an old name does not run, and the next ticket does`() async throws {
    try await runTwo { stages, clients, rename in
      let old = try await clients[0].ticket(key: [8])
      rename()
      for client in clients {
        let options = RequestOptions(ticket: old)
        let error = await #expect(throws: LongLinkError.self) {
          try await client.request(OnceStage.quick, [1], options: options)
        }
        #expect(error?.response == .preconditionFailed && error?.delivery == .refused)
        let next = RequestOptions(ticket: try await client.ticket(key: [9]))
        #expect(try await client.request(OnceStage.quick, [1], options: next) == [1])
        #expect(await client.counters().connects == 1)
      }
      #expect(stages[0].runs([8]) + stages[1].runs([8]) == 0)
      #expect(stages[0].runs([9]) + stages[1].runs([9]) == 1)
    }
  }
}
