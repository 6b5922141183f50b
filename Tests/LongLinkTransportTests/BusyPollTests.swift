// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@testable import LongLinkTransport

@Suite struct BusyPollTests {
  private func loop(busyPoll: Duration) throws -> EventLoop {
    try EventLoop(name: "busy", busyPoll: busyPoll)
  }

  private func on<Value: Sendable>(
    _ loop: EventLoop, _ work: @escaping @Sendable () -> Value
  ) async -> Value {
    await withCheckedContinuation { continuation in
      loop.execute { continuation.resume(returning: work()) }
    }
  }

  /// How often the loop asks for events while somebody sleeps on it.
  private func asks(of loop: EventLoop) async throws -> UInt64 {
    let before = await on(loop) { loop.systemCalls.waits }
    try await loop.clock.sleep(for: .milliseconds(20))
    return await on(loop) { loop.systemCalls.waits } - before
  }

  @Test(.timeLimit(.minutes(5)))
  func `a busy loop asks again and again, and an ordinary one sleeps`() async throws {
    let busy = try loop(busyPoll: .seconds(1))
    // A process that is not let run asks less often, now and then.
    while try await asks(of: busy) < 50 {}
    busy.shutDown()
    let ordinary = try loop(busyPoll: .zero)
    #expect(try await asks(of: ordinary) < 50)
    ordinary.shutDown()
  }

  @Test(.timeLimit(.minutes(10)), arguments: [Duration.microseconds(1), .seconds(1), .seconds(9)])
  func `a busy loop notices work and timers`(busyPoll: Duration) async throws {
    let loop = try loop(busyPoll: busyPoll)
    for round in 0..<10 {
      #expect(await on(loop) { round + 1 } == round + 1)
    }
    let clock = loop.clock
    let begin = clock.now
    try await clock.sleep(for: .milliseconds(3))
    #expect(clock.now - begin >= 3_000_000)
    loop.shutDown()
  }
}
