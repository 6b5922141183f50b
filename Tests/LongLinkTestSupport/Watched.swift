// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A value that a test waits for.
package final class Watched<Value: Sendable>: Sendable {
  private struct State: Sendable {
    var value: Value
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  package init(_ value: Value) {
    state = Mutex(State(value: value))
  }

  package var value: Value { state.withLock { $0.value } }

  package func change(_ body: @Sendable (inout Value) -> Void) {
    let waiting = state.withLock { state in
      body(&state.value)
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until the value is so, and returns it.
  @discardableResult
  package func until(_ isSo: @Sendable (Value) -> Bool) async -> Value {
    while true {
      let value = value
      if isSo(value) { return value }
      await withCheckedContinuation { continuation in
        let isNow = state.withLock { state in
          if isSo(state.value) { return true }
          state.waiting.append(continuation)
          return false
        }
        if isNow { continuation.resume() }
      }
    }
  }
}
