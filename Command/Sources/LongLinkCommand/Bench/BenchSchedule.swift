// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Decides when requests are sent.
protocol BenchSchedule: Sendable {
  /// Waits until a request is due, and returns when it was due; nil if there are no more.
  func next() async -> ContinuousClock.Instant?
  /// Ends the schedule early.
  func stop()
  /// Ends the schedule, and calls `unsent` for each due request that no caller took, with the time
  /// it waited. Call this once, after all callers have ended.
  func finish(unsent: (Duration) -> Void)
}

/// A closed loop: a caller's next request is due as soon as its last one has ended.
final class ClosedSchedule: BenchSchedule {
  private let end: ContinuousClock.Instant
  private let isStopped = Atomic(false)

  init(end: ContinuousClock.Instant) { self.end = end }

  func next() async -> ContinuousClock.Instant? {
    let now = ContinuousClock.now
    return now < end && !isStopped.load(ordering: .relaxed) ? now : nil
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  func finish(unsent: (Duration) -> Void) { stop() }
}

/// An open loop: requests are due at a steady rate, whether earlier ones have ended or not.
///
/// A late caller gets the time at which its request was due. So the time for which slow responses
/// kept all callers busy counts too: there is no coordinated omission.
final class OpenSchedule: BenchSchedule {
  private struct State {
    /// The number of the next request.
    var next = 0
    var waiters: [CheckedContinuation<ContinuousClock.Instant?, Never>] = []
    /// The end; nil while it runs.
    var ended: ContinuousClock.Instant?
  }

  /// The thread's pause when requests are due and no caller is free.
  private static let rest: Duration = .microseconds(100)

  private let start: ContinuousClock.Instant
  private let end: ContinuousClock.Instant
  private let interval: Double
  private let count: Int
  private let state = Mutex(State())

  /// Makes a schedule of `rate` requests per second; `run` starts it.
  init(rate: Double, from start: ContinuousClock.Instant, for duration: Duration) {
    self.start = start
    end = start + duration
    interval = 1 / rate
    count = max(1, Int((duration / .seconds(1) * rate).rounded(.down)))
  }

  private func due(_ number: Int) -> ContinuousClock.Instant {
    start + .seconds(Double(number) * interval)
  }

  func next() async -> ContinuousClock.Instant? {
    await withCheckedContinuation { continuation in
      let found: ContinuousClock.Instant?? = state.withLock { state in
        guard state.ended == nil, state.next < count else { return .some(nil) }
        let time = due(state.next)
        guard time <= .now else {
          state.waiters.append(continuation)
          return nil
        }
        state.next += 1
        return time
      }
      if let found { continuation.resume(returning: found) }
    }
  }

  /// Hands requests to waiting callers, from a separate thread because the loop's timers fire on
  /// whole milliseconds.
  func run() {
    Thread.detachNewThread { [self] in
      while let wake = handOut() {
        let pause = wake - ContinuousClock.now
        if pause > .zero { Thread.sleep(forTimeInterval: pause / .seconds(1)) }
      }
      stop()
    }
  }

  func stop() {
    let waiters = state.withLock { state in
      defer { state.waiters = [] }
      if state.ended == nil { state.ended = min(end, .now) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }

  func finish(unsent: (Duration) -> Void) {
    stop()
    let (first, ended) = state.withLock { ($0.next, $0.ended ?? end) }
    // After Ctrl-C nearly all of them are not due yet: stop at the first.
    for number in first..<count {
      let waited = ended - due(number)
      guard waited > .zero else { return }
      unsent(waited)
    }
  }

  /// Hands out due requests, and returns when to run again; nil at the end.
  private func handOut() -> ContinuousClock.Instant? {
    let now = ContinuousClock.now
    var given: [(CheckedContinuation<ContinuousClock.Instant?, Never>, ContinuousClock.Instant)] =
      []
    let wake: ContinuousClock.Instant? = state.withLock { state in
      while state.next < count, due(state.next) <= now, !state.waiters.isEmpty {
        given.append((state.waiters.removeFirst(), due(state.next)))
        state.next += 1
      }
      guard state.ended == nil, state.next < count, now < end else { return nil }
      return min(end, max(due(state.next), now + OpenSchedule.rest))
    }
    for (waiter, time) in given { waiter.resume(returning: time) }
    return wake
  }
}
