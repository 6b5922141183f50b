// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTransport
internal import Synchronization

/// A value that is set once and awaited by any number of tasks. Later values are ignored.
package final class Gate<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var waiters: [Waiter<Value>] = []
  }

  private let state = Mutex(State())

  package init() {}

  package func open(_ value: Value) {
    let waiters = state.withLock(of: self) { state -> [Waiter<Value>] in
      guard state.value == nil else { return [] }
      state.value = value
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter(value) }
  }

  package var value: Value {
    get async {
      await suspend { (waiter: Waiter<Value>) in
        let value = state.withLock(of: self) { state -> Value? in
          if state.value == nil { state.waiters.append(waiter) }
          return state.value
        }
        if let value { waiter(value) }
      }
    }
  }
}
