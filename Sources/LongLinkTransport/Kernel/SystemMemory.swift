// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import Dispatch
internal import Synchronization

/// The memory of the process.
package enum SystemMemory {
  /// Returns freed memory that the C library keeps to the system, if the library supports that.
  ///
  /// It takes milliseconds, in which other threads may wait for memory. So it is done on another
  /// thread, and at most once per 100 ms in a process, however often it is asked for.
  @Sendable package static func returnFree() { returning.ask() }

  private static let returning = SparseWork(every: 100) { cll_return_free_memory() }

  /// Keeps the C library from returning the memory of each large body to the system as soon as it
  /// is free. Only the first call has an effect.
  static let reusesFree: Void = cll_reuse_free_memory()
}

/// Work that is done on another thread, once for all that ask for it within an interval.
///
/// The first one that asks has it done at once. Others have it done once more, when the interval
/// after the last time is over.
final class SparseWork: Sendable {
  typealias Job = @Sendable () -> Void

  private enum State {
    case idle
    /// The work is running, or the interval after it is.
    case busy
    /// As `busy`, and the work has been asked for again.
    case due
  }

  private let state = Mutex(State.idle)
  private let interval: Int
  private let work: Job
  private let run: @Sendable (_ delay: Int, _ job: @escaping Job) -> Void

  /// Makes work that is done at most once per `interval` milliseconds. `run` runs a job on another
  /// thread after a delay in milliseconds.
  init(
    every interval: Int,
    run: @escaping @Sendable (_ delay: Int, _ job: @escaping Job) -> Void = { delay, job in
      DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(delay)) {
        job()
      }
    },
    _ work: @escaping Job
  ) {
    self.interval = interval
    self.run = run
    self.work = work
  }

  /// Asks for the work: it runs now, or when the interval is over.
  func ask() {
    let begins = state.withLock(of: self) { state in
      defer { state = state == .idle ? .busy : .due }
      return state == .idle
    }
    if begins { begin() }
  }

  private func begin() {
    run(0) { [self] in
      work()
      run(interval) { [self] in rested() }
    }
  }

  private func rested() {
    let isDue = state.withLock(of: self) { state in
      defer { state = state == .due ? .busy : .idle }
      return state == .due
    }
    if isDue { begin() }
  }
}
