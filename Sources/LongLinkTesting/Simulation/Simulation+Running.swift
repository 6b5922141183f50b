// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

extension Simulation {
  /// Runs a body as a task on the main loop, together with the rest of the simulation.
  ///
  /// Returns the body's result or throws its error. If the body cannot finish, it is cancelled, and
  /// ``SimulationError`` is thrown, with the place at which the body waited. A body that does not
  /// end after the cancellation is abandoned. If the calling task is cancelled, so is the body.
  ///
  /// The simulation stops afterwards, and a later `run` continues from there. A second `run` at the
  /// same time traps.
  public func run<T: Sendable>(
    fileID: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    let thread = try EventLoop(name: "simulation")
    defer { thread.shutDown() }
    let outcome = Outcome<T>(Mutex(nil))
    let task = start(body, outcome, at: SourcePlace(fileID: fileID, line: line))
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

  /// Runs a body like ``run(fileID:line:_:)``, but blocks the calling thread until it has ended;
  /// for tests that are not `async`.
  ///
  /// It traps on a loop of this simulation.
  public func runBlocking<T: Sendable>(
    fileID: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable () async throws -> T
  ) throws -> T {
    precondition(!loops.contains { $0.isCurrent }, "a simulation cannot be run within itself")
    let thread = try EventLoop(name: "simulation")
    let outcome = Outcome<T>(Mutex(nil))
    let task = start(body, outcome, at: SourcePlace(fileID: fileID, line: line))
    let result = Mutex<Result<T, any Error>?>(nil)
    thread.execute {
      let value = self.finish(task, outcome)
      result.withLock { $0 = value }
    }
    // Runs the queued work, and returns when the thread has ended.
    thread.shutDown()
    return try result.withLock { $0! }.get()
  }

  private func start<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T,
    _ outcome: Outcome<T>,
    at place: SourcePlace
  ) -> Task<Void, Never> {
    let scope = waits.began(at: place)
    return Task(executorPreference: mainLoop) {
      defer { scope.ended() }
      do {
        let value = try await WaitList.$scope.withValue(scope) { try await body() }
        outcome.value.withLock { $0 = .success(value) }
      } catch {
        outcome.value.withLock { $0 = .failure(error) }
      }
    }
  }

  /// Steps the world until the body has finished, or can no longer finish.
  private func finish<T: Sendable>(
    _ task: Task<Void, Never>,
    _ outcome: Outcome<T>
  ) -> Result<T, any Error> {
    let isFirst = runState.compareExchange(
      expected: false,
      desired: true,
      ordering: .acquiringAndReleasing
    ).exchanged
    precondition(isFirst, "a simulation allows only one run at a time")
    networkState.watch.begin()
    let outside = OutsideConnects.shared.watch { [networkState] in networkState.tried($0) }
    defer {
      OutsideConnects.shared.endWatch(outside)
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
      // Gives tasks time to react to the cancellation; the error states why the run ended.
      try? step(until: limit.advanced(by: .seconds(60))) { outcome.value.withLock { $0 != nil } }
      settle()
      return .failure(error)
    }
  }
}

/// The result of a body; nil until it has finished.
private typealias Outcome<T: Sendable> = Box<Mutex<Result<T, any Error>?>>

// MARK: - Steps

extension Simulation {
  /// Gives turns to the loops that have work, in order, and advances time when none has.
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

  /// Finishes the remaining work of the current instant, after the body.
  private func settle() {
    var turns = 0
    while turns < configuration.turnLimit {
      let turned = turnLoops()
      guard turned > 0 else { return }
      turns += turned
    }
  }

  /// Gives each loop with work one turn, and returns the number of these loops.
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

  /// When the next event or timer is due; nil if there is none.
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

  /// Waits in real time for work from threads outside the simulation; false if none comes.
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
}

extension EventLoop {
  /// The driver of a loop that is known to be simulated.
  var simulatedDriver: SimulatedDriver {
    unsafe unsafeDowncast(driver, to: SimulatedDriver.self)
  }
}
