// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport
internal import Synchronization

/// A world with virtual time and a simulated network: event loops, links and random numbers, all on
/// one thread and determined by a seed.
///
/// Clients and servers run in it unchanged, on its event loops. Virtual time stands still while a
/// loop has work, and jumps to the next event when none has, so that hours pass instantly. The same
/// seed gives the same run if all code gets its clock, random numbers and tasks from the
/// simulation. A task made without its parent's executor (`Task.detached`, and `Task.init` without
/// `executorPreference`) leaves the simulation. ``escapes`` reports work that comes back.
///
/// ```swift
/// let simulation = Simulation(seed: 7)
/// let slept = try await simulation.run {
///   try await simulation.sleep(for: .seconds(36_000))
///   return simulation.now
/// }
/// ```
///
/// You inject faults into links (``SimulatedNetwork/links``), paths between machines (``network``),
/// machines (``machine(of:)``) and processes (``process(named:_:)``).
public final class Simulation: Sendable {
  /// The bounds and options of a ``Simulation``.
  public struct Configuration: Sendable {
    /// The most virtual time that one `run` may take; a day by default. A longer one throws an
    /// error with the code `timeLimit`.
    public var timeLimit: Duration
    /// The most turns that all loops together may take at one instant of virtual time; a million by
    /// default. More make `run` throw an error with the code `busy`.
    public var turnLimit: Int
    /// The number of last events that `trace` keeps; 4,096 by default.
    public var traceCapacity: Int
    /// How long an idle simulation waits, in real time, for work from other threads before its body
    /// counts as stuck; 5 seconds by default.
    public var foreignGrace: Duration
    /// Whether tasks made in the simulation without an executor run in it; false by default.
    ///
    /// The first such simulation installs a hook into the Swift runtime of the whole process. Tasks
    /// of other simulations and threads are not affected. Real sleeps (`Task.sleep`) stay real, and
    /// end outside the simulation.
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

  /// The seed that determines all random numbers of the simulation.
  public let seed: UInt64
  /// The configuration, with the simulation's bounds.
  public let configuration: Configuration
  /// The loop that runs the body of each `run`. It is named "main", as its machine is.
  public let mainLoop: EventLoop
  /// The network between the loops, with its conditions and faults.
  public let network: SimulatedNetwork

  package let networkState: SharedNetwork
  let waits: WaitList
  let runState = Atomic(false)
  let loopsMade: Mutex<[EventLoop]>
  private let generator: Mutex<SeededGenerator>
  let origin: SeededGenerator

  /// Makes a simulation whose virtual time begins at 0. The seed determines all of its random
  /// numbers.
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
    waits = WaitList { [networkState] in networkState.now }
    networkState { $0.machines = [NetworkState.MachineRecord(name: "main")] }
    mainLoop = Self.makeLoop(
      named: "main", index: 0, machine: 0, networkState: networkState, origin: origin)
    loopsMade = Mutex([mainLoop])
    if configuration.capturesUnstructuredTasks { TaskCapture.install() }
  }

  deinit {
    networkState { $0.schedule.removeAll() }
    for loop in loops { loop.simulatedDriver.forgetResidents() }
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

  /// All loops, in order of creation.
  var loops: [EventLoop] { loopsMade.withLock { $0 } }
}

// MARK: - Time and randomness

extension Simulation {
  /// The virtual time, which begins at 0. Any thread may read it.
  public var now: LinkInstant { networkState.now }

  /// The date in seconds since 1970, which each machine has unless
  /// ``SimulatedMachine/calendarOffset`` or ``SimulatedMachine/moveClock(by:)`` has changed its
  /// own.
  ///
  /// A simulation begins at 2026-01-01T00:00:00Z, and its date moves on with virtual time. It only
  /// decides whether certificates and tickets are valid: set it to a date at which your
  /// certificates are valid, before or during a run. Timers do not follow it. To replay a run, set
  /// the same date. Any thread may use it. Setting a date before 1970 or after 9999 traps.
  public var calendar: Int64 {
    get { networkState { $0.calendarOrigin + $0.now.nanoseconds / 1_000_000_000 } }
    set {
      precondition((0...253_402_300_799).contains(newValue), "the date is not from 1970 to 9999")
      networkState { $0.calendarOrigin = newValue - $0.now.nanoseconds / 1_000_000_000 }
    }
  }

