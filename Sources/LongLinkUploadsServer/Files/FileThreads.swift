// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Calls that block: they are made off the loops, in the order in which they were given, and so
/// many at once at most. In a simulation each is made at once.
final class FileThreads: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    /// Where the next job is; those in front of it have been taken.
    var next = 0
    var running = 0

    mutating func take() -> (@Sendable () -> Void)? {
      guard next < jobs.count else {
        jobs.removeAll(keepingCapacity: jobs.capacity <= 64)
        next = 0
        running -= 1
        return nil
      }
      let job = jobs[next]
      next += 1
      if next >= 64, next * 2 > jobs.count {
        jobs.removeFirst(next)
        next = 0
      }
      return job
    }
  }

  private let count: Int
  private let state = Mutex(State())

  /// Makes so many calls at once, at least one.
  init(_ count: Int) {
    self.count = count
  }

  /// Makes a call, as `loop` does those that block. Any thread may ask for it.
  func start(on loop: EventLoop, _ job: @escaping @Sendable () -> Void) {
    let needsThread = state.withLock(of: self) { state in
      state.jobs.append(job)
      guard state.running < count else { return false }
      state.running += 1
      return true
    }
    guard needsThread else { return }
    if loop.isCurrent {
      loop.offload { self.work() }
    } else {
      loop.execute { loop.offload { self.work() } }
    }
  }

  private func work() {
    while let job = state.withLock(of: self, { $0.take() }) { job() }
  }

  /// Makes a call, and returns its result. The call is made even if the task was cancelled.
  func run<Success: Sendable, Failure: Error>(
    on loop: EventLoop, _ call: @escaping @Sendable () throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await suspend { waiter in
      start(on: loop) {
        waiter(Result { () throws(Failure) -> Success in try call() })
      }
    }
    return try result.get()
  }
}
