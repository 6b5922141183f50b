// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// How a dead peer is found.
///
/// A ping leaves when nothing was read for `interval`; the peer is given up, and the connection
/// ends with `heartbeatLost`, when nothing is read for `timeout` after that. Any byte that is read
/// is a sign of life, and none that is written. Client and server each do this, with the smaller of
/// both sides' intervals and timeouts, but at least 200 ms and 100 ms. So a peer can neither turn
/// the search off nor make this side ping more than five times a second.
///
/// **The bound.** A peer that dies, freezes or is cut off is found within `interval + timeout`, and
/// an eighth of the timeout more where this side was sending. Two things move it, since neither
/// tells of a dead peer: bytes that this side wrote before the ping and that are still on their way
/// over a slow path (the timeout then runs from the last of them that the peer's system has taken),
/// and a pause of this process (what came meanwhile is read first, and the timeout starts anew when
/// judgement comes late by half of it, or by a second).
///
/// **How to choose.** On a server with many clients the interval decides how many pings it answers
/// (10,000 clients at 30 s: 333 a second), and how long dead clients take up connections. Between
/// machines in one room 1 s and 500 ms do. For phones each ping wakes the radio, and routers on the
/// way forget silent connections, some of them long before the 2 hours and 4 minutes that RFC 5382
/// (section 5) asks for. So either an interval of 30 s to 4 min, or an `AdaptiveHeartbeat` that
/// finds the longest that the network at hand allows. A timeout below 1 s takes one lost packet for
/// death (RFC 6298, section 2.1, waits that long for the first one); above 30 s it only delays.
public struct Heartbeat: Hashable, Sendable {
  /// A ping is sent when nothing was read for so long. Default 30 s, 200 ms to 46 days.
  public var interval: Duration
  /// The peer is given up when nothing is read for so long after that. Default 10 s, 100 ms to 46
  /// days.
  public var timeout: Duration
  /// How many requests in a row whose deadlines pass, with nothing read in between, make a ping
  /// leave at once. Default 3; 0 for never.
  ///
  /// The timeout runs from that ping. There is at most one such ping a second.
  public var missedDeadlines: Int

  /// Makes a heartbeat; a dead peer is found within `interval + timeout`.
  public init(
    interval: Duration = .seconds(30), timeout: Duration = .seconds(10), missedDeadlines: Int = 3
  ) {
    self.interval = interval
    self.timeout = timeout
    self.missedDeadlines = missedDeadlines
  }

  /// Makes the heartbeat that finds a dead peer within `bound` and wakes this side at most
  /// `wakeUps` times an hour while the connection is idle.
  ///
  /// A wake-up is the timer that sends a ping, with the pong that follows at once. There is one for
  /// each interval, so that `wakeUps` asks for an interval of `3,600 s / wakeUps` at least, and the
  /// bound leaves the rest to the timeout. That has a quarter of the bound where the wake-ups allow
  /// it, but at most 30 s; else what is left, but at least 1 s (a quarter of the bound below 4 s,
  /// and never less than 100 ms). The peer's interval counts where it is shorter.
  ///
  /// Throws `invalidConfiguration` when both cannot be had: the error says which bound so many
  /// wake-ups allow, and how many wake-ups this bound needs.
  public init(
    findingDeadPeersWithin bound: Duration, wakingAtMost wakeUps: Int
  ) throws(LongLinkError) {
    do throws(LivenessBudget.Refusal) {
      let budget = LivenessBudget(
        bound: bound.clampedNanoseconds / 1_000_000, wakeUps: Int64(wakeUps))
      let times = try budget.solved()
      self.init(interval: .milliseconds(times.interval), timeout: .milliseconds(times.timeout))
    } catch {
      throw .configuration("heartbeat", error.description)
    }
  }

  package func validate(field: String) throws(LongLinkError) {
    if interval < .milliseconds(200) || interval > .seconds(4_000_000) {
      throw .configuration("\(field).interval", "\(interval) is not within 200 ms and 46 days")
    }
    if timeout < .milliseconds(100) || timeout > .seconds(4_000_000) {
      throw .configuration("\(field).timeout", "\(timeout) is not within 100 ms and 46 days")
    }
    if missedDeadlines < 0 {
      throw .configuration("\(field).missedDeadlines", "\(missedDeadlines) is below 0")
    }
  }
}
