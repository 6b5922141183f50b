// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// When requests are to be sent.
protocol BenchSchedule: Sendable {
  /// Waits for the time of the next request, and returns it; nil when there is none any more.
  func next() async -> ContinuousClock.Instant?
  /// Ends it before its time.
  func stop()
  /// Ends it, and tells of each request that was due until then and that no caller took how long it
  /// was due. Call it once, when all callers have ended.
  func finish(unsent: (Duration) -> Void)
}

/// A request follows as soon as one has ended.
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

/// Requests are due at a steady rate, whether those before them have ended or not.
///
/// Whoever comes late for one is given it with the time at which it was due, so that the time in
/// which a slow answer kept all callers from sending counts as well.
final class OpenSchedule: BenchSchedule {
  private struct State {
    /// The number of the next request.
    var next = 0
    var waiters: [CheckedContinuation<ContinuousClock.Instant?, Never>] = []
    /// When it ended; nil before.
    var ended: ContinuousClock.Instant?
  }

  /// How long a thread rests when requests are due and nobody is free to send them.
  private static let rest: Duration = .microseconds(100)

  private let start: ContinuousClock.Instant
  private let end: ContinuousClock.Instant
  private let interval: Double
  private let count: Int
  private let state = Mutex(State())

  /// Makes a schedule of so many requests a second, which begins with `run`.
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

  /// Hands requests to those who wait, on a thread of its own: timers of the loop fire on whole
  /// milliseconds.
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
    // After Ctrl-C nearly all of them are yet to come.
    for number in first..<count {
      let waited = ended - due(number)
      guard waited > .zero else { return }
      unsent(waited)
    }
  }

  /// Hands out what is due, and returns when to come again; nil at the end.
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
