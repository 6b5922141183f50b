// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkDriver
import LongLinkTesting
import Testing

/// What the server said, for whoever wants to hear it.
@Suite struct EventTests {
  private func bodies<Failure>(_ events: BufferedSequence<CallEvent, Failure>) async throws
    -> [[UInt8]]
  {
    var bodies: [[UInt8]] = []
    for try await event in events { bodies.append((try? event.result.get()) ?? [0]) }
    return bodies
  }

  @Test func `pushes and results reach every subscriber of their type`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, [.reply([1]), .reply(code: 500)])
      scene.server.on(2, .reply([2]))
      let ones = scene.api.events(of: 1)
      let others = scene.api.events(of: 1)
      let pushes = scene.api.events(of: 20)
      let all = scene.api.events()
      _ = try await scene.api.call(.raw(1), [])
      _ = try await failure { try await scene.api.call(.raw(1), []) }
      _ = try await scene.api.call(.raw(2), [])
      scene.server.push(20, [20])
      try await scene.until { all.buffered == 4 }
      await scene.client.close()
      #expect(try await bodies(ones) == [[1], [0]])
      #expect(try await bodies(others) == [[1], [0]])
      #expect(try await bodies(pushes) == [[20]])
      var arePushes: [Bool] = []
      for await event in all { arePushes.append(event.isPush) }
      #expect(arePushes == [false, false, false, true])
    }
  }

  @Test func `a call that a close ends is an event`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, .never)
      let events = scene.api.events()
      let call = scene.spawn { try await scene.api.call(.raw(1), []) }
      try await scene.server.waitForRequest(of: 1)
      await scene.client.close()
      _ = await call.result
      #expect(events.buffered == 1)
    }
  }

  @Test func `a shared exchange is one event, a cached answer and a cancelled one are none`()
    async throws
  {
    try await Scene.run { scene in
      let kept = RawMethod.raw(1, CallPolicy(cache: CachePolicy()))
      scene.server.on(1, .reply([1]), after: .seconds(1))
      scene.server.on(2, .never)
      let events = scene.api.events()
      let calls = (0..<3).map { _ in scene.spawn { try await scene.api.call(kept, []) } }
      for call in calls { _ = try await call.value }
      _ = try await scene.api.call(kept, [])
      let cancelled = scene.spawn { try await scene.api.call(.raw(2), []) }
      try await scene.server.waitForRequest(of: 2)
      cancelled.cancel()
      _ = await cancelled.result
      #expect(events.buffered == 1)
    }
  }

  @Test func `each subscriber has a buffer of its own, and what is lost is counted`() async throws {
    try await Scene.run { scene in
      try await scene.client.connect()
      let oldest = scene.api.events(of: 20, buffer: .dropOldest(3))
      let newest = scene.api.events(of: 20, buffer: .dropNewest(4))
      let closed = scene.api.events(of: 20, buffer: .close(5))
      let all = scene.api.events(of: 20)
      for number: UInt8 in 1...10 { scene.server.push(20, [number]) }
      try await scene.until { all.buffered == 10 }
      #expect(oldest.dropped == 7 && newest.dropped == 6 && closed.dropped == 1)
      let counters = await scene.api.counters()
      #expect(counters.eventsDropped == 14 && counters.eventSequencesClosed == 1)
      var taken: [UInt8] = []
      let error = await #expect(throws: LongLinkError.self) {
        for try await event in closed { taken.append(try event.result.get()[0]) }
      }
      #expect(taken == [1, 2, 3, 4, 5])
      #expect(error?.code == .overloaded && error?.detail.contains("5 events") == true)
      await scene.client.close()
      #expect(try await bodies(oldest) == [[8], [9], [10]])
      #expect(try await bodies(newest) == [[1], [2], [3], [4]])
    }
  }

  @Test func `pushes arrive across reconnects, and those without a subscriber are counted`()
    async throws
  {
    try await Scene.run { scene in
      try await scene.client.connect()
      let events = scene.api.events(of: 20)
      scene.server.push(20, [1])
      scene.server.push(21, [1])
      try await scene.until { events.buffered == 1 }
      scene.server.resetConnections()
      try await scene.until { await scene.client.counters().connects == 2 }
      scene.server.push(20, [2])
      try await scene.until { events.buffered == 2 }
      #expect(await scene.client.counters().pushesUnhandled == 1)
    }
  }

  @Test func `an event is read as a message`() throws {
    struct Small: BodyDecodable {
      let value: UInt8
      init(decoding body: RawSpan) throws(BodyError) {
        guard body.byteCount == 1 else { throw BodyError(.malformed) }
        value = unsafe body.withUnsafeBytes { unsafe $0[0] }
      }
    }
    let good = CallEvent(isPush: true, type: 1, result: .success([7]))
    #expect(try good.message(as: Small.self).value == 7)
    let bad = CallEvent(isPush: true, type: 1, result: .success([]))
    let error = #expect(throws: LongLinkError.self) { try bad.message(as: Small.self) }
    #expect(error?.code == .decodingFailed)
    let failed = LongLinkError(.connectionLost, doing: "test")
    let none = CallEvent(isPush: false, type: 1, result: .failure(failed))
    #expect(throws: failed) { try none.message(as: Small.self) }
  }

  @Test func `a subscription of a closed client ends at once`() async throws {
    try await Scene.run { scene async throws in
      await scene.client.close()
      #expect(try await bodies(scene.api.events()) == [])
    }
  }
}
