// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
package import LongLinkCore
internal import Synchronization

/// A thread that waits for sockets and timers, and executes actors and tasks.
///
/// A loop is an executor for actors (`unownedExecutor`) and for tasks
/// (`Task(executorPreference:)`). It runs one piece of work at a time. Work of one thread runs in
/// the order of its submission; work that the loop's own thread submits can overtake that of
/// others. The work must never block.
///
/// A task that uses an actor of the loop should prefer the loop too: Swift resumes a suspended task
/// on its preferred executor, by default the global pool, and only then switches to the actor.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // This belongs to the loop's thread, except `inbox`, `signal`, `handler`, `thread`, constants.
  // The properties that change in every turn are never accessed re-entrantly, so that they need no
  // run-time checks of exclusive access.

  /// The name of the loop and of its thread.
  public let name: String

  package let driver: any LoopDriver
  package let configuration: Configuration
  /// Called for each piece of work from outside the loop, on the submitting thread, with its job,
  /// if any.
  let onHandOver: (@Sendable (UnownedJob?) -> Void)?

  @safe @exclusivity(unchecked) var work = Ring<Work>(capacity: 256)
  @safe @exclusivity(unchecked) private var turnHandlers = Ring<TurnEnd>()
  private var spareInbox: [Work] = []
  private var cachedNow: LinkInstant
  private var nowIsCurrent = false
  /// The number of pool tasks resumed in this turn.
  private var expectedWork = 0
  /// Whether the current turn has not polled the sockets.
  private var hasSkippedWait = false
  private var spinning = SpinPause()
  /// The number of transports that were read in this turn.
  private var streamsRead = 0
  /// Whether the last transport should be read only a little, because the turn is long.
  private(set) var hasReadLittle = false
  /// The handlers that the current job has run, besides the last one.
  private var handlersOfJob = 0
  /// Whether jobs that waited in the last turn are left, because the turn was long.
  package private(set) var leavesJobs = false
  @safe @exclusivity(unchecked) var stallWatch: StallWatch
  @safe @exclusivity(unchecked) var timers: LoopTimers
  /// Whether the loop was shut down, so that only late work runs here.
  var isStopped = false
  /// Whether the loop's thread should end.
  var isStopping = false
  /// A read buffer that the transports of this loop share, so that idle ones need no memory.
  @safe @exclusivity(unchecked) private var readQueue = ByteQueue()
  /// A buffer that transports which transform their bytes share, for what they exchange with the
  /// transport below.
  private var transformQueue = ByteQueue()
  /// An empty queue whose memory the next transport with an incomplete frame can take.
  @safe @exclusivity(unchecked) package var spareQueue = ByteQueue()
  #if Operations
  /// The recorder of the loop's links; nil if they are not recorded.
  package var recorder: Recorder?
  #endif

  /// The work that other threads submit.
  let inbox = Mutex(Inbox())
  let signal = Atomic(LoopSignal.awake)
  /// Which handler runs, for other threads.
  package let handler = HandlerMark()
  let thread = Mutex<LoopThread>(.none)

  struct TurnEnd {
    let handler: any TurnHandler
    let token: UInt64

    consuming func tell() { handler.turnEnds(token: token) }
  }

  struct Inbox {
    var work: [Work] = []
    /// Work that is submitted after the loop has stopped gets a temporary thread, at most one.
    var isStopped = false
    var hasLateThread = false
  }

  /// Makes a loop without a thread: its creator calls `turn`.
  package init(
    driver: any LoopDriver,
    name: String,
    configuration: Configuration,
    onHandOver: (@Sendable (UnownedJob?) -> Void)? = nil
  ) {
    self.driver = driver
    self.name = name
    self.configuration = configuration
    self.onHandOver = onHandOver
    stallWatch = StallWatch(threshold: configuration.stallThreshold)
    cachedNow = driver.now
    timers = LoopTimers(now: cachedNow)
    if let kernel = driver as? KernelDriver { kernel.loop = self }
  }

  /// Makes a loop without a thread: its creator calls `turn`.
  package convenience init(driver: any LoopDriver, name: String) {
    self.init(driver: driver, name: name, configuration: Configuration())
  }

  /// Whether the caller runs on this loop.
  public var isCurrent: Bool {
    unsafe cll_current_loop() == Unmanaged.passUnretained(self).toOpaque()
  }

  /// The loop whose work the calling thread runs; nil if there is none.
  package static var current: EventLoop? {
    unsafe cll_current_loop().map {
      unsafe Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Traps with a clear message if the caller does not run on this loop.
  @_spi(Loop) public func preconditionCurrent() {
    precondition(isCurrent, "this must be called on the event loop that it belongs to")
  }

  /// The time at which this turn's events arrived. `driver.now` is the exact time.
  package var now: LinkInstant {
    if !nowIsCurrent { eventPhaseBegan(at: driver.now) }
    return cachedNow
  }

  /// Begins the turn's phase in which handlers run, because a wait is over. The driver calls it.
  func eventPhaseBegan(at instant: LinkInstant) {
    // Threads that submit work from now on need not wake the loop.
    if signal.load(ordering: .relaxed) == .asleep {
      _ = signal.compareExchange(
        expected: .asleep, desired: .awake, ordering: .acquiringAndReleasing)
    }
    cachedNow = instant
    nowIsCurrent = true
    stallWatch.isBusy(at: instant)
  }

  /// Whether jobs, closures or handlers of the turn's end wait, including those of other threads.
  package var hasWork: Bool {
    !work.isEmpty || !turnHandlers.isEmpty || signal.load(ordering: .acquiring) == .called
  }

  /// Whether more jobs wait than one turn runs.
  package var hasBacklog: Bool { leavesJobs || work.count > EventLoop.mostJobs }

  /// The time of the earliest timer; nil if there is none.
  package var nextDeadline: LinkInstant? {
    timers.nextDeadline
  }

  /// Exchanges the shared read buffer for an empty queue, or back.
  package func swapReadQueue(with queue: inout ByteQueue) {
    swap(&queue, &readQueue)
  }

  /// Exchanges the shared buffer of transforms for an empty queue, or back. It is lent within one
  /// call of a transport, and returned empty.
  package func swapTransformQueue(with queue: inout ByteQueue) {
    swap(&queue, &transformQueue)
  }

  /// Counts a transport that is about to be read. Returns whether it should be read only a little,
  /// because this turn is already long and other transports wait.
  package func readsLittle() -> Bool {
    streamsRead &+= 1
    // Reading the clock has a cost, and after a single transport no other one has waited.
    guard streamsRead > 1, let busySince = stallWatch.busySince else { return false }
    hasReadLittle = driver.now - busySince > EventLoop.longTurn
    return hasReadLittle
  }

  /// Calls `handler` once at the end of this turn, or of the next one if no turn is running.
  package func atEndOfTurn(_ handler: any TurnHandler, token: UInt64) {
    preconditionCurrent()
    turnHandlers.append(TurnEnd(handler: handler, token: token))
  }
}

// MARK: - The turn

extension EventLoop {
  /// The duration of a turn in nanoseconds above which transports are read only a little each. The
  /// jobs of one turn end after about as long, but not before 16 have run.
  private static let longTurn: Int64 = 10_000_000
  /// The most jobs that one turn runs, so that sockets get their turn too.
  private static let mostJobs = 4096
  /// The number of jobs after which the clock is read: it has a cost.
  private static let jobsBetweenReadings = 8

  /// Runs one turn: delivers events, fires due timers, runs jobs and closures, and ends the turn.
  ///
  /// It waits for events until `limit`, or not at all if there is work.
  package func turn(waitingUntil limit: LinkInstant?) {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
    defer { unsafe cll_set_current_loop(former) }

    waitForEvents(until: limit)
    fireTimers()
    runWork()
    endTurn()
    reportStall()
  }

  /// Calls a closure between turns, as if it ran on the loop. For the thread that calls `turn`.
  package func inspect<Result>(_ body: () -> Result) -> Result {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
    defer { unsafe cll_set_current_loop(former) }
    return body()
  }

  private func waitForEvents(until limit: LinkInstant?) {
    streamsRead = 0
    hasReadLittle = false
    if stallWatch.turnBegins() { handler.clear() }
    var deadline = limit
    // The new work probably belongs to data that was just read: the sockets can wait for one turn.
    if expectedWork > 0, linger(), !hasSkippedWait {
      hasSkippedWait = true
      eventPhaseBegan(at: driver.now)
      takeInbox()
      return
    }
    hasSkippedWait = false
    if !work.isEmpty || !turnHandlers.isEmpty {
      deadline = .distantPast
    } else {
      if let timer = nextDeadline { deadline = min(timer, deadline ?? timer) }
      // Threads that submit work from now on see that the loop sleeps, and wake it.
      let (slept, _) = signal.compareExchange(
        expected: .awake,
        desired: .asleep,
        ordering: .acquiringAndReleasing
      )
      if !slept { deadline = .distantPast }
    }
    nowIsCurrent = false
    driver.wait(until: deadline)
    if !nowIsCurrent { eventPhaseBegan(at: driver.now) }
    takeInbox()
  }

  /// Counts a task on another thread that was resumed, which will probably submit more work soon.
  package func expectWork() {
    expectedWork += 1
  }

  /// Spins for up to 20 µs after a pool task was resumed, because its next request usually arrives
  /// within that time. Backs off exponentially if it does not. Returns whether other threads have
  /// submitted work.
  private func linger() -> Bool {
    expectedWork = 0
    guard spinning.mayBegin() else { return false }
    let limit = driver.now + SpinPause.longestSpin
    var isOver = false
    while !hasWork {
      guard !isOver, driver.letOthersRun() else {
        spinning.wasVain()
        return false
      }
      // Other threads may have run for longer than that and submitted work, so check once more.
      isOver = driver.now >= limit
    }
    spinning.hasHelped()
    return signal.load(ordering: .acquiring) == .called
  }

  /// Moves the work that other threads have submitted to the loop's own queue.
  private func takeInbox() {
    guard signal.load(ordering: .relaxed) != .awake else { return }
    guard signal.exchange(.awake, ordering: .acquiringAndReleasing) == .called else { return }
    var taken = spareInbox
    spareInbox = []
    inbox.withLock(of: self) { swap(&$0.work, &taken) }
    for item in taken { work.append(item) }
    expectedWork = max(0, expectedWork - taken.count)
    taken.removeAll(keepingCapacity: true)
    spareInbox = taken
  }

  private func fireTimers() {
    guard let deadline = timers.nextDeadline, deadline <= now else { return }
    // If the process stood still between the wait and reading the time, events may have arrived.
    // Deliver them before timers fire by that time.
    let instant = now
    driver.wait(until: .distantPast)
    timers.advance(to: instant)
    while let entry = timers.popExpired() {
      entry.handler.timerFired(token: entry.token)
    }
  }

  private func runWork() {
    leavesJobs = false
    var budget = Self.mostJobs
    var unread = 0
    var beginning: LinkInstant?
    let executor = unsafe asUnownedSerialExecutor()
    let taskExecutor = unsafe asUnownedTaskExecutor()
    while budget > 0 {
      if work.isEmpty {
        takeInbox()
        if work.isEmpty { return }
      }
      budget &-= 1
      switch work.removeFirst() {
      case .taskJob(let job):
        unsafe job.runSynchronously(on: taskExecutor)
      case .actorJob(let job):
        unsafe job.runSynchronously(isolatedTo: executor, taskExecutor: taskExecutor)
      case .closure(let closure):
        closure()
      case .timer(let timer):
        if let entry = timers.remove(timer) { entry.handler.timerFired(token: entry.token) }
      }
      handlerPauses()
      let ran = handlersOfJob &+ 1
      handlersOfJob = 0
      budget &-= ran &- 1
      unread &+= ran
      guard unread >= Self.jobsBetweenReadings else { continue }
      unread = 0
      let instant = driver.now
      // A loop that was stopped has no sockets to serve.
      if instant - (beginning ?? instant) > Self.longTurn, !isStopped { break }
      beginning = beginning ?? instant
    }
    leavesJobs = !work.isEmpty
  }

  /// Counts a handler as a job of this turn, because several handlers run in the current job.
  package func countsAsJob() {
    handlerPauses()
    handlersOfJob &+= 1
  }

  private func endTurn() {
    // Handlers that are added by these handlers run at the end of the next turn.
    for _ in 0..<turnHandlers.count {
      turnHandlers.removeFirst().tell()
    }
  }
}
