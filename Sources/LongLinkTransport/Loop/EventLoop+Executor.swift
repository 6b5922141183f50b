// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

extension EventLoop {
  /// Runs a closure on the loop, after the calling thread's earlier work. Work that the loop's own
  /// thread submits can overtake that of others. Callable from any thread.
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

  /// Runs a job of a task that prefers the loop and is isolated to no actor.
  ///
  /// It is distinguished from an actor's job because it must not run with an actor's isolation: the
  /// runtime would queue it once more to leave that.
  @_implements(TaskExecutor,enqueue(_:))
  public func enqueueOnTaskExecutor(_ job: consuming ExecutorJob) {
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

  /// Whether the caller runs on this loop. The Swift runtime calls it.
  public func isIsolatingCurrentContext() -> Bool? {
    isCurrent
  }

  /// Traps if the caller does not run on this loop.
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
