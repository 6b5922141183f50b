// SPDX-License-Identifier: Apache-2.0

/// Told, on its loop, that a timer's time has come.
package protocol TimerHandler: AnyObject {
  /// `token` is the value that was given to `schedule`.
  func timerFired(token: UInt64)
}

/// Told, on its loop, that the turn it asked in is at its end.
package protocol TurnHandler: AnyObject {
  /// `token` is the value that was given to `atEndOfTurn`.
  func turnEnds(token: UInt64)
}

/// Names a timer of one loop. It goes stale when the timer fires or is cancelled.
package struct LoopTimer: Hashable, Sendable {
  let key: UInt64

  init(key: UInt64) {
    self.key = key
  }

  /// The name of no timer; cancelling it does nothing.
  package static let none = LoopTimer(key: 0)
}
