// SPDX-License-Identifier: Apache-2.0

/// A search for the longest heartbeat interval that a client's network allows.
///
/// If a ping is answered after a full interval of silence on both sides, the path still knew the
/// connection. After `successes` of these the interval grows by `step`. If such a ping is lost at a
/// lengthened interval, the interval shrinks by `backOff`; after `failures` losses the search is
/// over and the interval can only shrink.
package struct AdaptiveHeartbeat: Sendable {
  /// The initial interval: at least 200 ms and at most the heartbeat's interval.
  package var shortest: Duration
  /// The amount by which the interval grows, above zero.
  package var step: Duration
  /// The number of answered pings in a row before the interval grows, at least 1.
  package var successes: Int
  /// The amount by which the interval shrinks after a loss, above zero.
  package var backOff: Duration
  /// The number of losses at lengthened intervals that end the search, at least 1.
  package var failures: Int
  /// Stores what was learned about a network.
  package var store: (@Sendable (_ learned: String, _ network: String) -> Void)?
  /// Returns what `store` was last given for a network, or nil.
  package var load: (@Sendable (_ network: String) -> String?)?

  package init(
    shortest: Duration = .seconds(30), step: Duration = .seconds(30), successes: Int = 3,
    backOff: Duration = .seconds(40), failures: Int = 2,
    store: (@Sendable (_ learned: String, _ network: String) -> Void)? = nil,
    load: (@Sendable (_ network: String) -> String?)? = nil
  ) {
    self.shortest = shortest
    self.step = step
    self.successes = successes
    self.backOff = backOff
    self.failures = failures
    self.store = store
    self.load = load
  }
}

/// What a search has learned about one network.
package struct LearnedHeartbeat: Hashable, Sendable {
  /// The longest interval after which a ping was still answered.
  package var interval: Duration
  /// The number of losses at lengthened intervals so far.
  package var failures: Int

  package init(interval: Duration, failures: Int) {
    self.interval = interval
    self.failures = failures
  }

  /// Reads a text that `text` has made; nil for anything else.
  package init?(text: String) {
    let numbers = text.split(separator: " ").compactMap { Int64($0) }
    guard numbers.count == 2 else { return nil }
    self.init(interval: .nanoseconds(numbers[0]), failures: Int(clamping: numbers[1]))
  }

  /// The interval in nanoseconds and the number of losses, as text to be stored.
  package var text: String { "\(interval.clampedNanoseconds) \(failures)" }
}

/// The state of a search for the longest interval that keeps a connection alive, in nanoseconds.
package struct HeartbeatSearch: Sendable {
  private let policy: AdaptiveHeartbeat
  private let shortest: Int64
  private let longest: Int64
  /// The interval to use now, in nanoseconds.
  package private(set) var interval: Int64
  /// The longest interval after which a ping was still answered, in nanoseconds.
  private var proven: Int64
  /// The number of answered pings in a row at this interval.
  private var successes = 0
  private var failures = 0

  /// Begins a search, or continues one if `learned` is not nil.
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

  /// Counts a ping that was answered after a silence, in nanoseconds. Returns true if this proves a
  /// longer interval, which is worth storing.
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

  /// Counts a connection that was lost with an unanswered ping after a silence, in nanoseconds.
  /// Returns true if the interval is the likely cause.
  package mutating func lost(after silence: Int64) -> Bool {
    successes = 0
    guard isProof(silence), interval > shortest else { return false }
    failures = min(failures + 1, policy.failures)
    interval = max(shortest, interval - policy.backOff.clampedNanoseconds)
    proven = min(proven, interval)
    return true
  }

  /// Whether a silence was long enough to prove anything about the interval. After a shorter one,
  /// other data may have kept the path open.
  private func isProof(_ silence: Int64) -> Bool { silence >= interval - interval / 8 }
}
