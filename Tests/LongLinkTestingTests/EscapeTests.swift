// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What leaves a simulation, and what keeps it in.
@Suite struct EscapeTests {
  private static let capturing = Simulation.Configuration(
    foreignGrace: .seconds(3_600),
    capturesUnstructuredTasks: true
  )
  private static let patient = Simulation.Configuration(foreignGrace: .seconds(3_600))

  @Test func `a task that comes back from outside is reported by its name`() async throws {
    let simulation = Simulation(configuration: Self.patient)
    try await simulation.run {
      try await simulation.sleep(for: .seconds(1))
      await Task.detached(name: "runaway") {
        _ = simulation.spawn {}
      }.value
    }
    let escape = try #require(simulation.escapes.first { $0.task == "runaway" })
    #expect(escape.loop == "main")
    #expect(escape.time.nanoseconds == 1_000_000_000)
    #expect(escape.description.contains(#"task "runaway" came to loop "main""#))
  }

  @Test func `a real sleep is reported, captured or not`() async throws {
    for configuration in [Self.patient, Self.capturing] {
      let simulation = Simulation(configuration: configuration)
      // A sleep that ends before its task has suspended does not leave the simulation.
      for _ in 0..<1_000 where simulation.escapes.isEmpty {
        try await simulation.run { try await Task.sleep(for: .milliseconds(1)) }
      }
      let escape = try #require(simulation.escapes.first)
      #expect(escape.task?.contains("id: ") == true)
    }
  }

  @Test func `tasks that stay in the simulation are not reported`() async throws {
    let simulation = Simulation()
    let other = simulation.eventLoop(named: "other")
    let value = try await simulation.run {
      async let child = simulation.random()
      try await simulation.sleep(for: .seconds(1))
      let task = simulation.spawn(on: other) {
        try await other.sleep(for: .seconds(1))
        return 1
      }
      let stream = AsyncStream<Int> { continuation in
        simulation.spawn(on: other) {
          continuation.yield(2)
          continuation.finish()
        }
      }
      var sum = try await task.value
      for await value in stream { sum += value }
      _ = await child
      return sum
    }
    #expect(value == 3)
    #expect(simulation.escapes == [])
  }

  @Test func `another thread's work between runs is no escape`() async throws {
    let simulation = Simulation()
    let task = simulation.spawn { 7 }
    try await simulation.run { try await simulation.sleep(for: .seconds(1)) }
    #expect(try await task.value == 7)
    #expect(simulation.escapes == [])
  }

  /// The order in which unstructured tasks come to write, which threads would change.
  private func order(seed: UInt64) async throws -> ([Int], UInt64) {
    let simulation = Simulation(seed: seed, configuration: Self.capturing)
    let order = try await simulation.run {
      let order = Mutexed<[Int]>([])
      let pair = try await simulation.connectedPair()
      let probe = Confined(pair.client)
      let tasks = (0..<50).map { number in
        Task {
          for _ in 0..<3 { await Task.yield() }
          try await simulation.sleep(for: .milliseconds(simulation.random(in: 1...20)))
          #expect(simulation.mainLoop.isCurrent)
          try probe.value.write([UInt8(number)])
          order.value.withLock { $0.append(number) }
        }
      }
      for task in tasks { try await task.value }
      return order.value.withLock { $0 }
    }
    #expect(simulation.escapes == [])
    return (order, simulation.traceHash)
  }

  @Test func `captured tasks run in the simulation, in an order of its seed`() async throws {
    let first = try await order(seed: 3)
    let second = try await order(seed: 3)
    #expect(first == second)
    #expect(first.0.sorted() == Array(0..<50))
    #expect(try await order(seed: 4).0 != first.0)
  }

  @Test func `a simulation that captures leaves other tasks alone`() async throws {
    let capturing = Simulation(configuration: Self.capturing)
    try await capturing.run {}
    let other = Simulation(configuration: Self.patient)
    let isInside = try await other.run { await Task.detached { other.mainLoop.isCurrent }.value }
    #expect(!isInside)
    #expect(await Task.detached { capturing.mainLoop.isCurrent }.value == false)
  }
}

/// A value behind a lock that closures can share.
private final class Mutexed<Value: Sendable>: Sendable {
  let value: Mutex<Value>

  init(_ value: Value) {
    self.value = Mutex(value)
  }
}

/// A value that is touched on the simulation's thread alone.
private struct Confined<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
