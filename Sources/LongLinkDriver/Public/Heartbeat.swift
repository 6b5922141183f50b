// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The times after which a silent peer is pinged and then declared dead.
///
/// This side sends a ping when it has read nothing for `interval`. If it then reads nothing for
/// `timeout`, it closes the connection with `heartbeatLost`. Only bytes that are read count as a
/// sign of life. Client and server each do this, with the smaller of both sides' intervals and
/// timeouts, but at least 200 ms and 100 ms. So a peer can neither turn detection off nor make this
/// side ping more than five times a second.
///
/// **The bound.** A peer that dies, freezes or is cut off is found within `interval + timeout`,
/// plus one eighth of the timeout while this side is writing. Two things extend the bound, because
/// neither proves a dead peer:
/// - Bytes written before the ping are still in transit on a slow path. The timeout then runs from
///   the last of them that the peer's system acknowledged.
/// - This process was paused. It first reads what has arrived, and the timeout starts again if the
///   timer fired late by half of the timeout, or by one second.
///
/// **How to choose.** On a server with many clients, the interval decides how many pings it answers
/// (10,000 clients at 30 s: 333 a second), and how long dead clients occupy connections. Between
/// machines in one room, 1 s and 500 ms work. On phones, each ping wakes the radio, and routers
/// drop silent connections, some long before the 2 hours and 4 minutes that RFC 5382 (section 5)
/// demands. Use an interval of 30 s to 4 min there, or let `ClientConfiguration.adaptHeartbeat`
/// find the longest interval that the network allows. A timeout below 1 s mistakes one lost packet
/// for a dead peer (RFC 6298, section 2.1, first retransmits after 1 s); above 30 s it only adds
/// delay.
public struct Heartbeat: Hashable, Sendable {
  /// The silence after which a ping is sent: 200 ms to 46 days. Default 30 s.
  public var interval: Duration
  /// The silence after a ping that ends the connection: 100 ms to 46 days. Default 10 s.
  public var timeout: Duration
  /// The number of requests in a row whose deadlines pass, with nothing read in between, that
  /// triggers an early ping. Default 3; 0 for never; not negative.
  ///
  /// The timeout runs from that ping. At most one such ping is sent a second.
  public var missedDeadlines: Int

  /// Makes a heartbeat that finds a dead peer within `interval + timeout`.
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
  /// One wake-up is the timer that sends a ping, plus the pong that follows at once. There is one
  /// in each interval, so the interval is at least `3,600 s / wakeUps`, and the timeout gets the
  /// rest of the bound. If the wake-ups allow it, the timeout is a quarter of the bound, but at
  /// most 30 s; otherwise it is shorter, but at least 1 s (for a bound below 4 s a quarter of the
  /// bound, and never below 100 ms). The peer's interval applies if it is shorter.
  ///
  /// Throws `invalidConfiguration` if `wakeUps` is below 1, if `bound` is below 300 ms, or if the
  /// two conflict. Then the error states the bound that `wakeUps` allows and the number of wake-ups
  /// that `bound` needs.
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
      throw .configuration("\(field).interval", "\(interval) is not between 200 ms and 46 days")
    }
    if timeout < .milliseconds(100) || timeout > .seconds(4_000_000) {
      throw .configuration("\(field).timeout", "\(timeout) is not between 100 ms and 46 days")
    }
    if missedDeadlines < 0 {
      throw .configuration("\(field).missedDeadlines", "\(missedDeadlines) is below 0")
    }
  }
}
