// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkPOSIX
package import LongLinkCore
internal import Synchronization

/// One thread that waits for sockets and timers, and runs the work of whoever lives on it.
///
/// A loop is an executor for actors (`unownedExecutor`) and for tasks
/// (`Task(executorPreference:)`). All of its work runs one piece after the other, in the order in
/// which it was handed over, so that it must never block.
///
/// A task that works with an actor of the loop should prefer the loop as well: Swift resumes what
/// was suspended where the task prefers to be, by default on the global pool, and only from there
/// on the actor.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // Everything here belongs to the loop's thread, except `inbox`, `signal`, `thread` and what is
  // constant. What each turn changes is changed in one step, during which nothing else runs, so
  // that the run-time checks of exclusive access are left out there.

  /// The name that the loop was given, which its thread has too.
  public let name: String

  package let driver: any LoopDriver
  package let configuration: Configuration
  /// Told of each piece of work that is handed over by somebody who is not on the loop, on the
  /// thread that does so: the job, where it is one.
  let onHandOver: (@Sendable (UnownedJob?) -> Void)?
  let stallThreshold: Int64

  @safe @exclusivity(unchecked) var work = Ring<Work>(capacity: 256)
  @safe @exclusivity(unchecked) private var turnHandlers = Ring<TurnEnd>()
  private var spareInbox: [Work] = []
  private var cachedNow: LinkInstant
  private var nowIsCurrent = false
  /// How many pieces of work are likely to come at once from other threads, which were given what
  /// they waited for.
  private var expectedWork = 0
  /// Whether this turn did without a look at the sockets.
  private var hasSkippedWait = false
  /// How often the loop is not to wait for such a thread, and how often next time.
  private var lingering = (pause: 0, penalty: 0)
  /// When the loop began to be busy in this turn.
  var busySince: LinkInstant?
  /// Streams that were read in this turn.
  private var streamsRead = 0
  /// Whether one of them was to be read a little only, since the turn had lasted so long.
  private(set) var hasReadLittle = false
  /// What is known of the handlers that ran in this turn.
  @safe @exclusivity(unchecked) var handlerTimes = HandlerTimes()
  @safe @exclusivity(unchecked) var timers: LoopTimers
  /// True once nothing but late work runs here.
  var isStopped = false
  /// True once the loop's thread is to end.
  var isStopping = false
  /// Memory that the streams of this loop read into by turns, so that idle ones need none.
  @safe @exclusivity(unchecked) private var readQueue = ByteQueue()
  /// Memory for the next stream of which a frame has come in part: an empty queue.
  @safe @exclusivity(unchecked) package var spareQueue = ByteQueue()

  /// What other threads hand over.
  let inbox = Mutex(Inbox())
  let signal = Atomic(Signal.awake)
  let thread = Mutex<LoopThread>(.none)

  struct TurnEnd {
    let handler: any TurnHandler
    let token: UInt64

    consuming func tell() { handler.turnEnds(token: token) }
  }

  struct Inbox {
    var work: [Work] = []
    /// Work that comes once the loop has stopped gets a thread of its own, one at a time.
    var isStopped = false
    var hasLateThread = false
  }

  /// Tells whoever hands work over whether the loop has to be woken.
  enum Signal: UInt8, AtomicRepresentable {
    /// The loop is busy and will look at the inbox before it sleeps.
    case awake
    /// The loop sleeps, or is about to.
    case asleep
    /// There is something in the inbox, and the loop has been told.
    case called
  }

  /// Makes a loop without a thread: whoever made it calls `turn`.
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
    stallThreshold = configuration.stallThreshold.clampedNanoseconds
    cachedNow = driver.now
    timers = LoopTimers(now: cachedNow)
    if let kernel = driver as? KernelDriver { kernel.loop = self }
  }

  /// Makes a loop without a thread: whoever made it calls `turn`.
  package convenience init(driver: any LoopDriver, name: String) {
    self.init(driver: driver, name: name, configuration: Configuration())
  }

  /// True when the caller runs on this loop.
  public var isCurrent: Bool {
    unsafe cll_current_loop() == Unmanaged.passUnretained(self).toOpaque()
  }

  /// The loop whose work the calling thread runs; nil where it runs none.
  package static var current: EventLoop? {
    unsafe cll_current_loop().map {
      unsafe Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Traps with a clear message when the caller does not run on this loop.
  @_spi(Loop) public func preconditionCurrent() {
    precondition(isCurrent, "this must be called on the event loop that it belongs to")
  }

  /// The time at which this turn's events were there. `driver.now` tells the exact time.
  package var now: LinkInstant {
    if !nowIsCurrent { eventPhaseBegan(at: driver.now) }
    return cachedNow
  }

  /// Hears from the driver that a wait is over and that handlers will run.
  func eventPhaseBegan(at instant: LinkInstant) {
    // Whoever hands work over from now on need not wake anybody.
    if signal.load(ordering: .relaxed) == .asleep {
      _ = signal.compareExchange(
        expected: .asleep, desired: .awake, ordering: .acquiringAndReleasing)
    }
    cachedNow = instant
    nowIsCurrent = true
    if busySince == nil { busySince = instant }
  }

  /// True while jobs, closures or handlers of the turn's end wait, also from other threads.
  package var hasWork: Bool {
    !work.isEmpty || !turnHandlers.isEmpty || signal.load(ordering: .acquiring) == .called
  }

  /// Whether more jobs wait than one turn runs.
  package var hasBacklog: Bool { work.count > EventLoop.mostJobs }

  /// The time of the earliest timer; nil where there is none.
  package var nextDeadline: LinkInstant? {
    timers.nextDeadline
  }

  /// Lends the memory that streams read into by turns in exchange for an empty queue, and takes it
  /// back in exchange for that.
  package func swapReadQueue(with queue: inout ByteQueue) {
    swap(&queue, &readQueue)
  }

  /// Tells that a stream is about to be read, and whether this turn has lasted so long that it
  /// should be a little only: others wait for their turn, and for the next one.
  package func readsLittle() -> Bool {
    streamsRead &+= 1
    // The clock costs something, and where one stream alone is read nobody waits.
    guard streamsRead > 1, let busySince else { return false }
    hasReadLittle = driver.now - busySince > EventLoop.longTurn
    return hasReadLittle
  }

  /// Calls `handler` once, when this turn ends; called between turns, when the next one does.
  package func atEndOfTurn(_ handler: any TurnHandler, token: UInt64) {
    preconditionCurrent()
    turnHandlers.append(TurnEnd(handler: handler, token: token))
  }
}

// MARK: - The turn

extension EventLoop {
  /// Nanoseconds from which on streams are read a little each.
  private static let longTurn: Int64 = 10_000_000
  /// The most jobs that one turn runs, so that sockets get their turn too.
  private static let mostJobs = 4096
  /// In nanoseconds: about what it takes to be woken. Where others want the processor, one of them
  /// may have it for longer.
  private static let longestLinger: Int64 = 20_000
  /// In turns.
  private static let longestPause = 255

  /// Runs one turn: waits for events, until `limit` at the latest and not at all where work waits,
  /// and delivers them; fires the timers that are due; runs jobs and closures; ends the turn.
  package func turn(waitingUntil limit: LinkInstant?) {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
    defer { unsafe cll_set_current_loop(former) }

    waitForEvents(until: limit)
    fireTimers()
    runWork()
    endTurn()
    if configuration.onStall != nil { reportStall() }
  }

  private func waitForEvents(until limit: LinkInstant?) {
    busySince = nil
    streamsRead = 0
    hasReadLittle = false
    handlerTimes.turnBegins()
    var deadline = limit
    // What came meanwhile is for what has just been read: the sockets can wait for one turn.
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
      // Whoever hands work over from now on sees that the loop sleeps, and wakes it.
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

  /// Tells that a task of another thread goes on, which is likely to hand more work over at once.
  package func expectWork() {
    expectedWork += 1
  }

  /// Waits a little, before it sleeps, for a thread that is likely to hand work over: for less than
  /// the two of them would take to sleep and to be woken. Where that is for nothing, it is not done
  /// for a while. True when there is work from elsewhere.
  private func linger() -> Bool {
    expectedWork = 0
    guard lingering.pause == 0 else {
      lingering.pause -= 1
      return false
    }
    let limit = driver.now + Self.longestLinger
    var isOver = false
    while !hasWork {
      guard !isOver, driver.letOthersRun() else {
        lingering.penalty = min(lingering.penalty * 2 + 1, Self.longestPause)
        lingering.pause = lingering.penalty
        return false
      }
      // Others may have run for longer than that, and handed work over.
      isOver = driver.now >= limit
    }
    lingering.penalty = 0
    return signal.load(ordering: .acquiring) == .called
  }

  /// Moves what other threads have handed over to the loop's own queue.
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
    // What came while the process was held up, after the wait and before the time was read, is
    // delivered before any timer is judged by that time.
    let judged = now
    driver.wait(until: .distantPast)
    timers.advance(to: judged)
    while let entry = timers.popExpired() {
      entry.handler.timerFired(token: entry.token)
    }
  }

  private func runWork() {
    var budget = Self.mostJobs
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
    }
  }

  private func endTurn() {
    // What the handlers ask for goes into the next turn.
    for _ in 0..<turnHandlers.count {
      turnHandlers.removeFirst().tell()
    }
  }

}

extension LinkInstant {
  /// An instant that has passed on every clock.
  package static let distantPast = LinkInstant(nanoseconds: .min)
}
