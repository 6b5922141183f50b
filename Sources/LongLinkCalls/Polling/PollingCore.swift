// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// One polling fallback on its loop.
final class PollingCore: TimerHandler {
  private let loop: EventLoop
  private let policy: PollingPolicy
  private let poll: @Sendable (PollingRound) async -> Void
  /// When the outage began; nil while there is none, or no connection is wanted. A connection ends
  /// it once it has proved itself: others may be cut as soon as they are made.
  private var downSince: LinkInstant?
  /// Whether there is a connection.
  private var isConnected = false
  private var timer: LoopTimer?
  private var round: Task<Void, Never>?
  private var roundIsCancelled = false
  private var number = 0
  private var isStopped = false
  private(set) var counters = PollingCounters()

  init(
    _ policy: PollingPolicy, on loop: EventLoop,
    _ poll: @escaping @Sendable (PollingRound) async -> Void
  ) {
    self.policy = policy
    self.loop = loop
    self.poll = poll
  }

  /// Whether rounds have begun.
  var isPolling: Bool { downSince != nil && number > 0 }

  func connectionChanged(to state: ConnectionState) {
    guard !isStopped else { return }
    switch state {
    case .connecting, .short, .waiting:
      isConnected = false
      if downSince == nil {
        downSince = loop.now
        number = 0
        arm(in: policy.after)
      } else if timer == nil, round == nil {
        // It was due while there was a connection.
        arm(in: .zero)
      }
    case .connected, .migrating:
      isConnected = true
    case .idle, .notAccepted, .suspended, .closed:
      isConnected = false
      rest()
    }
  }

  func connectionProven() { rest() }

  func stop() {
    isStopped = true
    rest()
  }

  private func rest() {
    downSince = nil
    number = 0
    if let timer { loop.cancel(timer) }
    timer = nil
    if let round, !roundIsCancelled {
      roundIsCancelled = true
      counters.cancelled += 1
      round.cancel()
    }
  }

  private func arm(in pause: Duration) {
    let share = Double(loop.driver.nextRandom() >> 11) / Double(UInt64(1) << 53)
    let part = Double(policy.interval.clampedNanoseconds) * policy.jitter * share
    let lengthened = pause.clampedNanoseconds.addingReportingOverflow(Int64(part))
    timer = loop.schedule(
      at: loop.now + (lengthened.overflow ? .max : lengthened.partialValue), self, token: 0)
  }

  func timerFired(token: UInt64) {
    timer = nil
    // A round of an earlier outage may still run; `roundEnded` then continues.
    guard let downSince, round == nil, !isConnected else { return }
    number += 1
    counters.rounds += 1
    roundIsCancelled = false
    let next = PollingRound(number: number, downFor: downSince.duration(to: loop.now))
    let bound = LoopBound(self, on: loop)
    round = Task(executorPreference: loop) { [loop, poll] in
      await poll(next)
      loop.execute { bound.value.roundEnded() }
    }
  }

  private func roundEnded() {
    round = nil
    guard downSince != nil, timer == nil else { return }
    arm(in: number == 0 ? .zero : policy.interval)
  }
}
