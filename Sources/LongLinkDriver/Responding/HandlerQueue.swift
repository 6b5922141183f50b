// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) package import LongLinkTransport

/// Runs the asynchronous handlers of one loop, in the order of their requests: several in one task,
/// as long as none of them waits.
///
/// A task costs more than many handlers do. If a handler of a shared task is suspended, those after
/// it get tasks of their own, and so do the next ones: a service whose handlers wait gains nothing
/// from sharing. It is used on its loop alone.
package final class HandlerQueue: @unchecked Sendable {
  private let loop: EventLoop
  // The waiting handlers, linked by their `next`.
  private var first: RunningHandler?
  private var last: RunningHandler?
  /// The number of handlers that get tasks of their own before another task is shared.
  private var unshared = 0
  /// The last number set in `unshared`: it doubles while handlers of shared tasks are suspended.
  private var penalty = 0

  /// The most handlers that one task runs, because a loop reads its clock between jobs.
  private static let mostOfTask = 8
  private static let highestPenalty = 255

  /// A task that runs several handlers.
  private final class SharedTask: @unchecked Sendable {
    /// Nil before the task is made.
    var task: Task<Void, any Error>?
    var hasEnded = false
    /// Whether a handler was suspended: the handlers after it have other tasks.
    var isLeft = false
  }

  package init(on loop: EventLoop) {
    self.loop = loop
  }

  /// Runs a handler in a task of its own.
  ///
  /// The task never throws. A non-throwing one would cost another allocation, because the runtime
  /// wraps it in a throwing one.
  static func run(_ work: RunningHandler, on executor: any TaskExecutor) {
    let task = Task(executorPreference: executor) { () async throws -> Void in await work.run() }
    if work.isUnwanted { task.cancel() } else { work.task = task }
  }

  /// Runs a handler in a job of the loop.
  func run(_ work: RunningHandler) {
    if let last {
      last.next = work
      self.last = work
    } else if unshared > 0 {
      unshared -= 1
      HandlerQueue.run(work, on: loop)
    } else {
      (first, last) = (work, work)
      startTask()
    }
  }

  private func takeFirst() -> RunningHandler? {
    guard let work = first else { return nil }
    first = work.next
    work.next = nil
    if first == nil { last = nil }
    return work
  }

  private func startTask() {
    let shared = SharedTask()
    shared.task = Task(executorPreference: loop) { () async throws -> Void in
      await self.runWaiting(in: shared)
    }
    // When the loop runs this job, the shared task has ended or is suspended.
    loop.execute { self.goOn(after: shared) }
  }

  private func goOn(after shared: SharedTask) {
    guard !shared.hasEnded else {
      penalty = 0
      if first != nil { startTask() }
      return
    }
    shared.isLeft = true
    penalty = min(penalty * 2 + 1, Self.highestPenalty)
    unshared = penalty
    while let work = takeFirst() { HandlerQueue.run(work, on: loop) }
  }

  private func runWaiting(in shared: SharedTask) async {
    for _ in 0..<Self.mostOfTask {
      guard let work = takeFirst() else { break }
      if work.isUnwanted {
        work.skip()
        continue
      }
      work.task = shared.task
      await work.run()
      // Return if the handler has left the loop, or if the task was cancelled with its request. If
      // it was suspended, the later handlers belong to other tasks.
      guard loop.isCurrent, !Task.isCancelled, !shared.isLeft else { return }
      loop.countsAsJob()
    }
    shared.hasEnded = true
  }
}
