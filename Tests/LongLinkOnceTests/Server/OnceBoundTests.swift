// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@testable import LongLinkOnce
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// What requests that run once can cost a server, in number and time, and what it counts.
struct OnceBoundTests {
  /// Accepts the principal that a credential names, and clients without one.
  private static func accept(_ configuration: inout ServerConfiguration) {
    configuration.identity.authenticate = { request in
      guard let credential = request.credential, !credential.isEmpty else { return .anonymous }
      return Authentication(Principal(String(decoding: credential, as: UTF8.self)))
    }
  }

  @Test(arguments: ["", "n", String(repeating: "n", count: 255)])
  func `a scope is made of a name, however short`(_ name: String) {
    let scope = OnceScope(principal: name)
    #expect(OnceScope(bytes: scope.bytes) == scope)
    #expect(scope.principal == name && !scope.isAnonymous && scope.bytes.count <= 256)
  }

  @Test func `a long name of a principal is hashed, and keeps its answers`() async throws {
    try await OnceStage.run { simulation, store in
      let scopes = Mutex<[OnceScope]>([])
      let stage = try await OnceStage(simulation, store: store) {
        Self.accept(&$0)
      } routes: { server in
        server.route(77) { request async throws -> [UInt8] in
          scopes.withLock { $0 += [request.once?.scope].compactMap { $0 } }
          return []
        }
      }
      let long = String(repeating: "n", count: 10_000)
      for name in [long, long, long + "n", String(long.prefix(255)), String(long.prefix(256))] {
        let user = try await stage.client(credential: name)
        #expect(try await user.ask(77, [1]).code == .ok)
      }
      // The second request gets the answer of the first.
      let seen = scopes.withLock { $0 }
      #expect(seen.map(\.bytes.count) == [33, 33, 256, 33])
      #expect(seen.map(\.principal) == [nil, nil, String(long.prefix(255)), nil])
      #expect(Set(seen).count == 4 && !seen.contains(where: \.isAnonymous))
      #expect(seen.allSatisfy { OnceScope(bytes: $0.bytes) == $0 })
      #expect(seen[0].description == "principal with a long name")
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `handlers without their requests leave others room`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store) {
        Self.accept(&$0)
        // Two for each scope.
        $0.once?.maxDetachedHandlers = 8
      }
      let first = try await stage.client()
      #expect(try await first.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      // All have begun before any has lost its request.
      for key: UInt8 in 1...20 { first.send(OnceStage.waits, [key], serial: 50 + UInt32(key)) }
      try await stage.awaitWaiting(20)
      first.client.reset()
      try await simulation.sleep(for: .seconds(1))
      #expect(await stage.server.counters().onceDetached == 20)
      // Clients without a principal share one bound. What is known is answered nevertheless.
      for number: UInt8 in [1, 2] {
        let stranger = try await stage.client(number)
        #expect(try await stranger.ask(OnceStage.quick, [8]) == .refused(.overloaded))
      }
      let again = try await stage.client()
      #expect(try await again.ask(OnceStage.quick, [9]) == Answer(.ok, [1], replayed: true))
      for name in ["a", "b", "c"] {
        let user = try await stage.client(credential: name)
        #expect(try await user.ask(OnceStage.quick, [7]).code == .ok)
        user.send(OnceStage.waits, [1], serial: 50)
        user.send(OnceStage.waits, [2], serial: 51)
        try await stage.awaitWaiting(stage.counts.withLock { $0.waiting.count } + 1)
        user.client.reset()
        try await simulation.sleep(for: .seconds(1))
        let next = try await stage.client(credential: name)
        #expect(try await next.ask(OnceStage.quick, [6]) == .refused(.overloaded))
      }
      // Now all are taken.
      let last = try await stage.client(credential: "d")
      #expect(try await last.ask(OnceStage.quick, [7]) == .refused(.overloaded))
      stage.letGo()
      try await simulation.sleep(for: .seconds(1))
      #expect(try await last.ask(OnceStage.quick, [7]).code == .ok)
      #expect(await stage.server.counters().onceDetached == 0)
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `a handler without its request is cancelled after its time`() async throws {
    try await OnceStage.runBoth(configure: {
      $0.once?.detachedHandlerTimeout = .seconds(10)
    }) { stage in
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [9], serial: 50)
      try await stage.awaitWaiting(1)
      caller.client.reset()
      try await stage.simulation.sleep(for: .seconds(9))
      #expect(stage.counts.withLock { $0.cancelled } == 0)
      try await stage.simulation.sleep(for: .seconds(2))
      #expect(stage.counts.withLock { $0.cancelled } == 1)
      let answer = try await stage.client().ask(OnceStage.waits, [9])
      #expect(answer == Answer(.cancelled, [], replayed: true))
    }
  }

