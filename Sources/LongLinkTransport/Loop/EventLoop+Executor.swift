// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

extension EventLoop {
  /// Submits a closure that the loop runs after the calling thread's earlier work. It must not
  /// block.
  ///
  /// You can call this on any thread. It returns before the closure runs, also on the loop itself.
  /// Work that the loop's own thread submits can overtake that of others.
  public func execute(_ work: @escaping @Sendable () -> Void) {
    enqueue(.closure(work))
  }

  /// Runs a closure on the loop, after all closures that any thread has submitted with this
  /// function before.
  ///
  /// `execute` on the loop itself overtakes what other threads have submitted.
  package func executeInOrder(_ work: @escaping @Sendable () -> Void) {
    handOver(.closure(work))
  }

  /// Runs a job of an actor that lives on the loop. The Swift runtime calls it, on any thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    enqueue(.actorJob(UnownedJob(job)))
  }

  /// Runs a job of a task that prefers the loop and is isolated to no actor. The Swift runtime
  /// calls it, on any thread.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueOnTaskExecutor(_ job: consuming ExecutorJob) {
    // Unlike an actor's job, it must not run with an actor's isolation: the runtime would queue it
    // once more to leave that.
    enqueue(.taskJob(UnownedJob(job)))
  }

  @inline(__always)
  private func enqueue(_ item: consuming Work) {
    if isCurrent {
      work.append(item)
    } else {
      handOver(item)
    }
  }

  /// Returns whether the caller runs on this loop, never nil. The Swift runtime calls it.
  public func isIsolatingCurrentContext() -> Bool? {
    isCurrent
  }

  /// Traps if the caller does not run on this loop. The Swift runtime calls it.
  public func checkIsolated() {
    precondition(isCurrent, "this code must run on the event loop \"\(name)\"")
  }

  /// Puts work into the inbox, and wakes the loop if it sleeps and was not woken yet.
  private func handOver(_ item: consuming Work) {
    let item = item
    if let onHandOver { onHandOver(item.job) }
    let startsThread = inbox.withLock(of: self) { inbox in
      inbox.work.append(item)
      guard inbox.isStopped else { return false }
      defer { inbox.hasLateThread = true }
      return !inbox.hasLateThread
    }
    if signal.exchange(.called, ordering: .acquiringAndReleasing) == .asleep { driver.wake() }
    if startsThread { startLateThread() }
  }
}
