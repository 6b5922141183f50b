// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// A link's one timer on its loop, which follows the deadline of the core.
struct LinkTimer {
  private var timer: LoopTimer?
  /// When the timer fires.
  private(set) var due = LinkInstant.distantFuture

  /// Moves the timer. Without a deadline it stays off, as in a dialect that has no timeouts.
  mutating func set(
    to deadline: LinkInstant, for handler: some TimerHandler, _ token: UInt64, on loop: EventLoop
  ) {
    stop(on: loop)
    due = deadline
    if due != .distantFuture { timer = loop.schedule(at: due, handler, token: token) }
  }

  mutating func stop(on loop: EventLoop) {
    if let timer { loop.cancel(timer) }
    hasFired()
  }

  mutating func hasFired() {
    timer = nil
    due = .distantFuture
  }
}
