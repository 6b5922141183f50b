// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport
internal import Synchronization

/// A world in which time is virtual and the network is simulated: event loops, links and chance,
/// all on one thread and determined by a seed.
///
/// Clients and servers run in it unchanged, on event loops that it makes. Virtual time stands still
/// while anything has work to do and jumps when nothing has, so that hours take no time. The same
/// seed gives the same run, as long as everything takes its time, its randomness and its tasks from
/// the simulation: a task that is made without the executor of its parent leaves it
/// (`Task.detached`, and `Task.init` without `executorPreference`). What comes back is reported:
/// ``escapes``.
///
/// ```swift
/// let simulation = Simulation(seed: 7)
/// let slept = try await simulation.run {
///   try await simulation.sleep(for: .seconds(36_000))
///   return simulation.now
/// }
/// ```
///
/// What can go wrong is done to it by hand: links (``SimulatedNetwork/links``), the ways between
/// machines (``network``), machines (``machine(of:)``) and processes (``process(named:_:)``).
public final class Simulation: Sendable {
  /// Bounds of a simulation.
  public struct Configuration: Sendable {
    /// The most virtual time that one `run` may take: a day by default.
    public var timeLimit: Duration
    /// The most turns of its loops at one moment of virtual time: a million by default.
    public var turnLimit: Int
    /// How many of the last events `trace` keeps: 4,096 by default.
    public var traceCapacity: Int
    /// How long, in real time, a body that waits while nothing can happen in the simulation waits
    /// for other threads, before it counts as stuck: 5 seconds by default.
    public var foreignGrace: Duration
    /// Whether tasks that are made in the simulation without an executor run in it; false by
    /// default.
    ///
    /// The Swift runtime of the whole process is told to ask for that, from the first such
    /// simulation on. Tasks of other simulations and threads are left alone. Real sleeps
    /// (`Task.sleep`) stay real, and end outside of the simulation.
    public var capturesUnstructuredTasks: Bool

    /// Makes a configuration; each part has a default.
    public init(
      timeLimit: Duration = .seconds(86_400),
      turnLimit: Int = 1_000_000,
      traceCapacity: Int = 4_096,
      foreignGrace: Duration = .seconds(5),
      capturesUnstructuredTasks: Bool = false
    ) {
      self.timeLimit = timeLimit
      self.turnLimit = turnLimit
      self.traceCapacity = traceCapacity
      self.foreignGrace = foreignGrace
      self.capturesUnstructuredTasks = capturesUnstructuredTasks
    }
  }

  /// The seed that determines the run.
  public let seed: UInt64
  /// The bounds that the simulation was made with.
  public let configuration: Configuration
  /// The loop on which bodies run, named "main".
  public let mainLoop: EventLoop
  /// The network between the loops, to be shaped and broken.
  public let network: SimulatedNetwork

  let networkState: SharedNetwork
  let runState = Atomic(false)
  let loopsMade: Mutex<[EventLoop]>
  private let generator: Mutex<SeededGenerator>
  let origin: SeededGenerator

  /// Makes a world in which nothing has happened yet.
  public init(seed: UInt64 = 0, configuration: Configuration = Configuration()) {
    self.seed = seed
    self.configuration = configuration
    origin = SeededGenerator(seed: seed)
    generator = Mutex(origin.forked(for: 1))
    networkState = SharedNetwork(
      generator: origin.forked(for: 2),
      traceCapacity: configuration.traceCapacity,
      capturesTasks: configuration.capturesUnstructuredTasks
    )
    network = SimulatedNetwork(networkState: networkState)
    networkState { $0.machines = [NetworkState.MachineRecord(name: "main")] }
    mainLoop = Self.makeLoop(
      named: "main", index: 0, machine: 0, networkState: networkState, origin: origin)
    loopsMade = Mutex([mainLoop])
    if configuration.capturesUnstructuredTasks { TaskCapture.install() }
  }

  deinit {
    networkState { $0.schedule.removeAll() }
  }

