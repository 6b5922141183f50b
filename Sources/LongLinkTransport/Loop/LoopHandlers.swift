// SPDX-License-Identifier: Apache-2.0

/// An observer that is notified on its loop when a timer fires.
package protocol TimerHandler: AnyObject {
  /// `token` is the value passed to `schedule`.
  func timerFired(token: UInt64)
}

/// An observer that is notified on its loop at the end of a turn.
package protocol TurnHandler: AnyObject {
  /// `token` is the value passed to `atEndOfTurn`.
  func turnEnds(token: UInt64)
}

/// Identifies a timer of one loop. It becomes stale when the timer fires or is cancelled.
package struct LoopTimer: Hashable, Sendable {
  let key: UInt64

  init(key: UInt64) {
    self.key = key
  }

  /// Identifies no timer; cancelling it has no effect.
  package static let none = LoopTimer(key: 0)
}
