// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkDriver
import LongLinkTesting
import Testing

/// Exchanges with interceptors, among joined calls, with the cache, and how they end.
@Suite struct InterceptedExchangeTests {
  private let read = RawMethod.raw(1, .reading)
  private let cached = RawMethod.raw(
    1,
    CallPolicy(
      RequestOptions(retry: .idempotent),
      cache: CachePolicy(fresh: .seconds(10), stale: .seconds(100))))

  /// Counts the exchanges, and changes their responses.
  private static func counting(_ seen: Tally<Bool>) -> CallConfiguration {
    CallConfiguration(interceptors: [
      { request, next in
        seen.add(request.isRefresh)
        return try await next(request) + [UInt8(seen.elements.count)]
      }
    ])
  }

  /// An interceptor that waits for an hour, or until its task is cancelled.
  private static func slow(_ seen: Tally<String>) -> CallConfiguration {
    CallConfiguration(interceptors: [
      { request, next in
        do {
          try await request.clock.sleep(for: .seconds(3_600))
        } catch {
          seen.add("cancelled")
          throw error
        }
        return try await next(request)
      }
    ])
  }

  /// An interceptor that is deaf to cancels, and goes on when the gate has opened.
  private static func deaf(_ seen: Tally<String>, _ gate: Gate<Void>) -> CallConfiguration {
    CallConfiguration(interceptors: [
      { request, next in
        await gate.value
        do throws(LongLinkError) {
          return try await next(request)
        } catch {
          seen.add("\(error.code)")
          throw error
        }
      }
    ])
  }

  // MARK: Joined calls and the cache

