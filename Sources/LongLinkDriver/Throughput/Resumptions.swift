// SPDX-License-Identifier: Apache-2.0

@_spi(Loop) internal import LongLinkTransport

/// Tasks of the global pool whose requests have ended in this turn, to be resumed soon.
///
/// The first one to be resumed wakes a thread of the pool. Where that has no processor of its own
/// it takes the loop's, runs this one task and sleeps again, and so on for each of them. So several
/// are resumed by one job of the pool, which finds its thread awake.
struct Resumptions {
  /// Fewer than so many are resumed by the loop: the job is for tens of them.
  private static let fewest = 4
  /// So many do not wait for more.
  private static let most = 128

  private struct Resumption: Sendable {
    let waiter: Waiter<Outcome>
    let outcome: Outcome
  }

  private var waiting: [Resumption] = []

  /// Adds one; true when it is the first, so that somebody has to see to it.
  mutating func add(_ waiter: Waiter<Outcome>, _ outcome: Outcome) -> Bool {
    if waiting.count == Self.most { resume() }
    waiting.append(Resumption(waiter: waiter, outcome: outcome))
    return waiting.count == 1
  }

  /// Resumes all of them from here.
  mutating func resumeAtOnce() {
    for resumption in waiting { resumption.waiter(resumption.outcome) }
    waiting.removeAll(keepingCapacity: true)
  }

  /// Gives memory back where nobody waits.
  mutating func releaseStorage() {
    if waiting.isEmpty { waiting = [] }
  }

  /// Resumes all of them.
  mutating func resume() {
    guard waiting.count >= Self.fewest else { return resumeAtOnce() }
    let batch = waiting
    waiting = []
    waiting.reserveCapacity(batch.count)
    Task.detached { for resumption in batch { resumption.waiter(resumption.outcome) } }
  }
}

extension Requests {
  /// Resumes the tasks of the pool, behind what is being read and the work that waits.
  func resumeSoon() {
    loop.execute { [requests = LoopBound(self, on: loop)] in requests.value.resumptions.resume() }
  }
}
