// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// Notices turns of a loop that take too long, and which handler took the time.
///
/// Handlers are timed only on a loop that has stalled before, or while something else asks for it,
/// because reading the clock has a cost for every request.
struct StallWatch {
  /// The duration in nanoseconds above which a turn has stalled.
  private let threshold: Int64
  /// When the loop began to be busy in this turn.
  private(set) var busySince: LinkInstant?
  private(set) var isTiming = false
  private var hasStalled = false
  /// How many want handlers to be timed although the loop has not stalled.
  private var wishes = 0
  private var count = 0
  private var began = LinkInstant.distantPast
  private var slowest: MessageType?
  private var longest: Int64 = 0

  init(threshold: Duration) {
    self.threshold = threshold.clampedNanoseconds
  }

  /// Records that the loop waits for events now. Returns whether handlers ran in the last turn.
  @inline(__always)
  mutating func turnBegins() -> Bool {
    busySince = nil
    guard count > 0 else { return false }
    count = 0
    slowest = nil
    longest = 0
    return true
  }

  /// Times handlers, whether the loop has stalled or not, until each call with true was followed by
  /// one with false.
  mutating func timeHandlers(_ isWanted: Bool, _ current: borrowing HandlerMark) {
    // When the handler began whose mark is still there, is not known.
    if !isTiming { current.clear() }
    wishes += isWanted ? 1 : -1
    isTiming = hasStalled || wishes > 0
  }

  /// Records that the loop's wait for events is over.
  mutating func isBusy(at now: LinkInstant) {
    if busySince == nil { busySince = now }
  }

  /// Records that the handler of a request begins.
  @inline(__always)
  mutating func begins(at now: @autoclosure () -> LinkInstant) {
    count += 1
    if isTiming { began = now() }
  }

  /// Records that the current handler, if any, has returned or was suspended.
  mutating func pauses(_ current: borrowing HandlerMark, at now: LinkInstant) {
    guard let type = current.type else { return }
    if now - began > longest {
      longest = now - began
      slowest = type
    }
    current.clear()
  }

  /// Returns how long the turn was, in nanoseconds, and the message type whose handler took the
  /// time, if it is known; nil if the turn was short enough. `last` is the type of the handler that
  /// began last. Handlers are timed after the first stall.
  mutating func turnEnds(
    at now: LinkInstant, last: @autoclosure () -> MessageType?
  ) -> (duration: Int64, type: MessageType?)? {
    guard let busySince, now - busySince > threshold else { return nil }
    defer { (hasStalled, isTiming) = (true, true) }
    let duration = now - busySince
    let type = isTiming ? (longest > duration / 2 ? slowest : nil) : count == 1 ? last() : nil
    return (duration, type)
  }
}
