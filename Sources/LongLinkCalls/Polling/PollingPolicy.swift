// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver

/// When to poll while the connection is down.
public struct PollingPolicy: Hashable, Sendable {
  /// How long the connection must be down before the first round; not negative. Default 30 s.
  ///
  /// A connection that is lost before it has proved itself (see `ReconnectPolicy`) does not end the
  /// outage.
  public var after: Duration
  /// The time from the end of one round to the next; above zero. Default 60 s.
  public var interval: Duration
  /// The most that is added to each pause at random, as a fraction of the interval, so that the
  /// clients of a server that is down do not poll together. 0 to 1; default 0.2.
  public var jitter: Double

  /// Makes a policy.
  public init(
    after: Duration = .seconds(30), interval: Duration = .seconds(60), jitter: Double = 0.2
  ) {
    self.after = after
    self.interval = interval
    self.jitter = jitter
  }

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    if after < .zero { throw .configuration("after", "it is negative") }
    if interval <= .zero { throw .configuration("interval", "\(interval) is not above zero") }
    if !(0...1).contains(jitter) { throw .configuration("jitter", "it is not between 0 and 1") }
  }
}

/// One round of polling.
public struct PollingRound: Hashable, Sendable {
  /// The number of the round in the current outage, from 1.
  public let number: Int
  /// How long the outage has lasted.
  public let downFor: Duration
}

/// Counters of a polling fallback.
public struct PollingCounters: Hashable, Sendable {
  /// Rounds that were begun.
  public internal(set) var rounds: UInt64 = 0
  /// Rounds cancelled because a connection had proved itself or the fallback was stopped.
  public internal(set) var cancelled: UInt64 = 0
}
