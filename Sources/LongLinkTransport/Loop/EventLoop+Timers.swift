// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// Calls `handler` once, at `deadline` or less than two milliseconds after it.
  ///
  /// Timers with the same deadline fire in the order of their scheduling. On a loop that was shut
  /// down a timer fires at once, because the loop does not wait any more.
  package func schedule(
    at deadline: LinkInstant,
    _ handler: any TimerHandler,
    token: UInt64
  ) -> LoopTimer {
    preconditionCurrent()
    guard isStopped else { return timers.insert(handler, token: token, at: deadline) }
    let timer = timers.insert(handler, token: token)
    work.append(.timer(timer))
    return timer
  }

  /// Cancels a timer, and releases its handler. Has no effect on a timer that has fired. O(1).
  package func cancel(_ timer: LoopTimer) {
    preconditionCurrent()
    timers.remove(timer)
  }

  /// The handlers of all timers.
  package var timerHandlers: [any TimerHandler] { timers.handlers }

  /// Makes all timers fire, because the loop does not wait any more.
  func expireTimers() {
    for timer in timers.expireAll() { work.append(.timer(timer)) }
  }
}
