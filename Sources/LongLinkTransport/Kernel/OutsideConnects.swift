// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// Tells the simulations in this process what its real loops connect to, so that they recognise a
/// client that was meant to run in a simulation. Any thread may use it.
package final class OutsideConnects: Sendable {
  /// What a real loop connects to, or looks up.
  package enum Target: Hashable, Sendable {
    case address(SocketAddress)
    case host(String, port: UInt16)
  }

  package static let shared = OutsideConnects()

  private struct State {
    var watchers: [Int: @Sendable (Target) -> Void] = [:]
    var made = 0
  }

  private let isWatched = Atomic(false)
  private let state = Mutex(State())

  /// Calls `watcher` with each target, until `endWatch` with the returned number. The watcher must
  /// not begin or end a watch itself.
  package func watch(_ watcher: @escaping @Sendable (Target) -> Void) -> Int {
    state.withLock(of: self) { state in
      state.made += 1
      state.watchers[state.made] = watcher
      isWatched.store(true, ordering: .relaxed)
      return state.made
    }
  }

  package func endWatch(_ number: Int) {
    state.withLock(of: self) { state in
      state.watchers[number] = nil
      isWatched.store(!state.watchers.isEmpty, ordering: .relaxed)
    }
  }

  func tell(_ target: @autoclosure () -> Target) {
    guard isWatched.load(ordering: .relaxed) else { return }
    let target = target()
    // Within the lock, so that nothing keeps a simulation that has ended its watch.
    state.withLock(of: self) { state in
      for watcher in state.watchers.values { watcher(target) }
    }
  }
}
