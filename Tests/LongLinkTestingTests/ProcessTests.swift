import LongLinkTesting
import Synchronization
import Testing

/// Processes that are started, killed and started again.
@Suite struct ProcessTests {
  private final class Disk: Sendable {
    let writes = Mutex(0)
  }

  @Test func `each start runs the body on a fresh loop`() async throws {
    let simulation = Simulation()
    let runs = Mutex<[(Int, Bool)]>([])
    let process = simulation.process(named: "p") { run in
      runs.withLock { $0.append((run.number, run.loop.isCurrent)) }
    }
    try await simulation.run {
      #expect(!process.isRunning)
      let first = try await process.start()
      let second = try await process.start()
      #expect(first.loop !== second.loop)
      #expect([first.isAlive, second.isAlive] == [false, true])
      #expect(process.current === second)
      #expect(simulation.machine(of: first.loop) == process.machine)
      #expect(simulation.machine(of: second.loop) == process.machine)
    }
    let seen = runs.withLock { $0 }
    #expect(seen.map(\.0) == [1, 2])
    #expect(seen.map(\.1) == [true, true])
  }

  @Test func `a state lives on over a crash, until a start loses it`() async throws {
    let simulation = Simulation()
    let seen = Mutex<[Int]>([])
    let process = simulation.process(named: "p", state: { Disk() }) { _, disk in
      let count = disk.writes.withLock { count in
        count += 1
        return count
      }
      seen.withLock { $0.append(count) }
    }
    try await simulation.run {
      try await process.start()
      process.crash(.machine)
      try await process.start()
      process.crash()
      try await process.start(losingState: true)
    }
    #expect(seen.withLock { $0 } == [1, 2, 1])
  }

  @Test func `a crash brings all that the process waits for to its end`() async throws {
    let simulation = Simulation()
    let ended = Mutex<[String]>([])
    let process = simulation.process(named: "p") { run in
      run.spawn {
        await #expect(throws: CancellationError.self) {
          try await run.loop.sleep(for: .seconds(1_000_000))
        }
        ended.withLock { $0.append("task") }
      }
      run.atEnd { ended.withLock { $0.append("first") } }
      run.atEnd {
        #expect(!run.isAlive)
        ended.withLock { $0.append("second") }
      }
    }
    try await simulation.run {
      let run = try await process.start()
      try await simulation.sleep(for: .seconds(1))
      // A frozen process can be killed.
      process.machine.pause()
      process.crash()
      #expect(!process.machine.isPaused)
      try await simulation.sleep(for: .seconds(1))
      #expect(run.isOver)
    }
    #expect(ended.withLock { $0 }.sorted() == ["first", "second", "task"])
    #expect(ended.withLock { $0 }.filter { $0 != "task" } == ["second", "first"])
    #expect(simulation.pendingTimers == [])
  }

  @Test func `a body that fails leaves no process`() async throws {
    struct Failure: Error {}
    let simulation = Simulation()
    let process = simulation.process(named: "p") { _ in throw Failure() }
    try await simulation.run {
      await #expect(throws: Failure.self) { try await process.start() }
      #expect(!process.isRunning)
    }
  }
}
