// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkOnce
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// What a server does with requests that run once, while its store does what it should.
struct OnceServerTests {
  @Test func `a value that is out of range is named`() {
    let changes: [(String, (inout OnceConfiguration) -> Void)] = [
      ("once.retention", { $0.retention = .zero }),
      ("once.retention", { $0.retention = .seconds(50 * 86_400) }),
      ("once.maxKeptResponse", { $0.maxKeptResponse = -1 }),
      ("once.storeTimeout", { $0.storeTimeout = .zero }),
      ("once.maxDetachedHandlers", { $0.maxDetachedHandlers = 3 }),
      ("once.detachedHandlerTimeout", { $0.detachedHandlerTimeout = .zero }),
    ]
    for (field, change) in changes {
      var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
      configuration.once = OnceConfiguration(store: .memory())
      #expect(throws: Never.self) { try configuration.validate() }
      change(&configuration.once!)
      let error = #expect(throws: LongLinkError.self) { try configuration.validate() }
      #expect(error?.description.contains(field) == true)
    }
  }

  @Test func `handlers without their requests have a bound`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store) {
        // One for each scope.
        $0.once?.maxDetachedHandlers = 4
      }
      let first = try await stage.client()
      first.send(OnceStage.waits, [1], serial: 50)
      try await stage.awaitWaiting(1)
      first.client.reset()
      try await simulation.sleep(for: .seconds(1))
      let second = try await stage.client()
      #expect(try await second.ask(OnceStage.quick, [2]) == .refused(.overloaded))
      stage.letGo()
      #expect(try await second.ask(OnceStage.waits, [1]) == Answer(.ok, [1], replayed: true))
      #expect(try await second.ask(OnceStage.quick, [2]) == Answer(.ok, [1]))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `a request that comes again gets the same answer, and ran once`() async throws {
    try await OnceStage.runBoth { stage in
      for type in [OnceStage.quick, OnceStage.synchronous] {
        let key = [UInt8(type.rawValue)]
        let caller = try await stage.client()
        #expect(try await caller.ask(type, key, [1]) == Answer(.ok, [1]))
        let again = Answer(.ok, [1], replayed: true)
        #expect(try await caller.ask(type, key, [1]) == again)
        // Over another connection, too.
        #expect(try await stage.client().ask(type, key, [1]) == again)
        #expect(stage.runs(key) == 1)
      }
    }
  }

  @Test func `a key is that of its client, type and payload`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9], [1]) == Answer(.ok, [1]))
      #expect(try await caller.ask(OnceStage.quick, [9], [2]) == .refused(.conflict))
      #expect(try await caller.ask(OnceStage.synchronous, [9], [2]) == Answer(.ok, [2]))
      #expect(try await stage.client(2).ask(OnceStage.quick, [9], [2]) == Answer(.ok, [3]))
    }
  }

  @Test func `the end of the connection leaves the handler, and the next attempt waits for it`()
    async throws
  {
    try await OnceStage.runBoth { stage in
      let first = try await stage.client()
      first.send(OnceStage.waits, [9], serial: 50)
      try await stage.awaitWaiting(1)
      first.client.reset()
      let second = try await stage.client()
      second.send(OnceStage.waits, [9], serial: 50)
      second.send(OnceStage.waits, [9], serial: 51)
      second.send(OnceStage.waits, [9], serial: 52, [1])
      #expect(try await second.answer(to: 52) == .refused(.conflict))
      try await stage.simulation.sleep(for: .seconds(2))
      #expect(second.client.responses.count == 1)
      stage.letGo()
      for serial: UInt32 in [50, 51] {
        #expect(try await second.answer(to: serial) == Answer(.ok, [1], replayed: true))
      }
      #expect(stage.runs([9]) == 1 && stage.counts.withLock { $0.cancelled } == 0)
    }
  }

  @Test func `a handler whose connection has ended answers the record alone`() async throws {
    try await OnceStage.runBoth { stage in
      let first = try await stage.client()
      first.send(OnceStage.waits, [9], serial: 50)
      try await stage.awaitWaiting(1)
      first.client.reset()
      try await stage.simulation.sleep(for: .seconds(1))
      stage.letGo()
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(
        try await stage.client().ask(OnceStage.waits, [9]) == Answer(.ok, [1], replayed: true))
      #expect(await stage.server.counters().bytesHeld < 100_000)
    }
  }

  @Test func `it is cancelled when a cancel leaves nobody waiting`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [9], serial: 50)
      try await stage.awaitWaiting(1)
      caller.send(OnceStage.waits, [9], serial: 51)
      caller.client.send(.cancel(50))
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(stage.counts.withLock { $0.cancelled } == 0)
      caller.client.send(.cancel(51))
      try await stage.simulation.sleep(for: .seconds(1))
      #expect(stage.counts.withLock { $0.cancelled } == 1)
      #expect(
        try await caller.ask(OnceStage.waits, [9]) == Answer(.cancelled, [], replayed: true))
      #expect(stage.runs([9]) == 1)
    }
  }

  @Test func `who waits for a run that is cancelled before it begins is told to ask again`()
    async throws
  {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [9], serial: 50)
      caller.client.send(.cancel(50))
      caller.send(OnceStage.waits, [9], serial: 51)
      let answer = try await caller.answer(to: 51)
      #expect(answer.code == .draining && answer.isRefused, "\(answer)")
      #expect(stage.runs([9]) == 0)
    }
  }

  @Test func `the handler has the deadline of its request, and a waiter its own`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [9], serial: 50, remaining: .seconds(10))
      try await stage.awaitWaiting(1)
      caller.send(OnceStage.waits, [9], serial: 51, remaining: .seconds(1))
      caller.send(OnceStage.waits, [9], serial: 52)
      #expect(try await caller.answer(to: 51) == Answer(.deadlinePassed, []))
      #expect(stage.counts.withLock { $0.cancelled } == 0)
      #expect(try await caller.answer(to: 50) == Answer(.deadlinePassed, []))
      let late = Answer(.deadlinePassed, [], replayed: true)
      #expect(try await caller.answer(to: 52) == late)
      #expect(try await caller.ask(OnceStage.waits, [9]) == late)
      #expect(stage.counts.withLock { $0.cancelled } == 1)
    }
  }

  @Test func `the deadline ends a handler also after its connection`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      caller.send(OnceStage.waits, [9], serial: 50, remaining: .seconds(10))
      try await stage.awaitWaiting(1)
      caller.client.reset()
      try await stage.simulation.sleep(for: .seconds(9))
      #expect(stage.counts.withLock { $0.cancelled } == 0)
      try await stage.simulation.sleep(for: .seconds(2))
      #expect(stage.counts.withLock { $0.cancelled } == 1)
    }
  }

  @Test func `rejections are kept, and codes that are not final are not`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store) { _ in
      } routes: { server in
        server.route(20) { _ async throws -> [UInt8] in throw Rejection(.draining, "later") }
        server.runOnce(20, notFinal: [.draining])
        server.route(21) { _ async throws -> [UInt8] in throw Rejection(.draining, "later") }
      }
      let caller = try await stage.client()
      let no = Array("no".utf8)
      #expect(try await caller.ask(OnceStage.rejects, [9]) == Answer(1_000, no))
      #expect(try await caller.ask(OnceStage.rejects, [9]) == Answer(1_000, no, replayed: true))
      #expect(stage.runs([9]) == 1)
      let later = Array("later".utf8)
      for _ in 0..<2 { #expect(try await caller.ask(20, [8]) == Answer(.draining, later)) }
      #expect(try await caller.ask(21, [8]) == Answer(.draining, later))
      #expect(try await caller.ask(21, [8]) == Answer(.draining, later, replayed: true))
      await stage.server.shutDown(within: .zero)
    }
  }

  /// A client tells them apart by the word of the server that no handler has answered.
  @Test func `a handler's own 410 is its answer, and another 410 is none`() async throws {
    try await OnceStage.runBoth(routes: { server in
      server.route(20) { _ async throws -> [UInt8] in throw Rejection(.gone, "no such room") }
    }) { stage in
      let caller = try await stage.client()
      for isReplayed in [false, true] {
        let response = try await caller.client.request(20, metadata: caller.metadata([9]))
        #expect(response.code == .gone && response.body == Array("no such room".utf8))
        #expect(response.metadata?.replayed ?? false == isReplayed)
        #expect(response.metadata?.interrupted != true)
      }
      _ = try await caller.ask(OnceStage.large, [8])
      let response = try await caller.client.request(
        OnceStage.large, metadata: caller.metadata([8]))
      #expect(response.code == .gone && response.metadata?.replayed == true)
      #expect(response.metadata?.interrupted == true)
    }
  }

  @Test func `a large response reaches who waits, and is not kept`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      let answer = try await caller.ask(OnceStage.large, [9])
      #expect(answer.code == .ok && answer.body.count == 70_000)
      #expect(try await caller.ask(OnceStage.large, [9]) == Answer(.gone, [], replayed: true))
      #expect(stage.runs([9]) == 1)
    }
  }

  @Test func `another space and another time are refused, with those that hold`() async throws {
    try await OnceStage.runBoth { stage in
      let caller = try await stage.client()
      let other = try await stage.client(2)
      #expect(caller.welcome.keySpace.count == 16 && caller.welcome.keyTime > 0)
      #expect(caller.welcome.keyRetention == .seconds(300))
      #expect(other.welcome.keySpace != caller.welcome.keySpace)
      let metadata = [
        caller.metadata([9], space: other.welcome.keySpace),
        caller.metadata([9], space: [UInt8](repeating: 0, count: 16), time: 1),
        caller.metadata([9], time: caller.welcome.keyTime + 401_000),
        caller.metadata([9], time: .max),
      ]
      try await stage.simulation.sleep(for: .seconds(100))
      for metadata in metadata {
        let response = try await caller.client.request(OnceStage.quick, metadata: metadata)
        #expect(Answer(response) == .refused(.preconditionFailed))
        #expect(response.metadata?.keySpace == caller.welcome.keySpace)
        let time = response.metadata?.keyTime ?? 0
        #expect((99_000...101_000).contains(Int64(time) - Int64(caller.welcome.keyTime)))
      }
      #expect(stage.runs([9]) == 0)
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      try await stage.simulation.sleep(for: .seconds(301))
      #expect(try await caller.ask(OnceStage.quick, [9]) == .refused(.preconditionFailed))
      #expect(stage.runs([9]) == 1)
    }
  }

  @Test func `a client without an identity is not offered it`() async throws {
    try await OnceStage.runBoth { stage in
      let client = try await SimulatedClient.connect(
        to: stage.server.addresses[0], on: stage.simulation.mainLoop)
      let welcome = try await client.sayHello(.hello(features: [.metadata, .once]))
      #expect(!welcome.features.contains(.once) && welcome.keySpace == [])
      let caller = try await stage.client()
      let response = try await client.request(OnceStage.quick, metadata: caller.metadata([9]))
      #expect(Answer(response) == .refused(.malformed))
      // A key alone is data for the handler.
      let plain = try await client.request(
        OnceStage.quick, metadata: WireMetadata(idempotencyKey: [9]))
      #expect(plain.code == .ok && stage.runs([9]) == 0)
    }
  }

  @Test func `a right that was withdrawn withholds the answer`() async throws {
    try await OnceStage.run { simulation, store in
      let isAllowed = Flag()
      let stage = try await OnceStage(simulation, store: store) { _ in
      } routes: { server in
        server.route(20, requires: .custom { _ in isAllowed.isSet }) { _ async throws -> [UInt8] in
          [5]
        }
      }
      isAllowed.set(true)
      let caller = try await stage.client()
      #expect(try await caller.ask(20, [9]) == Answer(.ok, [5]))
      isAllowed.set(false)
      #expect(try await caller.ask(20, [9]) == .refused(.forbidden))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `interceptors run with the handler alone`() async throws {
    try await OnceStage.run { simulation, store in
      let calls = Flag()
      let stage = try await OnceStage(simulation, store: store) { _ in
      } routes: { server in
        server.intercept([OnceStage.quick]) { request, next in
          calls.count()
          return try await next(request)
        }
      }
      let caller = try await stage.client()
      for _ in 0..<3 { #expect(try await caller.ask(OnceStage.quick, [9]).code == .ok) }
      #expect(calls.number == 1)
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `an overloaded server answers what it knows, and refuses the rest`() async throws {
    try await OnceStage.run { simulation, store in
      let stage = try await OnceStage(simulation, store: store) { $0.limits.maxInFlight = 2 }
      let caller = try await stage.client()
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1]))
      caller.send(OnceStage.waits, [1], serial: 1_000)
      caller.send(OnceStage.waits, [2], serial: 1_001)
      try await stage.awaitWaiting(2)
      #expect(try await caller.ask(OnceStage.quick, [9]) == Answer(.ok, [1], replayed: true))
      #expect(try await caller.ask(OnceStage.quick, [9], [1]) == .refused(.conflict))
      #expect(try await caller.ask(OnceStage.quick, [8]) == .refused(.overloaded))
      // One more that waits.
      #expect(try await caller.ask(OnceStage.waits, [1]) == .refused(.overloaded))
      stage.letGo()
      #expect(try await caller.answer(to: 1_001) == Answer(.ok, [1]))
      #expect(try await caller.ask(OnceStage.quick, [8]) == Answer(.ok, [1]))
      await stage.server.shutDown(within: .zero)
    }
  }

  @Test func `loops share one table`() async throws {
    // Real loops: each connection is on another one.
    let loops = [try EventLoop(name: "a"), try EventLoop(name: "b")]
    defer { for loop in loops { loop.shutDown() } }
    let runs = Flag()
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    configuration.once = OnceConfiguration(store: .memory())
    let server = try LongLinkServer(configuration, on: loops)
    let gate = Gate<Void>()
    server.route(1) { _ async throws -> [UInt8] in
      runs.count()
      await gate.value
      return [UInt8(runs.number)]
    }
    try await server.start()
    var callers: [OnceCaller] = []
    for _ in 0..<4 {
      callers.append(try await OnceCaller.connect(to: server.addresses[0], on: loops[0]))
    }
    for caller in callers { caller.send(1, [9], serial: 1_000) }
    for caller in callers.dropLast() {
      // Each has been read when a later request of its connection was answered.
      #expect(try await caller.ask(1, [9], [1]) == .refused(.conflict))
    }
    gate.open(())
    var replays = 0
    for caller in callers {
      let answer = try await caller.answer(to: 1_000)
      #expect(answer.code == .ok && answer.body == [1])
      replays += answer.replayed ? 1 : 0
    }
    #expect(runs.number == 1 && replays == 3)
    await server.shutDown(within: .zero)
  }
}
