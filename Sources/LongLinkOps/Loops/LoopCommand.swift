// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Synchronization

/// What has become of a command to the loops of the server, one of which may carry it out until it
/// is over. Any thread may use it.
final class LoopCommand<Answer: Sendable>: Sendable {
  enum Outcome {
    /// No loop has done it, or will.
    case notDone
    /// A loop has begun it, and may do it yet.
    case begun
    case done(Answer)
  }

  private struct State {
    var isOver = false
    var running = 0
    var answer: Answer?
  }

  private let state = Mutex(State())

  /// Carries out the command on a loop, unless it is over. `body` returns nil if it does nothing.
  func run(_ body: () -> Answer?) -> Answer? {
    let isWanted = state.withLock { state in
      if !state.isOver { state.running += 1 }
      return !state.isOver
    }
    guard isWanted else { return nil }
    let answer = body()
    state.withLock { state in
      state.running -= 1
      state.answer = state.answer ?? answer
    }
    return answer
  }

  /// Makes sure that no loop begins the command any more.
  func end() -> Outcome {
    state.withLock { state in
      state.isOver = true
      if let answer = state.answer { return .done(answer) }
      return state.running > 0 ? .begun : .notDone
    }
  }
}
#endif