  @Test func `a handler that ignores the end of its time has an end that is not known`()
    async throws
  {
    let gates = Mutex<[Gate<Void>]>([])
    try await OnceStage.runBoth(
      configure: { $0.once?.detachedHandlerTimeout = .seconds(10) },
      routes: { server in
        server.route(20) { _ async throws -> [UInt8] in
          let gate = Gate<Void>()
          gates.withLock { $0.append(gate) }
          await gate.value
          return [5]
        }
      }
    ) { stage in
      let caller = try await stage.client()
      caller.send(20, [9], serial: 50)
      try await stage.simulation.sleep(for: .seconds(1))
      caller.client.reset()
      let next = try await stage.client()
      next.send(20, [9], serial: 50)
      #expect(try await next.answer(to: 50) == Answer(.gone, [], replayed: true))
      #expect((40_000_000_000...43_000_000_000).contains(stage.simulation.now.nanoseconds))
      #expect(try await next.ask(20, [9]) == Answer(.gone, [], replayed: true))
      // It counts as long as it runs, and its answer is kept when it returns.
      #expect(await stage.server.counters().onceDetached == 1)
      gates.withLock { $0.last }?.open(())
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(await stage.server.counters().onceDetached == 0)
      #expect(try await next.ask(20, [9]) == Answer(.ok, [5], replayed: true))
    }
  }

  @Test func `a slow store is asked by a bounded number of requests`() async throws {
    try await OnceStage.run { simulation, memory in
      let store = ScriptedStore(memory, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store) { $0.limits.maxInFlight = 5_000 }
      let caller = try await stage.client()
      // Slow, but not late.
      store.script.withLock { $0.delay = .seconds(2) }
      let most = OnceTable.mostCalls
      for number in 0..<most + 10 {
        let key = [UInt8(number >> 8), UInt8(number & 255)]
        caller.send(OnceStage.quick, key, serial: UInt32(50 + number))
      }
      for number in most..<most + 10 {
        let answer = try await caller.answer(to: UInt32(50 + number))
        #expect(answer == .refused(.draining))
      }
      #expect(store.script.withLock { $0.begins } == most)
      #expect(try await caller.answer(to: UInt32(50 + most - 1)) == Answer(.ok, [1]))
      try await simulation.sleep(for: .seconds(5))
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      #expect(await stage.server.counters().onceRequests["store"] == 10)
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `what another server does not end is waited for no longer than a retention`()
    async throws
  {
    try await OnceStage.run { simulation, memory in
      let stage = try await OnceStage(simulation, store: memory, retention: .seconds(60))
      let caller = try await stage.client()
      let attempt = OnceAttempt(
        token: OnceToken(scope: OnceStage.scope(), type: OnceStage.quick, key: [9], number: 1),
        fingerprint: OnceHasher().hash([]), keyTime: Int64(caller.welcome.keyTime),
        retention: 60_000, storeName: memory.statusNow.name)
      #expect(memory.beginNow(attempt) == .run(number: 1))
      let began = simulation.now
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.gone, [], replayed: true))
      #expect((60_000_000_000...63_000_000_000).contains(simulation.now - began))
      // It may still end there.
      #expect(memory.completeNow(attempt.token, with: OnceAnswer(code: .ok, body: [3])))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `an overloaded server lets what may run again wait`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store) {
        $0.limits.maxInFlight = 1
      } routes: { server in
        server.route(20) { request async throws -> [UInt8] in [UInt8(request.once?.attempt ?? 0)] }
        server.runOnce(20, unknownEnd: .runAgain)
      }
      let caller = try await stage.client()
      for type: MessageType in [OnceStage.quick, 20] {
        let token = OnceToken(scope: OnceStage.scope(), type: type, key: [9], number: 1)
        let attempt = OnceAttempt(
          token: token, fingerprint: OnceHasher().hash([]),
          keyTime: Int64(caller.welcome.keyTime), retention: 300_000,
          storeName: store.statusNow.name)
        #expect(store.beginNow(attempt) == .run(number: 1))
        store.loseNow(token)
      }
      caller.send(OnceStage.waits, [1], serial: 1_000)
      try await stage.awaitWaiting(1)
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.gone, [], replayed: true))
      #expect(try await caller.ask(20, [9], [1]) == .refused(.conflict))
      #expect(try await caller.ask(20, [9]) == .refused(.overloaded))
      stage.letGo()
      #expect(try await caller.answer(to: 1_000) == Answer(.ok, [1]))
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [2]))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `the server counts what becomes of requests, and what it has`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store)
      let caller = try await stage.client()
      for body: UInt8 in [1, 1, 2] { _ = try await caller.ask(OnceStage.quick, [9], [body]) }
      _ = try await caller.ask(OnceStage.quick, [9], time: .max)
      for _ in 0..<3 { _ = try await caller.ask(OnceStage.large, [8]) }
      caller.send(OnceStage.waits, [7], serial: 50)
      caller.send(OnceStage.waits, [7], serial: 51)
      try await stage.awaitWaiting(1)
      #expect(await stage.server.counters().onceRequests["replayed"] == 1)
      stage.letGo()
      #expect(try await caller.answer(to: 51) == Answer(.ok, [1], replayed: true))
      _ = try await caller.ask(OnceStage.synchronous, [6])
      let counters = await stage.server.counters()
      #expect(
        counters.onceRequests == ["run": 4, "replayed": 2, "conflict": 1, "terms": 1, "gone": 2])
      #expect(counters.onceRecords == 4 && counters.onceDetached == 0)
      #expect(counters.onceBytes == store.byteCount && counters.onceBytes > 0)
      await stage.server.shutDown(within: .zero)
    }
  }
}