  /// The clock of the main loop, for code that takes a clock.
  public var clock: EventLoopClock { mainLoop.clock }

  /// Waits for a duration of virtual time, on the main loop. Throws `CancellationError` if the task
  /// is cancelled first.
  public func sleep(
    for duration: Duration, fileID: String = #fileID, line: Int = #line
  ) async throws(CancellationError) {
    let wait = WaitList.begin(
      "the end of a sleep of \(duration)", at: SourcePlace(fileID: fileID, line: line),
      isSleep: true)
    defer { wait?.ended() }
    try await mainLoop.sleep(for: duration)
  }

  /// Returns 64 random bits, determined by the seed and the number of earlier draws.
  public func random() -> UInt64 {
    generator.withLock { $0.next() }
  }

  /// Returns a random number in a range, determined by the seed and the number of earlier draws.
  public func random<Value: FixedWidthInteger & Sendable>(in range: ClosedRange<Value>) -> Value {
    generator.withLock { Value.random(in: range, using: &$0) }
  }

  /// Starts a task in the simulation, by default on the main loop.
  ///
  /// The task makes progress only while a `run` is in progress.
  @discardableResult
  public func spawn<T: Sendable>(
    on loop: EventLoop? = nil, fileID: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable () async throws -> T
  ) -> Task<T, any Error> {
    let scope = waits.started(at: SourcePlace(fileID: fileID, line: line))
    return Task(executorPreference: loop ?? mainLoop) {
      defer { scope.ended() }
      return try await WaitList.$scope.withValue(scope) { try await body() }
    }
  }
}

// MARK: - Open resources, and the trace

extension Simulation {
  /// A description of each open end of the simulated links; empty if all are closed.
  public var openStreams: [String] {
    let names = loops.map(\.name)
    return networkState { $0.openStreams(loopNames: names) }
  }

  /// The addresses of open listeners, in the order in which they were opened.
  public var openListeners: [SocketAddress] {
    networkState { networkState in
      networkState.addresses.listeners.values.sorted { $0.number < $1.number }.map(\.address)
    }
  }

  /// The loops that have timers, each with the time of its earliest one; empty if no timer is set.
  ///
  /// Read it on a loop of the simulation, or while no `run` is in progress; otherwise it traps.
  public var pendingTimers: [String] { earliestTimers.map { "\($0.loop): \($0.deadline)" } }

  /// The loops with timers, each with the time of its earliest timer.
  package var earliestTimers: [PendingTimer] {
    let loops = loops
    precondition(
      !runState.load(ordering: .acquiring) || loops.contains { $0.isCurrent },
      "read the timers in the simulation, or while it does not run"
    )
    return loops.compactMap { loop in
      loop.simulatedDriver.deadline.map { PendingTimer(loop: loop.name, deadline: $0) }
    }
  }

  /// A loop with at least one timer.
  package struct PendingTimer: Hashable, Sendable {
    /// The loop's name.
    package let loop: String
    /// When its earliest timer fires or is checked again.
    package let deadline: LinkInstant
  }

  /// Descriptions of the last events (of links, machines, processes and time), oldest first: at
  /// most ``Simulation/Configuration/traceCapacity`` of them.
  public var trace: [String] {
    networkState { networkState in
      networkState.trace.lines(machines: networkState.machines.map(\.name))
    }
  }

  /// A hash of all events since the simulation was made. If it is equal in two runs, they have
  /// almost certainly had the same events.
  public var traceHash: UInt64 { networkState { $0.trace.hash } }

  /// The first hundred jobs that threads outside the simulation gave to its loops during a `run`,
  /// in order of arrival.
  ///
  /// A run with escapes may differ when you repeat it.
  public var escapes: [SimulationEscape] { networkState.watch.escapes }

  /// The number of all events since the simulation was made, including those that ``trace`` no
  /// longer contains.
  public var traceCount: UInt64 { networkState { $0.trace.count } }

  /// Sets a callback for each event, which also gets the bytes that were written or arrived.
  ///
  /// It is called under the world's lock, so that it must not use the simulation.
  package func observe(_ observer: @escaping @Sendable (Trace.Entry, [UInt8]) -> Void) {
    networkState { $0.observer = observer }
  }
}
