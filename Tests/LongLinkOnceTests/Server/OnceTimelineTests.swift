// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@testable import LongLinkOnce
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Requests that run once, where a server stops for a while, is full, or counts another time than
/// its store.
struct OnceTimelineTests {
  // A request whose bytes have waited at a server that was stopped.
  @Test func `what is read after the retention is refused, and does not run again`() async throws {
    try await OnceStage.run { simulation, memory in
      let a = try await OnceStage(simulation, store: memory, retention: .seconds(10))
      let b = try await OnceStage(simulation, store: memory, retention: .seconds(10))
      let (first, second) = (try await a.client(), try await b.client())
      let time = first.welcome.keyTime
      #expect(try await second.ask(OnceStage.quick, [9], time: time) == Answer(.ok, [1]))
      try await simulation.sleep(for: .seconds(9))
      #expect(
        try await first.ask(OnceStage.quick, [9], time: time)
          == Answer(.ok, [1], replayed: true))
      try await simulation.sleep(for: .seconds(2))
      #expect(
        try await first.ask(OnceStage.quick, [9], time: time) == .refused(.preconditionFailed))
      #expect(a.runs([9]) == 0 && b.runs([9]) == 1)
      for stage in [a, b] { await stage.server.shutDown(within: .zero) }
    }
  }

  @Test func `a right that was withdrawn counts before the load`() async throws {
    try await OnceStage.run { simulation, store in
      let isAllowed = Flag()
      isAllowed.set(true)
      let stage = try await OnceStage(simulation, store: store) {
        $0.limits.maxInFlight = 1
      } routes: { server in
        server.route(20, requires: .custom { _ in isAllowed.isSet }) { _ async throws -> [UInt8] in
          [5]
        }
      }
      let caller = try await stage.client()
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [5]))
      caller.send(OnceStage.waits, [1], serial: 1_000)
      try await stage.awaitWaiting(1)
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [5], replayed: true))
      #expect(try await caller.ask(20, [8]) == .refused(.overloaded))
      isAllowed.set(false)
      #expect(try await caller.ask(20, [9]) == .refused(.forbidden))
      stage.letGo()
      await stage.server.shutDown(within: .seconds(1))
    }
  }

  @Test func `keys of strangers fill their part, and principals keep their room`() async throws {
    try await OnceStage.run { simulation, _ in
      let store = MemoryOnceStore(maxRecords: 1_000, clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store, retention: .seconds(30)) {
        $0.identity.authenticate = { request in
          guard let name = request.credential else { return .anonymous }
          return Authentication(Principal(String(decoding: name, as: UTF8.self)))
        }
      }
      var runs = 0
      for stranger: UInt8 in 1...4 {
        let caller = try await stage.client(stranger)
        for number in 0..<250 {
          let answer = try await caller.ask(OnceStage.quick, [stranger, UInt8(number)])
          if answer == .refused(.overloaded) { continue }
          #expect(answer == Answer(.ok, [1]))
          runs += 1
        }
      }
      #expect(runs == 250)
      let client = try await SimulatedClient.connect(
        to: stage.server.addresses[0], on: simulation.mainLoop)
      let welcome = try await client.sayHello(
        .hello(
          features: [.metadata, .fragments, .streams, .once], credential: Array("ann".utf8),
          clientID: [UInt8](repeating: 1, count: 16)))
      let ann = OnceCaller(client: client, welcome: welcome)
      for number: UInt8 in 0..<250 {
        #expect(try await ann.ask(OnceStage.quick, [number]) == Answer(.ok, [1]))
      }
      // None was dropped for that.
      let first = try await stage.client(1)
      #expect(
        try await first.ask(OnceStage.quick, [1, 0]) == Answer(.ok, [1], replayed: true))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `a server that was taken for gone still ends its run`() async throws {
    try await OnceStage.run { simulation, memory in
      let kept = KeptToken()
      let store = ScriptedStore(memory, clock: simulation.clock)
      let a = try await OnceStage(simulation, store: store) { _ in
      } routes: { server in
        server.intercept([OnceStage.waits]) { request, next in
          kept.token.withLock { $0 = request.once?.token }
          return try await next(request)
        }
      }
      let b = try await OnceStage(simulation, store: memory)
      let (first, second) = (try await a.client(), try await b.client())
      first.send(OnceStage.waits, [9], serial: 50)
      try await a.awaitWaiting(1)
      // Its lease is over.
      memory.loseNow(try #require(kept.token.withLock { $0 }))
      #expect(try await second.ask(OnceStage.waits, [9]) == Answer(.gone, [], replayed: true))
      a.letGo()
      #expect(try await first.answer(to: 50) == Answer(.ok, [1]))
      #expect(
        try await second.ask(OnceStage.waits, [9]) == Answer(.ok, [1], replayed: true))
      #expect(a.runs([9]) == 1 && b.runs([9]) == 0)
      for stage in [a, b] { await stage.server.shutDown(within: .zero) }
    }
  }

  // The clock of the system was set back, so that the store's stands still; or a machine's clock
  // has jumped.
  @Test func `a server takes over the time of a store that is behind`() async throws {
    try await OnceStage.run { simulation, _ in
      let time = StoreTime()
      time.pass(.seconds(1_000))
      let store = ScriptedStore(time.store(maxRecords: 100), clock: simulation.clock)
      let stage = try await OnceStage(simulation, store: store, retention: .seconds(10))
      try await simulation.sleep(for: .seconds(60))
      let caller = try await stage.client()
      #expect(caller.welcome.keyTime >= 1_060_000)
      let refusal = try await caller.client.request(
        OnceStage.quick, metadata: caller.metadata([9]))
      #expect(Answer(refusal) == .refused(.preconditionFailed))
      let told = try #require(refusal.metadata?.keyTime)
      #expect((1_000_000...1_000_100).contains(told))
      #expect(try await caller.ask(OnceStage.quick, [9], time: told) == Answer(.ok, [1]))
      await stage.server.shutDown(within: .zero)
    }
  }
}

/// The token of a run, as its handler has seen it.
private final class KeptToken: Sendable {
  let token = Mutex<OnceToken?>(nil)
}
