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

  private struct Owner {
    var steps = Queue<Step>()
    var running = 0
  }

  private struct State {
    /// Only owners that have a step which waits or runs.
    var owners: [String: Owner] = [:]
    /// The owners with a step that waits, each once, in the order of their turns.
    var turns = Queue<String>()
    var running = 0

    mutating func add(_ step: @escaping Step, of name: String) {
      if owners[name, default: Owner()].steps.isEmpty { turns.append(name) }
      owners[name, default: Owner()].steps.append(step)
    }

    /// The next step; nil if there is none, or if its owner has to leave a thread to others.
    mutating func take(atMost most: Int) -> (name: String, step: Step)? {
      let name =
        turns.remove { owners[$0]?.running == 0 }
        ?? turns.remove { owners[$0, default: Owner()].running < most }
      guard let name, let step = owners[name]?.steps.popFirst() else { return nil }
      owners[name]?.running += 1
      running += 1
      if owners[name]?.steps.isEmpty == false { turns.append(name) }
      return (name, step)
    }

    mutating func ended(_ name: String) {
      running -= 1
      owners[name]?.running -= 1
      if let owner = owners[name], owner.running == 0, owner.steps.isEmpty { owners[name] = nil }
    }
  }

  private let count: Int
  private let state = Mutex(State())

  /// Makes so many calls at once, at least one.
  init(_ count: Int) {
    self.count = count
  }

  /// How many steps wait.
  var waiting: Int { state.withLock(of: self) { $0.owners.values.reduce(0) { $0 + $1.steps.count } } }

  /// Whether a step of an owner runs.
  func isRunning(_ owner: String) -> Bool {
    state.withLock(of: self) { $0.owners[owner]?.running ?? 0 > 0 }
  }

  private var mostOfOwner: Int { max(1, count - 1) }

  /// Makes the steps of a job, as `loop` does calls that block. Any thread may ask for it.
  func start(of owner: String, on loop: EventLoop, _ step: @escaping Step) {
    let first = state.withLock(of: self) { state -> (name: String, step: Step)? in
      state.add(step, of: owner)
      return state.running < count ? state.take(atMost: mostOfOwner) : nil
    }
    guard let first else { return }
    if loop.isCurrent {
      loop.offload { self.work(first) }
    } else {
      loop.execute { loop.offload { self.work(first) } }
    }
  }

  private func work(_ first: (name: String, step: Step)) {
    var next: (name: String, step: Step)? = first
    while let (name, step) = next {
      let needsMore = step()
      next = state.withLock(of: self) { state in
        if needsMore { state.add(step, of: name) }
        state.ended(name)
        return state.take(atMost: mostOfOwner)
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
