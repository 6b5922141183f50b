// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// Calls `handler` once, at an instant or less than two milliseconds after it.
  ///
  /// Timers of one instant fire in the order in which they were asked for. On a loop that was shut
  /// down a timer fires at once, since nothing waits there any more.
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

  /// Cancels a timer, and releases its handler. One that has fired stays as it is. O(1).
  package func cancel(_ timer: LoopTimer) {
    preconditionCurrent()
    timers.remove(timer)
  }

  /// Lets the work that waited for timers go on, once time is no longer looked at.
  func expireTimers() {
    for timer in timers.expireAll() { work.append(.timer(timer)) }
  }
}
