// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Synchronization

/// Deals short links to the loops of a server in turn, until the server has drained.
final class ShortTurns: Sendable {
  private struct State {
    var next = 0
    var hasEnded = false
  }

  private let state = Mutex(State())

  /// The index of the next one of so many loops; nil if there are none, or none any more.
  func next(of count: Int) -> Int? {
    state.withLock(of: self) { state in
      guard count > 0, !state.hasEnded else { return nil }
      defer { state.next &+= 1 }
      return state.next % count
    }
  }

  /// Ends the dealing: the loops may stop.
  func end() {
    state.withLock(of: self) { $0.hasEnded = true }
  }
}
