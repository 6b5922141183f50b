// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@_spi(Loop) @testable import LongLinkTransport

@Suite struct LifetimeTests {
  private struct Stall: Equatable {
    let loop: String
    let duration: Duration
    let messageType: MessageType?
  }

  @Test func `work that is queued is finished before the thread ends`() throws {
    let loop = try EventLoop()
    let done = Shared(0)
    for _ in 0..<10_000 { loop.execute { done.update { $0 += 1 } } }
    loop.shutDown()
    #expect(done.value == 10_000)
  }

  @Test func `shutting down again, or from several threads, returns when it is done`() async throws
  {
    let loop = try EventLoop()
    let done = Shared(false)
    loop.execute { done.update { $0 = true } }
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          loop.shutDown()
          return done.value
        }
      }
      for await sawDone in group { #expect(sawDone) }
    }
    loop.shutDown()
  }

  @Test func `late closures and tasks run one after the other, as on the loop`() async throws {
    let loop = try EventLoop()
    loop.shutDown()
    let order = Shared<[Int]>([])
    for index in 0..<1000 {
      loop.execute {
        precondition(loop.isCurrent)
        order.update { $0.append(index) }
      }
    }
    let onLoop = await Task(executorPreference: loop) {
      await Task.yield()
      return loop.isCurrent
    }.value
    #expect(onLoop)
    #expect(order.value == Array(0..<1000))
  }

  @Test func `a task that never ends does not keep the loop from being shut down`() async throws {
    let loop = try EventLoop()
    let task = Task(executorPreference: loop) {
      while !Task.isCancelled { await Task.yield() }
      return loop.isCurrent
    }
    loop.shutDown()
    task.cancel()
    #expect(await task.value)
  }

  @Test(arguments: [.seconds(3600), .nanoseconds(Int64.max)] as [Duration])
  func `a sleep ends with an error when the loop is shut down`(_ time: Duration) async throws {
    let loop = try EventLoop()
    let asleep = Task(executorPreference: loop) {
      _ = await #expect(throws: CancellationError.self) { try await loop.sleep(for: time) }
    }
    await untilTimerWaits(loop)
    loop.shutDown()
    await asleep.value
    await #expect(throws: CancellationError.self) { try await loop.sleep(for: time) }
  }

  @Test func `timers that wait fire when the loop is shut down, and later ones at once`()
    async throws
  {
    let loop = try EventLoop()
    let fired = Shared<[UInt64]>([])
    loop.execute {
      let far = loop.driver.now.advanced(by: .seconds(3600))
      _ = loop.schedule(at: far.advanced(by: .seconds(1)), Recorder(fired), token: 2)
      _ = loop.schedule(at: far, Recorder(fired), token: 1)
    }
    loop.shutDown()
    #expect(fired.value == [1, 2])
    await withCheckedContinuation { continuation in
      loop.execute {
        let far = loop.driver.now.advanced(by: .seconds(3600))
        _ = loop.schedule(at: far, Recorder(fired), token: 3)
        loop.cancel(loop.schedule(at: far, Recorder(fired), token: 4))
        loop.execute { continuation.resume() }
      }
    }
    #expect(fired.value == [1, 2, 3])
  }

  @Test func `a sleep takes its time, and less when it is cancelled`() async throws {
    let loop = try EventLoop()
    let begin = loop.clock.now
    try await loop.sleep(for: .milliseconds(20))
    #expect(begin.duration(to: loop.clock.now) >= .milliseconds(20))
    try await loop.clock.sleep(until: begin)
    try await loop.sleep(for: .seconds(-1))

    let asleep = Task { try await loop.sleep(for: .seconds(3600)) }
    await untilTimerWaits(loop)
    asleep.cancel()
    await #expect(throws: CancellationError.self) { try await asleep.value }
    let early = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      try await loop.sleep(for: .seconds(3600))
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    #expect(await nextDeadline(of: loop) == nil)
    loop.shutDown()
  }

  @Test func `a loop is released after its end`() throws {
    weak var remembered: EventLoop?
    do {
      let loop = try EventLoop()
      remembered = loop
      loop.shutDown()
    }
    #expect(remembered == nil)
  }

  @Test func `work that holds the loop up is reported, with its duration`() throws {
    let stalls = Shared<[Stall]>([])
    let driver = ManualDriver()
    let configuration = EventLoop.Configuration(
      stallThreshold: .milliseconds(200),
      onStall: { loop, duration, type in
        stalls.update { $0.append(Stall(loop: loop, duration: duration, messageType: type)) }
      }
    )
    let loop = EventLoop(driver: driver, name: "slow", configuration: configuration)
    let world = LoopBound(driver, on: loop)
    loop.execute { world.value.advance(by: .milliseconds(200)) }
    loop.turn(waitingUntil: nil)
    #expect(stalls.value.isEmpty)
    loop.execute { world.value.advance(by: .milliseconds(201)) }
    loop.turn(waitingUntil: nil)
    let first = Stall(
      loop: "slow", duration: .milliseconds(201), messageType: nil)
    #expect(stalls.value == [first])
    // A handler of readiness counts as well, and waiting does not.
    defer { driver.onWait = nil }
    driver.onWait = { driver.advance(by: .seconds(1)) }
    loop.turn(waitingUntil: driver.now.advanced(by: .seconds(60)))
    #expect(stalls.value.count == 1)
    driver.onWait = {
      _ = loop.now
      driver.advance(by: .seconds(2))
    }
    loop.turn(waitingUntil: driver.now.advanced(by: .seconds(60)))
    #expect(stalls.value.last?.duration == .seconds(2))
  }

  @Test func `a stall names the handler that took most of it, if that is known`() throws {
    let stalls = Shared<[Stall]>([])
    let driver = ManualDriver()
    let configuration = EventLoop.Configuration(
      onStall: { loop, duration, type in
        stalls.update { $0.append(Stall(loop: loop, duration: duration, messageType: type)) }
      })
    let loop = EventLoop(driver: driver, name: "slow", configuration: configuration)
    let world = LoopBound(driver, on: loop)
    /// Runs handlers of these types for so many milliseconds each, in one turn.
    func turn(_ handlers: [(MessageType, Int)]) {
      for (type, milliseconds) in handlers {
        loop.execute {
          loop.handlerBegins(type)
          world.value.advance(by: .milliseconds(milliseconds))
        }
      }
      loop.turn(waitingUntil: nil)
    }
    turn([(7, 10), (8, 500)])
    turn([(7, 10), (8, 500)])
    turn([(7, 150), (8, 150), (9, 150)])
    loop.execute { world.value.advance(by: .seconds(1)) }
    loop.turn(waitingUntil: nil)
    turn([(9, 400)])
    // Of the first it is not known; nothing took most of the third; the fourth was no handler's.
    #expect(stalls.value.map(\.messageType) == [nil, 8, nil, nil, 9])
  }

  @Test(arguments: PollerKind.all)
  func `a blocked loop over the kernel is reported`(poller: PollerKind) throws {
    let stalls = Shared<[Stall]>([])
    let loop = try EventLoop(
      name: "blocked",
      configuration: .init(
        poller: poller,
        stallThreshold: .milliseconds(1),
        onStall: { loop, duration, type in
          stalls.update { $0.append(Stall(loop: loop, duration: duration, messageType: type)) }
        }
      )
    )
    loop.execute {
      let end = loop.clock.now.advanced(by: .milliseconds(10))
      while loop.clock.now < end {}
    }
    loop.shutDown()
    #expect(stalls.value.contains { $0.loop == "blocked" && $0.duration >= .milliseconds(10) })
  }
}

private final class Recorder: TimerHandler {
  private let fired: Shared<[UInt64]>

  init(_ fired: Shared<[UInt64]>) {
    self.fired = fired
  }

  func timerFired(token: UInt64) {
    fired.update { $0.append(token) }
  }
}

private func nextDeadline(of loop: EventLoop) async -> LinkInstant? {
  await withCheckedContinuation { continuation in
    loop.execute { continuation.resume(returning: loop.nextDeadline) }
  }
}

private func untilTimerWaits(_ loop: EventLoop) async {
  while await nextDeadline(of: loop) == nil { await Task.yield() }
}
