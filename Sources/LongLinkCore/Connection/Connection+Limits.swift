// SPDX-License-Identifier: Apache-2.0

// What a server does about a peer that asks for too much.

extension Connection {
  /// Suspends reading, because the peer sends more bytes or frames per second than it may. That is
  /// not silence of the peer, and `resumedReading` must follow `unslowed`.
  package mutating func slowed(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard readHold.setSlowed(true) else { return }
    counters.rateHolds += 1
    // The peer's own pings wait unread. What this side writes shows the peer that it is alive.
    guard isOpen, canProbe, outbox.isEmpty,
      liveness.hasWrittenNothing(
        for: max(agreement.heartbeatTimeout / 4, Connection.leastSignOfLife), at: self.now)
    else { return }
    _ = ping(at: self.now)
  }

  /// The least time between two pings by `slowed`, in nanoseconds, so that the peer allows them.
  private static let leastSignOfLife: Int64 = 250_000_000

  /// Ends a suspension by `slowed`, which has lasted for `held` nanoseconds.
  package mutating func unslowed(after held: Int64) {
    guard readHold.setSlowed(false) else { return }
    counters.rateHeldMilliseconds += UInt64(clamping: held / 1_000_000)
  }

  /// Whether the connection has not opened yet: the peer must not make this side hold much.
  package var isFresh: Bool { isLive && !isOpen }

  /// Counts a cancel of the peer. If the peer cancels more requests per second than it may, closes
  /// the connection and returns false: each has cost this side more than the peer.
  mutating func takesCancel() -> Bool {
    counters.cancelsReceived += 1
    guard let rate = settings.cancelRate, !cancels.take(of: rate, at: now) else { return true }
    let reason = "too many requests are cancelled per second: back off"
    beginClosing(.cancelLimit, saying: notice(.overloaded, reason))
    return false
  }
}
