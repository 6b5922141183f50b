// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport
internal import Synchronization

/// A process of a simulation, on a machine of its own, that can crash and start again.
///
/// Its body builds what the process consists of, on the loop that it is given, and says how that is
/// let go. Each start runs the body anew, on a fresh loop:
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
/// A crash cuts the run's loops off from the network in that moment. They go on as a ghost, so that
/// every task and continuation on them comes to its end: tasks of the run are cancelled, and what
/// was said with `atEnd` runs. What a ghost does counts for nothing; code that keeps count of what
/// a process did asks ``Run/isAlive`` first. From any thread.
public final class SimulatedProcess: Sendable {
  /// How a process comes to its end.
  public enum Crash: Hashable, Sendable {
    /// The process dies; the kernel of its machine closes its sockets, with a reset where something
    /// was left unread, and refuses new connections.
    case process
    /// The machine dies without a word: what is sent to it does not arrive, and nobody is told.
    /// Once it has started again, it resets what still comes for the connections of before.
    case machine
  }

  /// The name that the process was given, which its machine has too.
  public let name: String
  /// The machine that it runs on; it stays the same over all starts.
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

  /// The run that is alive; nil before the first start and after a crash.
  public var current: Run? { state.withLock { $0.current } }

  /// Whether it runs.
  public var isRunning: Bool { current != nil }

  /// Starts it, and returns when its body has. Throws what the body throws, after a crash too.
  ///
  /// One that runs already crashes first, as by ``Crash/process``. `losingState` makes the state of
  /// a process that has some anew; false by default.
  @discardableResult
  public func start(losingState: Bool = false) async throws -> Run {
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
    let task = run.spawn { [body] in try await body(run) }
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

  /// Ends it at once. One that does not run is left as it is.
  public func crash(_ crash: Crash = .process) {
    guard let run = state.withLock({ $0.current.take() }) else { return }
    run.die()
    simulation.networkState { [machine] in $0.crash(machine.index, isWhole: crash == .machine) }
    run.haunt()
  }
}

// MARK: - One run

extension SimulatedProcess {
  /// One life of a process, from a start to a crash.
  public final class Run: Sendable {
    /// Counts the process's starts from 1.
    public let number: Int
    /// The loop that the body runs on.
    public let loop: EventLoop
    /// The machine that it runs on.
    public let machine: SimulatedMachine
    private let simulation: Simulation
    private let state = Mutex(State())
    private let alive = Atomic(true)

    private struct State {
      var loops: [EventLoop] = []
      /// What cancels the tasks that have not ended, by the order in which they were started.
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

    /// Whether it has not crashed yet.
    public var isAlive: Bool { alive.load(ordering: .acquiring) }

    /// Whether it has crashed and all that was said with `atEnd` has run.
    public var isOver: Bool { state.withLock { $0.isOver } }

    /// Makes another loop of the process. One that is made after the crash is a ghost as well.
    public func eventLoop(named name: String) -> EventLoop {
      let loop = simulation.eventLoop(named: name, on: machine)
      state.withLock { $0.loops.append(loop) }
      if !isAlive { loop.simulatedDriver.cutOff() }
      return loop
    }

    /// Says what lets a part of the process go, after its crash; what was said last runs first.
    ///
    /// After the end, for instance by a body that a crash has overtaken, it runs at once.
    public func atEnd(_ work: @escaping @Sendable () async -> Void) {
      let isLate = state.withLock { state in
        state.atEnd.append(work)
        return state.isOver
      }
      if isLate { haunt() }
    }

    /// Starts a task of the process, on `loop` or else the loop of the run; a crash cancels it.
    @discardableResult
    public func spawn<T: Sendable>(
      on loop: EventLoop? = nil,
      _ body: @escaping @Sendable () async throws -> T
    ) -> Task<T, any Error> {
      let number = state.withLock { state in
        state.tasksStarted += 1
        return state.tasksStarted
      }
      let task = Task(executorPreference: loop ?? self.loop) {
        defer { self.state.withLock { $0.tasks[number] = nil } }
        return try await body()
      }
      state.withLock { $0.tasks[number] = { task.cancel() } }
      if !isAlive { task.cancel() }
      return task
    }

    /// Cuts the loops off from the world.
    func die() {
      alive.store(false, ordering: .releasing)
      for loop in state.withLock({ $0.loops }) { loop.simulatedDriver.cutOff() }
    }

    /// Brings what is left of the run to its end.
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
