// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) internal import LongLinkTransport

/// Tasks of the global pool whose requests ended in this turn.
///
/// Resuming a task wakes a thread of the pool. Without a processor of its own that thread takes the
/// loop's, runs this one task and sleeps again, once for each task. So one job of the pool resumes
/// many of them, on a thread that is awake.
struct Resumptions {
  /// The fewest tasks for which a job of the pool is used. The loop itself resumes fewer.
  private static let fewest = 4
  /// The number of tasks at which they are resumed at once.
  private static let most = 128

  private struct Resumption: Sendable {
    let waiter: Waiter<Outcome>
    let outcome: Outcome
  }

  private var waiting: [Resumption] = []

  /// Adds a task; returns true for the first one, after which the caller schedules `resume`.
  mutating func add(_ waiter: Waiter<Outcome>, _ outcome: Outcome) -> Bool {
    if waiting.count == Self.most { resume() }
    waiting.append(Resumption(waiter: waiter, outcome: outcome))
    return waiting.count == 1
  }

  /// Resumes all tasks from this thread.
  mutating func resumeAtOnce() {
    for resumption in waiting { resumption.waiter(resumption.outcome) }
    waiting.removeAll(keepingCapacity: true)
  }

  /// Frees the list's memory, if no task waits.
  mutating func releaseStorage() {
    if waiting.isEmpty { waiting = [] }
  }

  /// Resumes all tasks: from a job of the pool, or from this thread if they are few.
  mutating func resume() {
    guard waiting.count >= Self.fewest else { return resumeAtOnce() }
    let batch = waiting
    waiting = []
    waiting.reserveCapacity(batch.count)
    Task.detached { for resumption in batch { resumption.waiter(resumption.outcome) } }
  }
}

extension Requests {
  /// Resumes the pool's tasks in a later job, after the current read and the queued jobs.
  func resumeSoon() {
    loop.execute { [requests = LoopBound(self, on: loop)] in requests.value.resumptions.resume() }
  }
}
