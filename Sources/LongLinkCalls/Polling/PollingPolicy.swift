// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver

/// When an application polls in place of a connection that is down.
public struct PollingPolicy: Hashable, Sendable {
  /// How long the connection has to be down before the first round. Default 30 s.
  public var after: Duration
  /// The time from the end of one round to the next. Default 60 s.
  public var interval: Duration
  /// By which part of the interval each pause is lengthened at most, at random, so that the
  /// clients of a server that is down do not come together. 0 to 1; default 0.2.
  public var jitter: Double

  /// Makes a policy.
  public init(
    after: Duration = .seconds(30), interval: Duration = .seconds(60), jitter: Double = 0.2
  ) {
    self.after = after
    self.interval = interval
    self.jitter = jitter
  }

  /// Throws `invalidConfiguration`, naming the field, when the policy cannot work.
  public func validate() throws(LongLinkError) {
    if after < .zero { throw .configuration("after", "it is negative") }
    if interval <= .zero { throw .configuration("interval", "\(interval) is not above zero") }
    if !(0...1).contains(jitter) { throw .configuration("jitter", "it is not within 0 and 1") }
  }
}

/// One time that an application is asked to poll.
public struct PollingRound: Hashable, Sendable {
  /// Counts from 1 for each time that the connection is down.
  public let number: Int
  /// For how long the connection has been down.
  public let downFor: Duration
}

/// What a polling fallback has done so far.
public struct PollingCounters: Hashable, Sendable {
  /// Rounds that were begun.
  public internal(set) var rounds: UInt64 = 0
  /// Those of them that were cancelled since the connection was back, or the fallback was stopped.
  public internal(set) var cancelled: UInt64 = 0
}
