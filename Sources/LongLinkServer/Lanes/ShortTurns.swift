// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Synchronization

/// Assigns short links to the loops of a server in turn, until the server has drained.
final class ShortTurns: Sendable {
  private struct State {
    var next = 0
    var hasEnded = false
  }

  private let state = Mutex(State())

  /// The index of the next of `count` loops; nil without loops, or once the server has drained.
  func next(of count: Int) -> Int? {
    state.withLock(of: self) { state in
      guard count > 0, !state.hasEnded else { return nil }
      defer { state.next &+= 1 }
      return state.next % count
    }
  }

  /// Assigns no more short links, so that the loops may stop.
  func end() {
    state.withLock(of: self) { $0.hasEnded = true }
  }
}
