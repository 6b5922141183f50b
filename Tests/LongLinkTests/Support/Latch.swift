// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Something that happens once, and that tasks can wait for; it costs no time.
final class Latch: Sendable {
  private struct State {
    var isOpen = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  var isOpen: Bool { state.withLock { $0.isOpen } }

  func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiters.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// A list that any thread adds to, and whose length tasks can wait for.
final class Tally<Element: Sendable>: Sendable {
  private struct State {
    var elements: [Element] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var elements: [Element] { state.withLock { $0.elements } }
  var count: Int { state.withLock { $0.elements.count } }

  func add(_ element: Element) {
    let ready = state.withLock { state in
      state.elements.append(element)
      let count = state.elements.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }.map(\.continuation)
    }
    for continuation in ready { continuation.resume() }
  }

  /// Waits until there are so many.
  func reached(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.elements.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }
}
