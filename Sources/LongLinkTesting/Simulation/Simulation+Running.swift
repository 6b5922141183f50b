// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension Simulation {
  /// Runs a body as a task on the main loop, and everything else that happens meanwhile.
  ///
  /// Returns what the body returns and throws what it throws; ``SimulationError`` where it cannot
  /// come to its end. Then it is cancelled, and left behind if it does not heed that. The world
  /// stands still afterwards; a later `run` goes on from there. There is one `run` at a time.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    let thread = try EventLoop(name: "simulation")
    defer { thread.shutDown() }
    let outcome = Outcome<T>(Mutex(nil))
    let task = start(body, outcome)
    return try await withTaskCancellationHandler {
      try await withCheckedContinuation { continuation in
        thread.execute {
          continuation.resume(returning: self.finish(task, outcome))
        }
      }.get()
    } onCancel: {
      task.cancel()
    }
  }

  /// Runs a body to its end and blocks the thread meanwhile, for tests that are not `async`.
  ///
  /// As `run` does in all else. It must not be called in a simulation.
  public func runBlocking<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T
  ) throws -> T {
    precondition(!loops.contains { $0.isCurrent }, "a simulation cannot be run within itself")
    let thread = try EventLoop(name: "simulation")
    let outcome = Outcome<T>(Mutex(nil))
    let task = start(body, outcome)
    let result = Mutex<Result<T, any Error>?>(nil)
    thread.execute {
      let value = self.finish(task, outcome)
      result.withLock { $0 = value }
    }
    // Runs what was queued, and returns when the thread has ended.
    thread.shutDown()
    return try result.withLock { $0! }.get()
  }

  private func start<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T,
    _ outcome: Outcome<T>
  ) -> Task<Void, Never> {
    Task(executorPreference: mainLoop) {
      do {
        let value = try await body()
        outcome.value.withLock { $0 = .success(value) }
      } catch {
        outcome.value.withLock { $0 = .failure(error) }
      }
    }
  }

  /// Steps the world until the body has come to its end, or cannot.
  private func finish<T: Sendable>(
    _ task: Task<Void, Never>,
    _ outcome: Outcome<T>
  ) -> Result<T, any Error> {
    let isFirst = runState.compareExchange(
      expected: false,
      desired: true,
      ordering: .acquiringAndReleasing
    ).exchanged
    precondition(isFirst, "a simulation is run by one caller at a time")
    networkState.watch.begin()
    defer {
      networkState.watch.end()
      runState.store(false, ordering: .releasing)
    }
    let limit = now.advanced(by: configuration.timeLimit)
    do throws(SimulationError) {
      try step(until: limit) { outcome.value.withLock { $0 != nil } }
      settle()
      return outcome.value.withLock { $0! }
    } catch {
      task.cancel()
      // Those who heed the cancellation end in good order; the error says why all ended.
      try? step(until: limit.advanced(by: .seconds(60))) { outcome.value.withLock { $0 != nil } }
      settle()
      return .failure(error)
    }
  }
}

/// Where a body leaves what came of it.
private typealias Outcome<T: Sendable> = Box<Mutex<Result<T, any Error>?>>

// MARK: - Steps

extension Simulation {
  /// Turns loops that have work, in their order, and moves time when none has.
  private func step(
    until limit: LinkInstant,
    _ isDone: () -> Bool
  ) throws(SimulationError) {
    var turns = 0
    while true {
      let turned = turnLoops()
      if isDone() { return }
      if turned > 0 {
        turns += turned
        guard turns <= configuration.turnLimit else { throw failure(.busy) }
        continue
      }
      turns = 0
      guard let next = nextTime else {
        guard awaitForeignWork() else { throw failure(.stuck) }
        continue
      }
      guard next <= limit else { throw failure(.timeLimit) }
      networkState.advance(to: next)
    }
  }

  /// Lets the work of this moment come to its end, after a body has.
  private func settle() {
    var turns = 0
    while turns < configuration.turnLimit {
      let turned = turnLoops()
      guard turned > 0 else { return }
      turns += turned
    }
  }

  /// Gives each loop that has something to do one turn, and returns how many had.
  private func turnLoops() -> Int {
    var turned = 0
    for loop in loops {
      let driver = loop.simulatedDriver
      let isDue = driver.deadline.map { $0 <= now } ?? false
      guard isDue || loop.hasWork || driver.hasReady, !driver.isFrozen else { continue }
      loop.turn(waitingUntil: .distantPast)
      turned += 1
    }
    return turned
  }

  /// When something happens next; nil when nothing will.
  private var nextTime: LinkInstant? {
    var next = networkState { $0.schedule.nextTime }
    for loop in loops {
      let driver = loop.simulatedDriver
      guard let deadline = driver.deadline, deadline < next ?? .distantFuture, !driver.isFrozen
      else { continue }
      next = deadline
    }
    return next
  }

  /// Waits in real time for work from threads outside of the simulation; false when none comes.
  private func awaitForeignWork() -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + configuration.foreignGrace
    repeat {
      if hasTurnableWork { return true }
      usleep(200)
    } while clock.now < end
    return hasTurnableWork
  }

  private var hasTurnableWork: Bool {
    loops.contains { $0.hasWork && !$0.simulatedDriver.isFrozen }
  }

  private func failure(_ code: SimulationError.Code) -> SimulationError {
    var lines = loops.map { loop in
      let timer = loop.simulatedDriver.deadline.map { "a timer at \($0.sinceStart)" } ?? "no timer"
      return "loop \"\(loop.name)\": \(loop.hasWork ? "work, " : "")\(timer)"
    }
    lines += machines.filter(\.isPaused).map { "frozen: \($0.name)" }
    lines += escapes.map { "escaped: \($0)" }
    lines += openStreams.map { "open: \($0)" }
    lines += openListeners.map { "listening: \($0)" }
    lines += trace.suffix(20).map { "  \($0)" }
    return SimulationError(code: code, time: now, state: lines.joined(separator: "\n"))
  }
}

extension EventLoop {
  /// The driver of a simulation's loop, which has no other kind.
  var simulatedDriver: SimulatedDriver {
    unsafe unsafeDowncast(driver, to: SimulatedDriver.self)
  }
}
