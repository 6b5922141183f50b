// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Time, tasks, chance and the bounds of a simulation.
@Suite struct SimulationTests {
  private static let impatient = Simulation.Configuration(
    timeLimit: .seconds(100),
    turnLimit: 10_000,
    foreignGrace: .zero
  )

  @Test func `ten virtual hours take no time`() async throws {
    let simulation = Simulation()
    let began = ContinuousClock.now
    let woken = try await simulation.run {
      try await simulation.sleep(for: .seconds(36_000))
      return simulation.now
    }
    #expect(woken.nanoseconds == 36_000_000_000_000)
    #expect(ContinuousClock.now - began < .seconds(3_600))
  }

  @Test(arguments: [1, 8, 100])
  func `the trace keeps as many events as it may, and counts all`(_ capacity: Int) async throws {
    let simulation = Simulation(configuration: .init(traceCapacity: capacity))
    try await simulation.run {
      for _ in 0..<20 { try await simulation.sleep(for: .seconds(1)) }
    }
    #expect(simulation.traceCount >= 20)
    #expect(simulation.trace.count == min(capacity, Int(simulation.traceCount)))
  }

  @Test func `a body returns its value and throws its error`() async throws {
    struct Failure: Error {}
    let simulation = Simulation()
    #expect(try await simulation.run { 7 } == 7)
    await #expect(throws: Failure.self) {
      try await simulation.run { throw Failure() }
    }
  }

  @Test func `a simulation can be run from code that is not async`() throws {
    let simulation = Simulation()
    let woken = try simulation.runBlocking {
      try await simulation.sleep(for: .seconds(5))
      return simulation.now
    }
    #expect(woken.nanoseconds == 5_000_000_000)
  }

  @Test func `sleepers on several loops wake in the order of their times`() async throws {
    let simulation = Simulation()
    let order = Mutex<[String]>([])
    let loops = ["a", "b", "c"].map { simulation.eventLoop(named: $0) }
    try await simulation.run {
      for (index, loop) in loops.enumerated() {
        simulation.spawn(on: loop) {
          try await loop.sleep(for: .seconds(30 - 10 * index))
          #expect(loop.isCurrent)
          order.withLock { $0.append("\(loop.name) at \(simulation.now.nanoseconds)") }
        }
      }
      try await simulation.sleep(for: .seconds(60))
    }
    #expect(
      order.withLock { $0 } == ["c at 10000000000", "b at 20000000000", "a at 30000000000"]
    )
  }

  @Test func `virtual time stands still between runs`() async throws {
    let simulation = Simulation()
    let woken = Atomic(false)
    try await simulation.run {
      simulation.spawn {
        try await simulation.sleep(for: .seconds(2))
        woken.store(true, ordering: .relaxed)
      }
      try await simulation.sleep(for: .seconds(1))
    }
    #expect(simulation.now.nanoseconds == 1_000_000_000)
    #expect(simulation.earliestTimers.map(\.loop) == ["main"])
    let isEarly = woken.load(ordering: .relaxed)
    #expect(!isEarly)
    try await simulation.run { try await simulation.sleep(for: .seconds(2)) }
    let isAwake = woken.load(ordering: .relaxed)
    #expect(isAwake)
    #expect(simulation.pendingTimers == [])
  }

  @Test func `a body that nothing can wake is stuck`() async throws {
    let simulation = Simulation(configuration: Self.impatient)
    let error = await #expect(throws: SimulationError.self) {
      try await simulation.run {
        let listener = try ListenerProbe(.ipv4(10, 0, 0, 1, port: 80), on: simulation.mainLoop)
        defer { listener.listener.close() }
        try await simulation.sleep(for: .seconds(1))
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
      }
    }
    #expect(error?.code == .stuck)
    #expect(error?.time.nanoseconds == 1_000_000_000)
    #expect(error?.state.contains("listening: 10.0.0.1:80") == true)
    // The usual cause is a client on a loop of its own.
    #expect(error?.state.contains("`on: simulation.mainLoop`") == true)
    // The body was cancelled, and closed what it had opened.
    #expect(simulation.openListeners == [])
  }

  @Test func `a body has a bounded virtual time`() async throws {
    let simulation = Simulation(configuration: Self.impatient)
    let error = await #expect(throws: SimulationError.self) {
      try await simulation.run {
        while true { try await simulation.sleep(for: .seconds(1)) }
      }
    }
    #expect(error?.code == .timeLimit)
    #expect(error?.time.nanoseconds == 100_000_000_000)
  }

  @Test func `work that wakes itself for ever is found`() async throws {
    let simulation = Simulation(configuration: Self.impatient)
    let error = await #expect(throws: SimulationError.self) {
      try await simulation.run {
        let pair = try await simulation.connectedPair()
        // Ready for writing, and never written to.
        pair.client.readsAlong = true
        pair.client.stream.setInterest(.write)
        try await simulation.sleep(for: .seconds(1))
      }
    }
    #expect(error?.code == .busy)
  }

  @Test func `work of other threads is waited for`() async throws {
    // The pool may be busy with other tests for as long as it likes.
    let simulation = Simulation(
      configuration: Simulation.Configuration(foreignGrace: .seconds(3600)))
    let value = try await simulation.run {
      await Task.detached { 7 }.value
    }
    #expect(value == 7)
  }

  @Test func `cancelling the caller cancels the body`() async throws {
    let simulation = Simulation()
    let caller = Task {
      try await simulation.run {
        while true { try await simulation.sleep(for: .milliseconds(1)) }
      }
    }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
  }
}
