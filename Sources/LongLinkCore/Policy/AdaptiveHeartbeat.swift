// SPDX-License-Identifier: Apache-2.0

/// How a client finds the longest heartbeat interval that its network allows.
///
/// The search begins at `shortest` and ends at the heartbeat's own interval, which is the longest
/// that is tried: a dead server is found within that interval and the timeout all the time. A ping
/// that was answered after a full interval in which neither side said anything proves that the path
/// still knew the connection. After `successes` of these the interval grows by `step`. When such a
/// ping is lost at a lengthened interval, the interval shrinks by `backOff`; after `failures`
/// losses the search is over and the interval only ever shrinks.
///
/// The server must allow it: the shorter of both sides' intervals is agreed, and nothing longer is
/// tried.
public struct AdaptiveHeartbeat: Hashable, Sendable {
  /// Where the search begins. Default 30 s, at least 200 ms and at most the heartbeat's interval.
  public var shortest: Duration
  /// By how much the interval grows. Default 30 s, above zero.
  public var step: Duration
  /// Answered pings in a row at one interval before it grows. Default 3, at least 1.
  public var successes: Int
  /// By how much the interval shrinks after a loss. Default 40 s, above zero.
  public var backOff: Duration
  /// Losses at lengthened intervals that end the search. Default 2, at least 1.
  public var failures: Int

  /// Makes a policy; each part has a default.
  public init(
    shortest: Duration = .seconds(30), step: Duration = .seconds(30), successes: Int = 3,
    backOff: Duration = .seconds(40), failures: Int = 2
  ) {
    self.shortest = shortest
    self.step = step
    self.successes = successes
    self.backOff = backOff
    self.failures = failures
  }
}

/// What a search has found out about one network.
public struct LearnedHeartbeat: Hashable, Codable, Sendable {
  /// The longest interval that has proved itself.
  public var interval: Duration
  /// Losses at lengthened intervals so far.
  public var failures: Int

  /// Makes what was remembered.
  public init(interval: Duration, failures: Int) {
    self.interval = interval
    self.failures = failures
  }
}

/// The search for the longest interval at which a path keeps a connection alive. In nanoseconds.
package struct HeartbeatSearch: Equatable, Sendable {
  private let policy: AdaptiveHeartbeat
  private let shortest: Int64
  private let longest: Int64
  /// The interval to use now.
  package private(set) var interval: Int64
  /// The longest one that has proved itself.
  private var proven: Int64
  /// Answered pings in a row at this interval.
  private var successes = 0
  private var failures = 0

  /// Begins a search, or goes on with one.
  package init(_ policy: AdaptiveHeartbeat, longest: Int64, learned: LearnedHeartbeat? = nil) {
    self.policy = policy
    self.longest = longest
    shortest = min(policy.shortest.clampedNanoseconds, longest)
    let known = learned?.interval.clampedNanoseconds ?? shortest
    interval = min(max(known, shortest), longest)
    proven = interval
    failures = min(max(0, learned?.failures ?? 0), policy.failures)
  }

  /// Whether the interval grows no more.
  package var isOver: Bool { failures >= policy.failures }

  package var learned: LearnedHeartbeat {
    LearnedHeartbeat(interval: .nanoseconds(proven), failures: failures)
  }

  /// Tells of a ping that was answered after this long a silence; true when that taught something
  /// that is worth remembering.
  package mutating func answered(after silence: Int64) -> Bool {
    guard isProof(silence) else { return false }
    successes += 1
    guard successes >= policy.successes else { return false }
    successes = 0
    let isNew = interval > proven
    proven = max(proven, interval)
    if !isOver { interval = min(longest, interval + policy.step.clampedNanoseconds) }
    return isNew
  }

  /// Tells of a connection that was lost with a ping not answered after this long a silence; true
  /// when the interval was to blame, for all that is known.
  package mutating func lost(after silence: Int64) -> Bool {
    successes = 0
    guard isProof(silence), interval > shortest else { return false }
    failures = min(failures + 1, policy.failures)
    interval = max(shortest, interval - policy.backOff.clampedNanoseconds)
    proven = min(proven, interval)
    return true
  }

  /// Whether a silence was long enough to tell something about the interval: what was written
  /// meanwhile keeps a path open as well.
  private func isProof(_ silence: Int64) -> Bool { silence >= interval - interval / 8 }
}
