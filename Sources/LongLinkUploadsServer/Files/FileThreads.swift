// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Runs calls that block off the loops, on a number of threads. In a simulation each runs at once.
///
/// Owners take turns, and each turn is one step of a job. While other owners wait, an owner has at
/// most one running step. Otherwise it has all threads but one, which is kept for a new owner.
final class FileThreads: Sendable {
  /// One step of a job; returns whether the job needs another.
  typealias Step = @Sendable () -> Bool
  private typealias Turn = (owner: String, element: Step)

  private let count: Int
  private let state = Mutex(Turns<String, Step>())

  /// Makes `count` threads available, at least one.
  init(_ count: Int) {
    self.count = count
  }

  /// The number of steps that wait for a thread.
  var waiting: Int { state.withLock(of: self) { $0.count } }

  /// Whether a step of this owner runs now.
  func isRunning(_ owner: String) -> Bool {
    state.withLock(of: self) { $0.running(of: owner) > 0 }
  }

  private var mostOfOwner: Int { max(1, count - 1) }

  /// Starts a job, whose steps run one after the other on the threads; `loop` provides them.
  /// Callable from any thread.
  func start(of owner: String, on loop: EventLoop, _ step: @escaping Step) {
    let first = state.withLock(of: self) { state -> Turn? in
      state.append(step, of: owner)
      return state.running < count ? state.popFirst(atMost: mostOfOwner) : nil
    }
    guard let first else { return }
    if loop.isCurrent {
      loop.offload { self.work(first) }
    } else {
      loop.execute { loop.offload { self.work(first) } }
    }
  }

  private func work(_ first: Turn) {
    var next: Turn? = first
    while let (owner, step) = next {
      let needsMore = step()
      next = state.withLock(of: self) { state in
        if needsMore { state.append(step, of: owner) }
        state.ended(owner)
        return state.popFirst(atMost: mostOfOwner)
      }
    }
  }

  /// Runs a function in each turn of `owner` until it returns a value, and returns that value. It
  /// goes on even if the task is cancelled.
  func run<Success: Sendable, Failure: Error>(
    of owner: String, on loop: EventLoop,
    _ step: @escaping @Sendable () throws(Failure) -> Success?
  ) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await suspend { waiter in
      start(of: owner, on: loop) {
        do throws(Failure) {
          guard let success = try step() else { return true }
          waiter(.success(success))
        } catch {
          waiter(.failure(error))
        }
        return false
      }
    }
    return try result.get()
  }
}
