// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Calls that are invalidated while their answers are on their way.
@Suite struct InvalidationTests {
  @Test func `no response in flight is cached, however many there are to one call`() async throws {
    let policy = CallPolicy(isShared: false, cache: CachePolicy())
    let alone = RawMethod.raw(1, policy)
    try await Scene.run { scene in
      scene.server.on(
        1,
        [
          .delay(.seconds(2), then: .reply([1])), .delay(.seconds(1), then: .reply([2])),
          .reply([3]),
        ])
      let first = scene.spawn { try await scene.api.call(alone, [7]) }
      let second = scene.spawn { try await scene.api.call(alone, [7]) }
      try await scene.until { scene.server.requests(of: 1).count == 2 }
      scene.api.invalidate(alone([7]))
      #expect(try await second.value == [2])
      #expect(try await first.value == [1])
      #expect(await scene.api.counters().cachedAnswers == 0)
      #expect(try await scene.api.call(alone, [7]) == [3])
      #expect(try await scene.api.call(alone, [7]) == [3])
    }
  }

  @Test func `an invalidated call is not joined, and the response of the next one is cached`()
    async throws
  {
    let kept = RawMethod.raw(1, CallPolicy(cache: CachePolicy()))
    try await Scene.run { scene in
      scene.server.on(1, [.delay(.seconds(2), then: .reply([1])), .reply([2])])
      let first = scene.spawn { try await scene.api.call(kept, [7]) }
      try await scene.server.waitForRequest(of: 1)
      scene.api.invalidate(kept([7]))
      #expect(try await scene.api.call(kept, [7]) == [2])
      #expect(try await first.value == [1])
      #expect(try await scene.api.call(kept, [7]) == [2])
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }

  @Test func `the policy of the later caller applies to the repeated exchange`()
    async throws
  {
    let plain = RawMethod.raw(1, CallPolicy(isShared: true))
    try await Scene.run { scene in
      scene.server.on(1, [.never, .reply([2]), .reply([3])])
      let first = scene.spawn { try await scene.api.call(plain, [7]) }
      try await scene.sleep(.seconds(10))
      let keeps = CallPolicy(cache: CachePolicy())
      let second = scene.spawn { try await scene.api.call(plain, [7], policy: keeps) }
      #expect(try await failure { try await first.value }.code == .deadlineExceeded)
      #expect(try await second.value == [2])
      #expect(try await scene.api.call(plain, [7], policy: keeps) == [2])
      #expect(scene.server.requests(of: 1).count == 2)
    }
  }
}
