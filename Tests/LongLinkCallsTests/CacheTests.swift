// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Answers that are kept.
@Suite struct CacheTests {
  private let kept = RawMethod.raw(1, CallPolicy(cache: CachePolicy()))

  private func counting(_ server: SimulatedServer, _ type: MessageType = 1) {
    server.on(type, (1...100).map { .reply([$0]) })
  }

  @Test func `a second call within a minute makes no request`() async throws {
    try await Scene.run { scene in
      counting(scene.server)
      #expect(try await scene.api.call(kept, [7]) == [1])
      try await scene.sleep(.seconds(59))
      #expect(try await scene.api.call(kept, [7]) == [1])
      try await scene.sleep(.seconds(2))
      #expect(try await scene.api.call(kept, [7]) == [2])
      let counters = await scene.api.counters()
      #expect(counters.cacheHits == 1 && counters.cacheMisses == 2 && counters.cachedAnswers == 1)
    }
  }

  @Test func `stale responses are returned while one request fetches a new one`() async throws {
    let policy = CachePolicy(fresh: .seconds(60), stale: .seconds(60))
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    try await Scene.run { scene in
      scene.server.on(1, [.reply([1]), .delay(.seconds(1), then: .reply([2]))])
      #expect(try await scene.api.call(method, [7]) == [1])
      try await scene.sleep(.seconds(70))
      let events = scene.api.events(of: 1)
      for _ in 0..<5 { #expect(try await scene.api.call(method, [7]) == [1]) }
      var iterator = events.makeAsyncIterator()
      #expect(try await iterator.next()?.result.get() == [2])
      #expect(try await scene.api.call(method, [7]) == [2])
      #expect(scene.server.requests(of: 1).count == 2)
      let counters = await scene.api.counters()
      #expect(counters.staleHits == 5 && counters.refreshes == 1)
    }
  }

  @Test func `a refresh that fails leaves the stale response until it expires`() async throws {
    let policy = CachePolicy(fresh: .seconds(10), stale: .seconds(60))
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    try await Scene.run { scene in
      scene.server.on(1, [.reply([1]), .reply(code: 500), .reply([3])])
      _ = try await scene.api.call(method, [7])
      try await scene.sleep(.seconds(20))
      #expect(try await scene.api.call(method, [7]) == [1])
      try await scene.sleep(.seconds(20))
      #expect(try await scene.api.call(method, [7]) == [1])
      try await scene.sleep(.seconds(1))
      #expect(try await scene.api.call(method, [7]) == [3])
    }
  }

  @Test func `a refresh continues after a caller that has joined it is cancelled`() async throws {
    let policy = CachePolicy(fresh: .seconds(10), stale: .seconds(60))
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    try await Scene.run { scene in
      scene.server.on(1, [.reply([1]), .delay(.seconds(2), then: .reply([2]))])
      _ = try await scene.api.call(method, [7])
      try await scene.sleep(.seconds(20))
      #expect(try await scene.api.call(method, [7]) == [1])
      let joined = scene.spawn {
        try await scene.api.call(method, [7], policy: CallPolicy(reloads: true))
      }
      try await scene.sleep(.seconds(1))
      joined.cancel()
      #expect(try await failure { try await joined.value }.code == .cancelled)
      try await scene.sleep(.seconds(2))
      #expect(try await scene.api.call(method, [7]) == [2])
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }

  @Test func `a reload asks the server, and its response is cached`() async throws {
    try await Scene.run { scene async throws in
      counting(scene.server)
      #expect(try await scene.api.call(kept, [7]) == [1])
      #expect(try await scene.api.call(kept, [7], policy: CallPolicy(reloads: true)) == [2])
      #expect(try await scene.api.call(kept, [7]) == [2])
    }
  }

  @Test func `neither failures nor responses that cannot be decoded are cached`() async throws {
    struct Nothing: BodyDecodable, Sendable {
      init(decoding body: RawSpan) throws(BodyError) { throw BodyError(.malformed) }
    }
    try await Scene.run { scene in
      scene.server.on(1, [.reply(code: 500), .reply([2])])
      _ = try await failure { try await scene.api.call(kept, [7]) }
      #expect(try await scene.api.call(kept, [7]) == [2])
      counting(scene.server, 2)
      let broken = RPCMethod<[UInt8], Nothing>(2)
      let keeping = CallPolicy(cache: CachePolicy())
      for _ in 0..<2 {
        let error = try await failure {
          try await scene.api.call(broken, [], policy: keeping)
        }
        #expect(error.code == .decodingFailed && error.delivery == .answered)
      }
      #expect(scene.server.requests(of: 2).count == 2)
    }
  }

  @Test func `a push invalidates the responses of its methods before it is delivered`()
    async throws
  {
    let policy = CachePolicy(fresh: .seconds(1_000), invalidatedBy: [20])
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    let other = RawMethod.raw(2, CallPolicy(cache: CachePolicy(fresh: .seconds(1_000))))
    try await Scene.run { scene async throws in
      counting(scene.server)
      counting(scene.server, 2)
      #expect(try await scene.api.call(method, [7]) == [1])
      #expect(try await scene.api.call(other, [7]) == [1])
      var pushes = scene.client.pushes(of: 20).makeAsyncIterator()
      scene.server.push(20)
      _ = await pushes.next()
      #expect(try await scene.api.call(method, [7]) == [2])
      #expect(try await scene.api.call(other, [7]) == [1])
      #expect(await scene.api.counters().invalidations == 1)
      // The cache has made use of it.
      scene.server.push(20)
      _ = await pushes.next()
      #expect(await scene.client.counters().pushesUnhandled == 0)
    }
  }

  @Test func `a response that crosses the push is returned, but neither cached nor shared`()
    async throws
  {
    let policy = CachePolicy(fresh: .seconds(1_000), invalidatedBy: [20])
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    try await Scene.run { scene in
      scene.server.on(
        1,
        [.reply([0]), .sequence([.push(20), .delay(.seconds(1), then: .reply([1]))]), .reply([2])])
      _ = try await scene.api.call(method, [0])
      var pushes = scene.client.pushes(of: 20).makeAsyncIterator()
      let old = scene.spawn { try await scene.api.call(method, [7]) }
      _ = await pushes.next()
      #expect(try await scene.api.call(method, [7]) == [2])
      #expect(try await old.value == [1])
      #expect(try await scene.api.call(method, [7]) == [2])
    }
  }

  @Test(arguments: [true, false])
  func `a call that joins another caches the response by its own policy`(isKnown: Bool) async throws
  {
    let shared = RawMethod.raw(1, .reading)
    let cached = CallPolicy(
      cache: CachePolicy(fresh: .seconds(1_000), invalidatedBy: [20]))
    try await Scene.run { scene in
      counting(scene.server)
      scene.server.on(2, .reply())
      var pushes = scene.client.pushes(of: 20).makeAsyncIterator()
      if isKnown { _ = try await scene.api.call(shared, [0], policy: cached) }
      let asked = scene.server.requests(of: 1).count
      scene.server.on(1) {
        .delay(.seconds(1), then: .reply([UInt8(scene.server.requests(of: 1).count), $0.body[0]]))
      }
      let first = scene.spawn { try await scene.api.call(shared, [7]) }
      try await scene.server.waitForRequest(of: 1, count: asked + 1)
      if !isKnown {
        // Nothing of the kind has been asked for yet: the push is no matter to the first call.
        scene.server.push(20)
        _ = await pushes.next()
      }
      let second = scene.spawn { try await scene.api.call(shared, [7], policy: cached) }
      try await scene.sleep(.milliseconds(100))
      // An exchange that may have missed a push is not joined.
      #expect(scene.server.requests(of: 1).count == asked + (isKnown ? 1 : 2))
      scene.server.push(20)
      _ = await pushes.next()
      _ = try await first.value
      _ = try await second.value
      // The answer crossed the push, and is not kept.
      let third = try await scene.api.call(shared, [7], policy: cached)
      #expect(third[0] == UInt8(asked + (isKnown ? 2 : 3)))
      #expect(try await scene.api.call(shared, [7], policy: cached) == third)
      scene.server.push(20)
      _ = await pushes.next()
      #expect(try await scene.api.call(shared, [7], policy: cached)[0] == third[0] + 1)
    }
  }

  @Test func `a response that was cached without regard to a push is not returned after it`()
    async throws
  {
    let plain = RawMethod.raw(1, CallPolicy(cache: CachePolicy(fresh: .seconds(1_000))))
    let strict = CallPolicy(cache: CachePolicy(fresh: .seconds(1_000), invalidatedBy: [20]))
    try await Scene.run { scene in
      counting(scene.server)
      #expect(try await scene.api.call(plain, [7]) == [1])
      scene.server.push(20)
      try await scene.sleep(.seconds(1))
      #expect(try await scene.api.call(plain, [7], policy: strict) == [2])
      #expect(try await scene.api.call(plain, [7]) == [2])
      // What was kept for the one that does not mind is lost with the connection too.
      #expect(try await scene.api.call(plain, [8]) == [3])
      scene.server.resetConnections()
      try await scene.until { await scene.client.counters().connects == 2 }
      #expect(try await scene.api.call(plain, [8], policy: strict) == [4])
    }
  }

  @Test func `a lost connection invalidates the responses that pushes could have invalidated`()
    async throws
  {
    let policy = CachePolicy(fresh: .seconds(1_000), invalidatedBy: [20])
    let method = RawMethod.raw(1, CallPolicy(cache: policy))
    let other = RawMethod.raw(2, CallPolicy(cache: CachePolicy(fresh: .seconds(1_000))))
    try await Scene.run { scene in
      counting(scene.server)
      counting(scene.server, 2)
      // Also an answer to what waited for the first connection is kept.
      for _ in 0..<2 {
        #expect(try await scene.api.call(method, [7]) == [1])
        #expect(try await scene.api.call(other, [7]) == [1])
      }
      scene.server.resetConnections()
      try await scene.until { await scene.client.counters().connects == 2 }
      #expect(try await scene.api.call(method, [7]) == [2])
      #expect(try await scene.api.call(other, [7]) == [1])
    }
  }

  @Test func `each server has its own cached responses`() async throws {
    try await Scene.run { scene in
      counting(scene.server)
      #expect(try await scene.api.call(kept, [7]) == [1])
      let second = try await SimulatedServer.start(
        on: scene.simulation.mainLoop, at: .ipv4(10, 0, 0, 2, port: 0))
      second.on(1, .reply([100]))
      try scene.client.switchServers(
        to: [ServerEntry(second.endpoint)])
      #expect(try await scene.api.call(kept, [7]) == [100])
      await second.stop()
    }
  }

  @Test func `an application invalidates calls, methods and everything`() async throws {
    try await Scene.run { scene async throws in
      counting(scene.server)
      #expect(try await scene.api.call(kept, [7]) == [1])
      #expect(try await scene.api.call(kept, [8]) == [2])
      scene.api.invalidate(kept([7]))
      #expect(try await scene.api.call(kept, [7]) == [3])
      #expect(try await scene.api.call(kept, [8]) == [2])
      scene.api.invalidate(kept)
      #expect(try await scene.api.call(kept, [8]) == [4])
      scene.api.invalidateAll()
      #expect(try await scene.api.call(kept, [7]) == [5])
      #expect(await scene.api.counters().invalidations == 3)
    }
  }

  @Test func `the bytes of the cache are bounded`() async throws {
    try await Scene.run(CallConfiguration(cacheBytes: 10_000)) { scene in
      scene.server.on(1) { .reply([UInt8](repeating: $0.body[0], count: 1_000)) }
      for number: UInt8 in 0..<100 { _ = try await scene.api.call(kept, [number]) }
      let counters = await scene.api.counters()
      #expect(counters.cachedBytes <= 10_000 && counters.cachedAnswers == 7)
      #expect(counters.evictions == 93)
    }
  }
}