  static func makeLoop(
    named name: String,
    index: Int,
    machine: Int,
    networkState: SharedNetwork,
    origin: SeededGenerator
  ) -> EventLoop {
    let driver = SimulatedDriver(
      networkState: networkState,
      machine: machine,
      index: index,
      generator: origin.forked(for: 0x100 + UInt64(index))
    )
    var configuration = EventLoop.Configuration()
    configuration.isQuiet = true
    let loop = EventLoop(
      driver: driver,
      name: name,
      configuration: configuration,
      onHandOver: { [networkState] job in
        networkState.watch.handedOver(job, to: name, at: networkState.now)
      }
    )
    driver.loop = loop
    return loop
  }

  /// All loops, in the order in which they were made.
  var loops: [EventLoop] { loopsMade.withLock { $0 } }
}

// MARK: - Time and chance

extension Simulation {
  /// The virtual time; it begins at 0. From any thread.
  public var now: LinkInstant { networkState.now }

  /// The clock of the main loop, for code that takes a clock.
  public var clock: EventLoopClock { mainLoop.clock }

  /// Waits for a virtual time. Throws `CancellationError` when the task is cancelled before.
  public func sleep(for duration: Duration) async throws(CancellationError) {
    try await mainLoop.sleep(for: duration)
  }

  /// The next 64 random bits, determined by the seed and the number of draws before.
  public func random() -> UInt64 {
    generator.withLock { $0.next() }
  }

  /// A random number of a range, determined by the seed and the number of draws before.
  public func random<Value: FixedWidthInteger & Sendable>(in range: ClosedRange<Value>) -> Value {
    generator.withLock { Value.random(in: range, using: &$0) }
  }

  /// Starts a task in the simulation, on `loop` or else on the main loop.
  ///
  /// It runs while a `run` does, whoever started it.
  @discardableResult
  public func spawn<T: Sendable>(
    on loop: EventLoop? = nil,
    _ body: @escaping @Sendable () async throws -> T
  ) -> Task<T, any Error> {
    Task(executorPreference: loop ?? mainLoop) { try await body() }
  }
}

// MARK: - What is left, and what happened

extension Simulation {
  /// The streams that somebody has not closed, a line each; empty when nothing was leaked.
  public var openStreams: [String] {
    let names = loops.map(\.name)
    return networkState { $0.openStreams(loopNames: names) }
  }

  /// The addresses that somebody listens on.
  public var openListeners: [SocketAddress] {
    networkState { networkState in
      networkState.addresses.listeners.values.sorted { $0.number < $1.number }.map(\.address)
    }
  }

  /// The loops that have a timer, each with the time of the earliest one.
  ///
  /// To be asked in the simulation, or while no `run` is under way.
  public var pendingTimers: [PendingTimer] {
    let loops = loops
    precondition(
      !runState.load(ordering: .acquiring) || loops.contains { $0.isCurrent },
      "timers are to be asked for in the simulation, or when it does not run"
    )
    return loops.compactMap { loop in
      loop.simulatedDriver.deadline.map { PendingTimer(loop: loop.name, deadline: $0) }
    }
  }

  /// A loop that has at least one timer.
  public struct PendingTimer: Hashable, Sendable {
    /// The loop's name.
    public let loop: String
    /// When the earliest of its timers fires, or is looked at.
    public let deadline: LinkInstant
  }

  /// The last events, the oldest first, a line each: what the network did, and moves of the time.
  public var trace: [String] {
    networkState { networkState in
      networkState.trace.lines(machines: networkState.machines.map(\.name))
    }
  }

  /// A hash over all events since the beginning: two runs that agree in it did the same.
  public var traceHash: UInt64 { networkState { $0.trace.hash } }

  /// What came into the simulation from outside while it ran: the first hundred, in their order.
  ///
  /// A run with escapes may not replay. Empty where nothing has escaped.
  public var escapes: [SimulationEscape] { networkState.watch.escapes }

  /// How many events there were since the beginning.
  public var traceCount: UInt64 { networkState { $0.trace.count } }

  /// Tells somebody of each event as it happens, with the bytes that were written or arrived.
  ///
  /// It is called with the world locked, so that it must not ask the simulation for anything.
  func observe(_ observer: @escaping @Sendable (Trace.Entry, [UInt8]) -> Void) {
    networkState { $0.observer = observer }
  }
}
