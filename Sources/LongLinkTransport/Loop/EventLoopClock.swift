// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import Synchronization

/// The clock of an event loop: the kernel's monotonic time, or a simulation's.
///
/// Sleeping on it takes no thread, only a timer of the loop, and ends early if the task is
/// cancelled.
public struct EventLoopClock: Clock {
  let loop: EventLoop

  /// The current time. It can be read on any thread.
  public var now: LinkInstant { loop.driver.now }

  /// The resolution of sleeps: 1 ms, because timers fire on whole milliseconds.
  public var minimumResolution: Duration { .milliseconds(1) }

  /// Waits until an instant, or not at all if it has passed; `tolerance` is ignored.
  ///
  /// Throws `CancellationError` if the task is cancelled or the loop is shut down before that.
  public func sleep(until deadline: LinkInstant, tolerance: Duration? = nil) async throws {
    try await loop.sleep(until: deadline)
  }
}

extension EventLoop {
  /// The loop's clock.
  public var clock: EventLoopClock { EventLoopClock(loop: self) }

  /// Waits for a duration, or not at all if it is negative.
  ///
  /// Throws `CancellationError` if the task is cancelled or the loop is shut down before the end.
  public func sleep(for duration: Duration) async throws(CancellationError) {
    try await sleep(until: driver.now.advanced(by: duration))
  }

  func sleep(until deadline: LinkInstant) async throws(CancellationError) {
    let sleeper = Sleeper(on: self)
    let isOver = await withTaskCancellationHandler {
      unsafe await withUnsafeContinuation { continuation in
        unsafe sleeper.begin(until: deadline, continuation)
      }
    } onCancel: {
      sleeper.cancel()
    }
    guard isOver else { throw CancellationError() }
  }

  /// Runs a closure at once if the caller is on the loop, else submits it to the loop.
  package func runOnLoop(_ work: @escaping @Sendable () -> Void) {
    if isCurrent { work() } else { execute(work) }
  }
}

/// A sleeping task. Its state is accessed only on the loop.
@safe private final class Sleeper: TimerHandler, @unchecked Sendable {
  private let loop: EventLoop
  private var continuation: UnsafeContinuation<Bool, Never>?
  private var timer = LoopTimer.none
  private var isCancelled = false

  init(on loop: EventLoop) {
    self.loop = loop
  }

  func begin(until deadline: LinkInstant, _ continuation: UnsafeContinuation<Bool, Never>) {
    loop.runOnLoop { [self] in
      // The cancellation of a task may have arrived before its sleep.
      guard !isCancelled, !loop.isStopped else {
        return unsafe continuation.resume(returning: false)
      }
      unsafe self.continuation = continuation
      timer = loop.schedule(at: deadline, self, token: 0)
    }
  }

  func cancel() {
    loop.runOnLoop { [self] in
      isCancelled = true
      loop.cancel(timer)
      finish(isOver: false)
    }
  }

  func timerFired(token: UInt64) {
    finish(isOver: !loop.isStopped)
  }

  private func finish(isOver: Bool) {
    unsafe continuation.take()?.resume(returning: isOver)
  }
}
