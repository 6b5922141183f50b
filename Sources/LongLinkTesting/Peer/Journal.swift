// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The record of a scripted peer, and the tasks that wait for it to change. Any thread may use it.
final class Journal: Sendable {
  private struct State {
    var record = PeerRecord()
    var waiters: [Waiter] = []
    var nextWaiter = 0
    var isFinished = false
  }

  private struct Waiter {
    let number: Int
    let predicate: @Sendable (PeerRecord) -> Bool
    let continuation: CheckedContinuation<Bool, Never>
  }

  private let state = Mutex(State())

  var record: PeerRecord { state.withLock { $0.record } }

  /// Changes the record, and resumes the tasks whose condition now holds.
  @discardableResult
  func update<T: Sendable>(_ body: (inout PeerRecord) -> T) -> T {
    let (value, woken) = state.withLock { state in
      let value = body(&state.record)
      var woken: [CheckedContinuation<Bool, Never>] = []
      state.waiters.removeAll { waiter in
        guard waiter.predicate(state.record) else { return false }
        woken.append(waiter.continuation)
        return true
      }
      return (value, woken)
    }
    for continuation in woken { continuation.resume(returning: true) }
    return value
  }

  /// What a call waits for, in words, and where in the test's source it is.
  struct Call {
    let subject: String
    let place: SourcePlace

    init(_ subject: String, _ fileID: String, _ line: Int) {
      self.subject = subject
      place = SourcePlace(fileID: fileID, line: line)
    }
  }

  /// Waits until a condition holds.
  ///
  /// Throws if the task is cancelled or the peer stops before that.
  func wait(
    for call: Call, until predicate: @escaping @Sendable (PeerRecord) -> Bool
  ) async throws {
    let wait = WaitList.begin(call.subject, at: call.place)
    defer { wait?.ended() }
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    let isMet = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = state.withLock { state in
          if predicate(state.record) { return true }
          if state.isFinished || Task.isCancelled { return false }
          state.waiters.append(
            Waiter(number: number, predicate: predicate, continuation: continuation)
          )
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      giveUp { $0.number == number }
    }
    guard isMet else { throw CancellationError() }
  }

  /// Ends all waits. A later wait also ends immediately if its condition does not hold.
  func finish() {
    state.withLock { $0.isFinished = true }
    giveUp { _ in true }
  }

  private func giveUp(_ isMeant: (Waiter) -> Bool) {
    let given = state.withLock { state in
      let given = state.waiters.filter(isMeant).map(\.continuation)
      state.waiters.removeAll(where: isMeant)
      return given
    }
    for continuation in given { continuation.resume(returning: false) }
  }
}
