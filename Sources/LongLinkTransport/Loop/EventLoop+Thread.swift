// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary
public import LongLinkCore
internal import Synchronization

/// The state of a loop's thread.
enum LoopThread {
  /// The loop has no thread: its creator calls `turn`.
  case none
  case running(cll_thread)
  case joined
}

extension EventLoop {
  private static let stackSize = 2 << 20
  /// The number of turns after a shutdown, enough for a million queued jobs.
  private static let lastTurns = 256

  /// The loop of all clients that are given no other, which is started at its first use. Traps if
  /// the system cannot start it.
  public static let shared: EventLoop = {
    do throws(SocketError) {
      return try EventLoop(starting: "longlink-shared", Configuration())
    } catch {
      fatalError("the shared event loop cannot be started: \(error)")
    }
  }()

  /// Starts a loop with its own thread, which runs until `shutDown`.
  ///
  /// Throws an error whose description names the reason if the system has no file descriptor or
  /// thread left.
  ///
  /// - Parameters:
  ///   - name: The name of the loop's thread, and of the loop in logs. Default: `longlink`.
  ///   - busyPoll: How long the loop polls the kernel for events before it sleeps: 0 to 1 s,
  ///     default 0. A value outside this range is clamped. A sleeping thread takes tens of
  ///     microseconds to wake, which is most of the time of a request between two processes of one
  ///     machine. Polling uses a whole processor core, even if nothing happens. Use it for loops
  ///     that are hardly ever idle, or have a dedicated core.
  ///   - stallThreshold: The duration of a turn above which the loop counts as stalled. Default:
  ///     200 ms.
  ///   - onStall: Called on the loop after a turn in which work blocked it for too long. It must
  ///     not block. It gets the loop's name, how long the loop was blocked, and the message type of
  ///     the handler that took most of the time. The type is nil if no request handler did, or if
  ///     that is not known: several handlers began in that turn, and the loop had not stalled
  ///     before. A loop times its handlers only after its first stall.
  public convenience init(
    name: String = "longlink",
    busyPoll: Duration = .zero,
    stallThreshold: Duration = .milliseconds(200),
    onStall: (
      @Sendable (_ loop: String, _ duration: Duration, _ messageType: MessageType?) -> Void
    )? = nil
  ) throws {
    try self.init(
      starting: name,
      Configuration(busyPoll: busyPoll, stallThreshold: stallThreshold, onStall: onStall))
  }

  package convenience init(name: String = "longlink", configuration: Configuration) throws {
    try self.init(starting: name, configuration)
  }

  package convenience init(
    starting name: String, _ configuration: Configuration
  ) throws(SocketError) {
    let driver: KernelDriver
    do throws(Errno) {
      driver = KernelDriver(
        poller: try configuration.poller.make(),
        busyPoll: min(max(0, configuration.busyPoll.clampedNanoseconds), 1_000_000_000))
    } catch {
      throw SocketError(operation: "start an event loop", errno: error.code)
    }
    self.init(driver: driver, name: name, configuration: configuration)
    try start()
  }

  /// Starts the loop's thread.
  func start() throws(SocketError) {
    var started = cll_thread()
    let failure = unsafe cll_thread_start(
      &started,
      name,
      Self.stackSize,
      { unsafe Unmanaged<EventLoop>.fromOpaque($0).takeRetainedValue().run() },
      Unmanaged.passRetained(self).toOpaque()
    )
    guard failure == 0 else {
      unsafe Unmanaged.passUnretained(self).release()
      throw SocketError(operation: "start an event loop", errno: failure)
    }
    thread.withLock { $0 = .running(started) }
  }

  /// Stops the loop: runs queued work, fires all timers, and blocks until its thread has ended.
  ///
  /// Calling it again has no effect. Calling it on the loop itself traps. First close the clients
  /// and servers on the loop. Work that is submitted afterwards still runs, in order, on a
  /// temporary thread; sleeps then end at once with `CancellationError`.
  public func shutDown() {
    precondition(!isCurrent, "an event loop cannot be shut down from itself")
    // Locked while waiting, so that every caller returns only after the thread has ended.
    thread.withLock { thread in
      guard case .running(let running) = thread else { return }
      execute { [unowned self] in isStopping = true }
      cll_thread_join(running)
      thread = .joined
    }
  }

  /// The body of the loop's thread.
  private func run() {
    while !isStopping { turn(waitingUntil: nil) }
    unsafe cll_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
    isStopped = true
    expireTimers()
    driver.close()
    // Work that never ends must not keep `shutDown` from returning.
    for _ in 0..<Self.lastTurns {
      turn(waitingUntil: .distantPast)
      if !hasWork, becomeIdle() { return }
    }
    cll_set_current_loop(nil)
    inbox.withLock(of: self) { inbox in
      inbox.isStopped = true
      inbox.hasLateThread = true
    }
    startLateThread()
  }

  /// Runs work that was submitted after the shutdown, until there is none left.
  private func runLateWork() {
    repeat {
      turn(waitingUntil: .distantPast)
    } while hasWork || !becomeIdle()
  }

  private func becomeIdle() -> Bool {
    inbox.withLock(of: self) { inbox in
      guard inbox.work.isEmpty else { return false }
      inbox.isStopped = true
      inbox.hasLateThread = false
      return true
    }
  }

  /// Starts the thread for work that was submitted after the shutdown.
  func startLateThread() {
    let failure = unsafe cll_thread_start(
      nil,
      name,
      Self.stackSize,
      { unsafe Unmanaged<EventLoop>.fromOpaque($0).takeRetainedValue().runLateWork() },
      Unmanaged.passRetained(self).toOpaque()
    )
    // The work can neither be dropped (a task would never end) nor run here (the caller may hold
    // locks).
    precondition(failure == 0, "no thread for work on an event loop that was shut down")
  }
}

extension EventLoop.Configuration.PollerKind {
  func make() throws(Errno) -> any Poller {
    switch self {
    case .poll:
      return try PollPoller()
    case .systemDefault, .epoll:
      #if os(Linux)
      return try EpollPoller()
      #else
      guard self == .systemDefault else { throw Errno(ENOTSUP) }
      return try PollPoller()
      #endif
    }
  }
}
