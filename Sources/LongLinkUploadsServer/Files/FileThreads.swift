// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Calls that block, made off the loops on a number of threads. In a simulation each is made at
/// once.
///
/// The owners of calls take turns, and each turn is one step of a job. An owner has one step that
/// runs while others wait; when none does, it has all threads but one, which is for a newcomer.
final class FileThreads: Sendable {
  /// One step of a job; returns whether the job needs another.
  typealias Step = @Sendable () -> Bool
  private typealias Turn = (owner: String, element: Step)

  private let count: Int
  private let state = Mutex(Turns<String, Step>())

  /// Makes so many calls at once, at least one.
  init(_ count: Int) {
    self.count = count
  }

  /// How many steps wait.
  var waiting: Int { state.withLock(of: self) { $0.count } }

  /// Whether a step of an owner runs.
  func isRunning(_ owner: String) -> Bool {
    state.withLock(of: self) { $0.running(of: owner) > 0 }
  }

  private var mostOfOwner: Int { max(1, count - 1) }

  /// Makes the steps of a job, as `loop` does calls that block. Any thread may ask for it.
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

  /// Calls a function once for each turn of `owner` until it returns something, and returns that.
  /// It goes on even if the task was cancelled.
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
