// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport
internal import Synchronization

/// A process of a simulation, on its own machine, that can crash and start again.
///
/// Its body creates the process's objects on the given loop, and registers their cleanup. Each
/// start runs the body again, on a new loop:
///
/// ```swift
/// let server = simulation.process(named: "server") { run in
///   let server = try LongLinkServer(ServerConfiguration(listen: [address]), on: [run.loop])
///   server.route(1) { request in request.body }
///   run.atEnd { await server.shutDown(within: .zero) }
///   try await server.start()
/// }
/// try await server.start()
/// ```
///
/// A crash immediately cuts the run's loops off from the network. The run goes on as a *ghost*, so
/// that its tasks and continuations can end: its tasks are cancelled, and the closures passed to
/// `atEnd` run. Code that counts what a process did should skip ghosts: check ``Run/isAlive``
/// first. Any thread may use a process.
public final class SimulatedProcess: Sendable {
  /// A way for a process to crash.
  public enum Crash: Hashable, Sendable {
    /// The process dies. The kernel of its machine closes its sockets, with a reset if they have
    /// unread bytes, and refuses new connections.
    case process
    /// The machine dies silently: packets to it do not arrive, and its peers are not notified.
    /// After a restart, it resets the old connections when packets arrive on them.
    case machine
  }

  /// The name of the process and of its machine.
  public let name: String
  /// The machine that the process runs on, the same for all starts.
  public let machine: SimulatedMachine

  private let simulation: Simulation
  private let body: @Sendable (Run) async throws -> Void
  private let loseState: @Sendable () -> Void
  private let state = Mutex(State())

  private struct State {
    var current: Run?
    var starts = 0
  }

  init(
    _ name: String,
    in simulation: Simulation,
    loseState: @escaping @Sendable () -> Void,
    _ body: @escaping @Sendable (Run) async throws -> Void
  ) {
    self.name = name
    self.simulation = simulation
    self.loseState = loseState
    self.body = body
    machine = simulation.machine(named: name)
  }

  /// The current run; nil before the first start, after a crash, and after a body has thrown an
  /// error.
  public var current: Run? { state.withLock { $0.current } }

  /// Whether the process has been started and has not crashed since.
  public var isRunning: Bool { current != nil }

  /// Starts the process, and returns its new run once the body has returned.
  ///
  /// A running process crashes first, as by ``Crash/process``. If the body throws, the process
  /// crashes, and the error is thrown. If the process crashes while its body runs, this function
  /// still waits for the body. Cancelling the calling task cancels the body. With `losingState`,
  /// the state of a process that was made with one is made anew.
  @discardableResult
  public func start(
    losingState: Bool = false, fileID: String = #fileID, line: Int = #line
  ) async throws -> Run {
    crash()
    if losingState { loseState() }
    let run = state.withLock { state in
      state.starts += 1
      let loop = simulation.eventLoop(named: name, on: machine)
      let run = Run(number: state.starts, loop: loop, on: machine, in: simulation)
      state.current = run
      return run
    }
    simulation.networkState { [machine] in $0.started(machine.index) }
    let task = run.spawn(fileID: fileID, line: line) { [body] in try await body(run) }
    do {
      try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch {
      if run.isAlive { crash() }
      throw error
    }
    return run
  }

  /// Crashes the process immediately, by default like a process that is killed. Does nothing if it
  /// does not run.
  public func crash(_ crash: Crash = .process) {
    guard let run = state.withLock({ $0.current.take() }) else { return }
    run.die()
    simulation.networkState { [machine] in $0.crash(machine.index, isWhole: crash == .machine) }
    run.haunt()
  }
}

// MARK: - One run

extension SimulatedProcess {
  /// A run of a process, from a start to a crash.
  public final class Run: Sendable {
    /// The number of this start among all starts of the process, from 1.
    public let number: Int
    /// The loop that the body runs on.
    public let loop: EventLoop
    /// The machine of the process.
    public let machine: SimulatedMachine
    private let simulation: Simulation
    private let state = Mutex(State())
    private let alive = Atomic(true)

    private struct State {
      var loops: [EventLoop] = []
      /// The functions that cancel the running tasks, by the number of the task.
      var tasks: [Int: @Sendable () -> Void] = [:]
      var tasksStarted = 0
      var atEnd: [@Sendable () async -> Void] = []
      var isOver = false
    }

    init(number: Int, loop: EventLoop, on machine: SimulatedMachine, in simulation: Simulation) {
      self.number = number
      self.loop = loop
      self.machine = machine
      self.simulation = simulation
      state.withLock { $0.loops = [loop] }
    }

    /// Whether the run has not crashed.
    public var isAlive: Bool { alive.load(ordering: .acquiring) }

    /// Whether the run has crashed and its cleanup has finished.
    public var isOver: Bool { state.withLock { $0.isOver } }

    /// Makes another loop of the process. After the crash, a new loop is cut off from the network
    /// at once, like the run's other loops.
    public func eventLoop(named name: String) -> EventLoop {
      let loop = simulation.eventLoop(named: name, on: machine)
      state.withLock { $0.loops.append(loop) }
      if !isAlive { loop.simulatedDriver.cutOff() }
      return loop
    }

    /// Registers cleanup for a part of the process, to be run on the run's loop after a crash, the
    /// last one first. Without a crash it does not run.
    ///
    /// If the cleanup of the run has already finished, for example because it crashed during its
    /// body, this one starts now.
    public func atEnd(_ work: @escaping @Sendable () async -> Void) {
      let isLate = state.withLock { state in
        state.atEnd.append(work)
        return state.isOver
      }
      if isLate { haunt() }
    }

    /// Starts a task of the process, by default on the run's loop. A crash cancels it. After a
    /// crash, a new task is cancelled at once.
    @discardableResult
    public func spawn<T: Sendable>(
      on loop: EventLoop? = nil, fileID: String = #fileID, line: Int = #line,
      _ body: @escaping @Sendable () async throws -> T
    ) -> Task<T, any Error> {
      let number = state.withLock { state in
        state.tasksStarted += 1
        return state.tasksStarted
      }
      let task = simulation.spawn(on: loop ?? self.loop, fileID: fileID, line: line) {
        defer { self.state.withLock { $0.tasks[number] = nil } }
        return try await body()
      }
      state.withLock { $0.tasks[number] = { task.cancel() } }
      if !isAlive { task.cancel() }
      return task
    }

    /// Marks the run as crashed, and cuts its loops off from the world.
    func die() {
      alive.store(false, ordering: .releasing)
      for loop in state.withLock({ $0.loops }) { loop.simulatedDriver.cutOff() }
    }

    /// Cancels the run's tasks and runs its cleanup.
    func haunt() {
      let tasks = state.withLock { state in
        defer { state.tasks = [:] }
        return state.tasks.sorted { $0.key < $1.key }.map(\.value)
      }
      for cancel in tasks { cancel() }
      Task(executorPreference: loop) {
        while let work = self.state.withLock({ $0.atEnd.popLast() }) { await work() }
        self.state.withLock { $0.isOver = true }
      }
    }
  }
}
