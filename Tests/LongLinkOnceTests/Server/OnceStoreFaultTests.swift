// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@testable import LongLinkOnce
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// What a server does when its store is slow or fails, is shared, or outlives it.
struct OnceStoreFaultTests {
  @Test func `a hash is SHA-256`() {
    let hasher = OnceHasher()
    for _ in 0..<2 {
      #expect(
        hasher.hash([])
          == OnceFingerprint(
            0xe3b0_c442_98fc_1c14, 0x9afb_f4c8_996f_b924, 0x27ae_41e4_649b_934c,
            0xa495_991b_7852_b855))
      #expect(
        hasher.hash(Array("abc".utf8))
          == OnceFingerprint(
            0xba78_16bf_8f01_cfea, 0x4141_40de_5dae_2223, 0xb003_61a3_9617_7a9c,
            0xb410_ff61_f200_15ad))
    }
  }

  private func run(
    _ body: @escaping @Sendable (OnceStage, ScriptedStore) async throws -> Void
  ) async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store)
      try await body(stage, store)
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test(arguments: [false, true])
  func `a begin that fails runs nothing, and is abandoned`(afterEffect: Bool) async throws {
    try await run { stage, store in
      store.script.withLock {
        $0.failingBegins = 1
        $0.failsAfterEffect = afterEffect
      }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == .refused(.draining))
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(stage.runs([9]) == 0 && store.memory.recordCount == 0)
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
    }
  }

  @Test func `a store that fails is asked by a bounded number of requests`() async throws {
    try await run { stage, store in
      store.script.withLock {
        $0.failingBegins = .max
        $0.failingAbandons = .max
      }
      let caller = try await stage.client()
      for number in 0..<1_300 {
        let key = [UInt8(number >> 8), UInt8(number & 255)]
        #expect(try await caller.ask(OnceStage.quick, key) == .refused(.draining))
      }
      #expect(store.script.withLock { $0.begins } <= OnceTable.mostLateCalls + 1)
      store.script.withLock {
        $0.failingBegins = 0
        $0.failingAbandons = 0
      }
      try await stage.simulation.sleep(for: .seconds(20))
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
    }
  }

  @Test func `a begin that is late runs nothing, even if it comes`() async throws {
    try await run { stage, store in
      store.script.withLock { $0.delay = .seconds(7) }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == .refused(.draining))
      store.script.withLock { $0.delay = .milliseconds(3) }
      // Perhaps before the late one comes, or while it is being abandoned.
      let answer = try await caller.ask(OnceStage.quick, [9])
      #expect(answer == Answer(.ok, [1]))
      try await stage.simulation.sleep(for: .seconds(10))
      #expect(stage.runs([9]) == 1)
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1], replayed: true))
    }
  }

  @Test(arguments: [false, true])
  func `a response whose store fails is sent, and kept later`(afterEffect: Bool) async throws {
    try await run { stage, store in
      store.script.withLock {
        $0.failingCompletes = 3
        $0.failsAfterEffect = afterEffect
      }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      // Before the store has it, the server answers for it.
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1], replayed: true))
      try await stage.simulation.sleep(for: .seconds(10))
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1], replayed: true))
      #expect(stage.runs([9]) == 1)
      #expect(store.script.withLock { $0.completes } == 4)
    }
  }

  @Test func `a run whose store fails until the expiry has an end that is not known`()
    async throws
  {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store, retention: .seconds(60))
      store.script.withLock { $0.failingCompletes = .max }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      try await simulation.sleep(for: .seconds(70))
      let limit = Duration.seconds(20)
      #expect(
        try await caller.ask(OnceStage.quick, [9], remaining: limit)
          == Answer(.gone, [], replayed: true))
      // The store gets to know it when it can, and the record goes.
      store.script.withLock { $0.failingCompletes = 0 }
      try await simulation.sleep(for: .seconds(20))
      let other = try await stage.client()
      for key in UInt8(11)...18 {
        #expect(try await other.ask(OnceStage.quick, [key]) == Answer(.ok, [1]))
      }
      #expect(memory.recordCount == 8)
      #expect(try await other.ask(OnceStage.quick, [9], remaining: limit) == Answer(.ok, [2]))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `the store answers after the time that the server counts`() async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      // The server takes the store's clock for faster than it is.
      store.script.withLock {
        $0.ahead = 50_000
        $0.failingCompletes = .max
        $0.failsAfterEffect = true
      }
      let stage = try await OnceStage(simulation, store: store, retention: .seconds(60))
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      try await simulation.sleep(for: .seconds(70))
      let limit = Duration.seconds(20)
      #expect(
        try await caller.ask(OnceStage.quick, [9], remaining: limit)
          == Answer(.ok, [1], replayed: true))
      #expect(stage.runs([9]) == 1)
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `what another server runs is waited for`() async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let (a, b) = (
        try await OnceStage(simulation, store: store),
        try await OnceStage(simulation, store: memory)
      )
      let (first, second) = (try await a.client(), try await b.client())
      #expect(first.welcome.keySpace == second.welcome.keySpace)
      first.send(OnceStage.waits, [9], serial: 50)
      try await a.awaitWaiting(1)
      for serial: UInt32 in 50..<60 { second.send(OnceStage.waits, [9], serial: serial) }
      second.send(OnceStage.waits, [9], serial: 60, remaining: .seconds(1))
      #expect(try await second.answer(to: 60) == Answer(.deadlinePassed, []))
      a.letGo()
      for serial: UInt32 in 50..<60 {
        #expect(try await second.answer(to: serial) == Answer(.ok, [1], replayed: true))
      }
      #expect(b.runs([9]) == 0)
      await a.server.shutDown(within: .zero)
      await b.server.shutDown(within: .zero)
    }
  }

  @Test func `a server that stops waits for its handlers, and cuts off the rest`() async throws {
    try await OnceStage.run { simulation, memory in
      let stage = try await OnceStage(simulation, store: memory)
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [8], serial: 50)
      try await stage.awaitWaiting(1)
      caller.client.reset()
      let began = simulation.now
      async let stopped: Void = stage.server.shutDown(within: .seconds(10))
      try await simulation.sleep(for: .seconds(3))
      stage.letGo()
      await stopped
      #expect(simulation.now - began < 4_000_000_000)
      let next = try await OnceStage(simulation, store: memory)
      let again = try await next.client()
      #expect(try await again.ask(OnceStage.waits, [8]) == Answer(.ok, [1], replayed: true))
      // This one does not come to its end in time.
      again.send(OnceStage.waits, [9], serial: 50)
      try await next.awaitWaiting(1)
      await next.server.shutDown(within: .seconds(2))
      let last = try await OnceStage(simulation, store: memory)
      let third = try await last.client()
      let answer = try await third.ask(OnceStage.waits, [9])
      // That its handler was cancelled, and threw, is not its answer.
      #expect(answer == Answer(.gone, [], replayed: true))
      #expect(last.runs([9]) == 0)
      await last.server.shutDown(within: .zero)
    }
  }

  @Test func `a run whose end nobody knows is not run again, unless its route says so`()
    async throws
  {
    try await OnceStage.run { simulation, memory in
      let stage = try await OnceStage(simulation, store: memory) { _ in
      } routes: { server in
        server.route(20) { request async throws -> [UInt8] in [UInt8(request.once?.attempt ?? 0)] }
        server.runOnce(20, unknownEnd: .runAgain)
      }
      let caller = try await stage.client()
      // Begun by a process that is gone.
      for type: MessageType in [OnceStage.quick, 20] {
        let scope = OnceStage.scope()
        let attempt = OnceAttempt(
          token: OnceToken(scope: scope, type: type, key: [9], number: 1),
          fingerprint: OnceHasher().hash([]), keyTime: Int64(caller.welcome.keyTime),
          retention: 300_000,
          storeName: memory.statusNow.name)
        #expect(memory.beginNow(attempt) == .run(number: 1))
        memory.loseNow(attempt.token)
      }
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.gone, [], replayed: true))
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [2]))
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [2], replayed: true))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `a store that takes a new name is another space`() async throws {
    try await run { stage, store in
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      store.script.withLock { $0.name = [9, 9] }
      let response = try await caller.client.request(
        OnceStage.quick, metadata: caller.metadata([8]))
      #expect(Answer(response) == .refused(.preconditionFailed))
      let space = response.metadata?.keySpace ?? []
      #expect(space.count == 16 && space != caller.welcome.keySpace)
      #expect(try await caller.ask(OnceStage.quick, [8], space: space) == Answer(.ok, [1]))
      #expect(try await stage.client().welcome.keySpace == space)
    }
  }

  @Test func `a server asks for the store's name before it refuses another space`() async throws {
    try await OnceStage.run { simulation, memory in
      let stores = (0..<2).map { _ in ScriptedStore(memory, clock: simulation.clock) }
      let (a, b) = (
        try await OnceStage(simulation, store: stores[0]),
        try await OnceStage(simulation, store: stores[1])
      )
      let (first, second) = (try await a.client(), try await b.client())
      for store in stores { store.script.withLock { $0.name = [9, 9] } }
      // One server gets to know the new name.
      let response = try await first.client.request(
        OnceStage.quick, metadata: first.metadata([8]))
      let space = response.metadata?.keySpace ?? []
      #expect(try await first.ask(OnceStage.quick, [8], space: space) == Answer(.ok, [1]))
      stores[1].script.withLock { $0.failingStatuses = 1 }
      #expect(try await second.ask(OnceStage.quick, [8], space: space) == .refused(.draining))
      let replay = Answer(.ok, [1], replayed: true)
      #expect(try await second.ask(OnceStage.quick, [8], space: space) == replay)
      #expect(try await b.client().welcome.keySpace == space)
      #expect(try await second.ask(OnceStage.quick, [7], space: space) == Answer(.ok, [1]))
      // A space of no name costs the store little.
      let asked = stores[1].script.withLock { $0.statuses }
      let wrong = [UInt8](repeating: 5, count: 16)
      let start = simulation.now
      for serial: UInt32 in 100..<150 {
        second.client.send(
          .request(
            OnceStage.quick, serial: serial, [], metadata: second.metadata([6], space: wrong)))
      }
      for serial: UInt32 in 100..<150 {
        #expect(try await second.answer(to: serial) == .refused(.preconditionFailed))
      }
      let most = 2 + Int((simulation.now - start) / 100_000_000)
      #expect((1...most).contains(stores[1].script.withLock { $0.statuses } - asked))
      #expect(a.runs([8]) == 1 && b.runs([8]) == 0 && b.runs([6]) == 0)
      for stage in [a, b] { await stage.server.shutDown(within: .zero) }
    }
  }

  @Test func `a server whose store does not answer does not start`() async throws {
    try await OnceStage.run { simulation, _ in
      await #expect(throws: LongLinkError.self) {
        _ = try await OnceStage(simulation, store: SilentStore())
      }
    }
  }

  @Test func `a handler completes its record itself, and what it returns no longer counts`()
    async throws
  {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      for key: UInt8 in [0, 1] {
        #expect(try await caller.ask(OnceStage.completes, [key], [key]) == Answer(.ok, [101]))
        #expect(
          try await caller.ask(OnceStage.completes, [key], [key])
            == Answer(.ok, [101], replayed: true))
      }
    }
  }

  /// Completes a record in a transaction, whose functions are `async` or are not.
  private static func complete(
    _ once: OnceContext, isAsync: Bool, _ keep: (OnceToken, OnceAnswer) -> Bool
  ) async throws {
    guard isAsync else { return try { try once.complete(with: [7], keep) }() }
    try await once.complete(with: [7]) { token, answer in
      await Task.yield()
      return keep(token, answer)
    }
  }

  @Test(arguments: [false, true])
  func `a handler whose transaction fails has not completed its record`(isAsync: Bool) async throws
  {
    try await OnceStage.run { simulation, memory in
      struct RolledBack: Error {}
      let stage = try await OnceStage(simulation, store: memory) { _ in
      } routes: { server in
        server.route(20) { request async throws -> [UInt8] in
          try await Self.complete(request.once!, isAsync: isAsync) { token, answer in
            // A transaction: its effect is there only if nothing throws afterwards.
            request.body == [1] || memory.completeNow(token, with: answer)
          }
          if request.body == [1] { throw RolledBack() }
          return []
        }
        server.route(21) { request async throws -> [UInt8] in
          try await Self.complete(request.once!, isAsync: isAsync) { _, _ in false }
          return []
        }
        server.route(22) { request async throws -> [UInt8] in
          _ = memory.completeNow(request.once!.token, with: OnceAnswer(code: .ok, body: [9]))
          throw RolledBack()
        }
        server.route(23) { request async throws -> [UInt8] in
          // The transaction is undone, and the handler makes the best of it.
          try await Self.complete(request.once!, isAsync: isAsync) { _, _ in true }
          return [8]
        }
        server.route(24) { request throws -> [UInt8] in
          try request.once!.complete(with: [7]) { _, _ in true }
          return [8]
        }
      }
      let caller = try await stage.client()
      #expect(try await caller.ask(20, [1]) == Answer(.ok, [7]))
      for type: MessageType in [23, 24] {
        #expect(try await caller.ask(type, [5]) == Answer(.ok, [8]))
        #expect(try await caller.ask(type, [5]) == Answer(.ok, [8], replayed: true))
      }
      // Completed behind the server's back: what the store has kept is the answer.
      #expect(try await caller.ask(22, [4]) == Answer(.ok, [9]))
      #expect(try await caller.ask(22, [4]) == Answer(.ok, [9], replayed: true))
      let failed = Answer(.failed, Array("the handler failed".utf8))
      #expect(try await caller.ask(20, [2], [1]) == failed)
      #expect(try await caller.ask(20, [2], [1]).replayed)
      #expect(try await caller.ask(21, [3]) == failed)
      await stage.server.shutDown(within: .zero)
    }
  }
}

private struct SilentStore: OnceStore {
  func status() async throws -> OnceStoreStatus {
    try await Task.sleep(for: .seconds(3_600))
    return OnceStoreStatus(name: [1], time: 1)
  }

  func begin(_ attempt: OnceAttempt) async throws -> OnceFinding { .full }
  func complete(_ token: OnceToken, with answer: OnceAnswer?) async throws -> Bool { false }
  func abandon(_ token: OnceToken) async throws -> Bool { false }
}
