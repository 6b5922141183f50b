import Foundation
import Synchronization

/// When requests are to be sent.
protocol BenchSchedule: Sendable {
  /// Waits for the time of the next request, and returns it; nil when there is none any more.
  func next() async -> ContinuousClock.Instant?
}

/// A request follows as soon as one has ended.
struct ClosedSchedule: BenchSchedule {
  let end: ContinuousClock.Instant

  func next() async -> ContinuousClock.Instant? {
    let now = ContinuousClock.now
    return now < end ? now : nil
  }
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
    var hasEnded = false
  }

  /// How long a thread rests when requests are due and nobody is free to send them.
  private static let rest: Duration = .microseconds(100)

  private let start: ContinuousClock.Instant
  private let end: ContinuousClock.Instant
  private let interval: Double
  private let count: Int
  private let state = Mutex(State())

  /// - Parameter rate: Requests per second.
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
        guard !state.hasEnded, state.next < count else { return .some(nil) }
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
  /// milliseconds. Calls `unsent`, at the end, with how long each request was due that nobody took.
  func run(unsent: @escaping @Sendable (Duration) -> Void) {
    Thread.detachNewThread { [self] in
      while let wake = handOut() {
        let pause = wake - ContinuousClock.now
        if pause > .zero { Thread.sleep(forTimeInterval: pause / .seconds(1)) }
      }
      let left = state.withLock { state in
        state.hasEnded = true
        let (waiters, next) = (state.waiters, state.next)
        state.waiters = []
        return (waiters, next)
      }
      for number in left.1..<count { unsent(end - due(number)) }
      for waiter in left.0 { waiter.resume(returning: nil) }
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
      guard state.next < count, now < end else { return nil }
      return min(end, max(due(state.next), now + OpenSchedule.rest))
    }
    for (waiter, time) in given { waiter.resume(returning: time) }
    return wake
  }
}