  @Test func `identical calls share one run of the interceptors`() async throws {
    let seen = Tally<Bool>()
    try await Scene.run(Self.counting(seen)) { scene async throws in
      scene.server.on(1, .reply([9]), after: .seconds(1))
      let calls = (0..<5).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      for call in calls { #expect(try await call.value == [9, 1]) }
      #expect(scene.server.requests(of: 1).count == 1)
    }
    #expect(seen.elements == [false])
  }

  @Test func `the cache keeps what interceptors return, and a refresh meets them`() async throws {
    let seen = Tally<Bool>()
    try await Scene.run(Self.counting(seen)) { scene async throws in
      scene.server.on(1, .reply([9]))
      for _ in 0..<3 { #expect(try await scene.api.call(cached, [7]) == [9, 1]) }
      #expect(seen.elements == [false])
      try await scene.sleep(.seconds(20))
      #expect(try await scene.api.call(cached, [7]) == [9, 1])
      try await scene.until { await scene.api.counters().exchangesOpen == 0 }
      #expect(try await scene.api.call(cached, [7]) == [9, 2])
    }
    #expect(seen.elements == [false, true])
  }

  @Test func `what an interceptor refuses is not cached`() async throws {
    let seen = Tally<Bool>()
    let configuration = CallConfiguration(interceptors: [
      { request, next in
        seen.add(true)
        if seen.elements.count == 1 { throw Refusal("not now") }
        return try await next(request)
      }
    ])
    try await Scene.run(configuration) { scene async throws in
      scene.server.on(1, .reply([9]))
      let error = try await failure { try await scene.api.call(cached, [7]) }
      #expect(error.code == .intercepted)
      #expect(try await scene.api.call(cached, [7]) == [9])
    }
  }

  @Test func `a joined call with a later deadline gets another exchange`() async throws {
    let seen = Tally<Bool>()
    try await Scene.run(Self.counting(seen)) { scene async throws in
      scene.server.on(1, [.never, .reply([9])])
      let short = CallPolicy(RequestOptions(timeout: .seconds(1)))
      let first = scene.spawn { try await scene.api.call(read, [7], policy: short) }
      try await scene.server.waitForRequest(of: 1)
      let second = scene.spawn { try await scene.api.call(read, [7]) }
      #expect(try await failure { try await first.value }.code == .deadlineExceeded)
      #expect(try await second.value == [9, 2])
    }
  }

  // MARK: Cancels

  @Test func `a cancel reaches the interceptor, and the call ends at once`() async throws {
    let seen = Tally<String>()
    try await Scene.run(Self.slow(seen)) { scene in
      let calls = (0..<2).map { _ in scene.spawn { try await scene.api.call(read, [7]) } }
      try await scene.until { await scene.api.counters().callsOpen == 2 }
      calls[0].cancel()
      #expect(try await failure { try await calls[0].value }.code == .cancelled)
      #expect(seen.elements == [])
      calls[1].cancel()
      let error = try await failure { try await calls[1].value }
      #expect(error.code == .cancelled && error.delivery == .notSent)
      try await scene.until { seen.elements == ["cancelled"] }
      #expect(scene.server.requests.isEmpty)
    }
  }

  @Test func `a call that sends nothing may have run before with its ticket`() async throws {
    let kept: [UInt8] = [1] + [UInt8](1...16) + [0, 0, 0, 0, 0, 0, 1, 2, 9]
    let ticket = try #require(OnceTicket(bytes: kept))
    let policy = CallPolicy(RequestOptions(ticket: ticket))
    try await Scene.run(Self.slow(Tally())) { scene in
      let early = scene.spawn { try await scene.api.call(.raw(1, policy), [7]) }
      early.cancel()
      let late = scene.spawn { try await scene.api.call(.raw(1, policy), [7]) }
      try await scene.until { await scene.api.counters().callsOpen == 1 }
      late.cancel()
      for call in [early, late] {
        let error = try await failure { try await call.value }
        #expect(error.code == .cancelled && error.delivery == .sent, "\(error)")
      }
      #expect(scene.server.requests.isEmpty)
    }
  }

  @Test func `a cancel reaches the request that an interceptor waits for`() async throws {
    try await Scene.run(
      CallConfiguration(interceptors: [{ request, next in try await next(request) }])
    ) { scene in
      scene.server.on(1, .never)
      let call = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.server.waitForRequest(of: 1)
      call.cancel()
      let error = try await failure { try await call.value }
      #expect(error.code == .cancelled && error.delivery == .sent)
      try await scene.until { scene.server.cancels.count == 1 }
    }
  }

  @Test(arguments: [true, false])
  func `an interceptor that is deaf holds neither a cancel nor a deadline up, and sends nothing`(
    isCancelled: Bool
  ) async throws {
    let seen = Tally<String>()
    let gate = Gate<Void>()
    try await Scene.run(Self.deaf(seen, gate)) { scene in
      let policy = CallPolicy(RequestOptions(timeout: .seconds(5)))
      let start = scene.client.loop.clock.now
      let call = scene.spawn { try await scene.api.call(read, [7], policy: policy) }
      try await scene.until { await scene.api.counters().callsOpen == 1 }
      if isCancelled { call.cancel() }
      let error = try await failure { try await call.value }
      #expect(error.code == (isCancelled ? .cancelled : .deadlineExceeded))
      #expect(error.delivery == .notSent)
      let lasted = start.duration(to: scene.client.loop.clock.now)
      #expect(lasted < (isCancelled ? .seconds(1) : .milliseconds(5_010)))
      #expect(await scene.api.counters().exchangesOpen == 0)
      gate.open(())
      try await scene.until { seen.elements == ["cancelled"] }
      #expect(scene.server.requests.isEmpty)
    }
  }

  @Test func `a call whose request lasts until the deadline says what it waited for`() async throws
  {
    let configuration = CallConfiguration(interceptors: [
      { request, next in try await next(request) }
    ])
    try await Scene.run(
      configuration, configure: { $0.servers = [ServerEntry(.host("10.0.0.9", port: 1))] }
    ) {
      scene in
      let policy = CallPolicy(RequestOptions(timeout: .seconds(2)))
      let plain = try CallClient(scene.client)
      let own = try await failure { try await plain.call(read, [7], policy: policy) }
      let error = try await failure { try await scene.api.call(read, [7], policy: policy) }
      #expect(error.code == .deadlineExceeded && error.delivery == .notSent)
      #expect(!own.link.detail.isEmpty && error.link.detail == own.link.detail)
    }
  }

  @Test(arguments: 0..<100)
  func `a cancel that crosses the response ends each call once`(_ step: Int) async throws {
    let configuration = CallConfiguration(interceptors: [
      { request, next in
        let body = try await next(request)
        try await request.clock.sleep(for: .milliseconds(2))
        return body
      }
    ])
    try await Scene.run(configuration) { scene async throws in
      scene.server.on(1, .reply([9]), after: .milliseconds(10))
      try await scene.client.connect()
      let call = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.sleep(.microseconds(200 * step))
      call.cancel()
      do {
        #expect(try await call.value == [9])
      } catch let error as CallError {
        #expect(error.code == .cancelled)
      }
    }
  }

  @Test func `closing the client ends what interceptors hold`() async throws {
    let seen = Tally<String>()
    try await Scene.run(Self.slow(seen)) { scene in
      let call = scene.spawn { try await scene.api.call(read, [7]) }
      try await scene.until { await scene.api.counters().callsOpen == 1 }
      await scene.client.close()
      let error = try await failure { try await call.value }
      #expect(error.code == .closed && error.delivery == .notSent)
      try await scene.until { seen.elements == ["cancelled"] }
      // And what is begun afterwards.
      let late = try await failure { try await scene.api.call(read, [8]) }
      #expect(late.code == .closed)
    }
  }
}
