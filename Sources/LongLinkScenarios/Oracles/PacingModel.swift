// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTransport

/// A second model of a client's reconnect policy, computed from the events of its links: when the
/// next round may begin, from which window its delay may come, and how far apart the attempts of a
/// round have to be.
struct PacingModel {
  private let name: String
  private let policy: ReconnectPolicy
  private let servers: Int
  /// The least time between the attempts of one round, in nanoseconds (RFC 8305, section 5).
  private static let stagger: Int64 = 250_000_000
  /// The least time between the first attempts of a round and the only second one, in nanoseconds.
  private static let patience: Int64 = 1_000_000_000

  /// The state of the current outage.
  private struct Outage {
    /// The window after the loss of a link that worked, in nanoseconds; 0 if there was none.
    var first: Int64 = 0
    /// Rounds that failed, and links that ended before they had worked.
    var failures = 0
    var widest: Int64 = 0
    /// The number of network changes. After each, the client tries the server of an unproven link
    /// once more before the others.
    var moves = 0
  }

  private var outage = Outage()
  private var notBefore: LinkInstant?
  /// The server of each attempt; for each server, when its goaway lets the client reconnect.
  private var targets: [UInt32: Endpoint] = [:]
  private var hints: [Endpoint: ClosedRange<LinkInstant>] = [:]
  private var round: UInt32?
  /// The addresses that were attempted in the current round.
  private var addresses: [SocketAddress] = []
  private var lastAttempt = LinkInstant(nanoseconds: 0)
  private var hasFailure = false
  /// The link that takes new requests, when the time without a gap between links began, and whether
  /// this link has worked.
  private var current: (id: UInt32, since: LinkInstant, hasWorked: Bool)?
  /// The number of links in a row that ended within a minute by draining or an expired credential.
  /// After each of the first 8, the client may reconnect without a delay.
  private var shortDrains = 0
  /// The number of delays that equalled their window to the nanosecond.
  private var unjittered = 0
  /// Whether the network has changed since the last new link, so that the link may be replaced by
  /// another to the same server.
  private var mayReplace = false
  private(set) var broken: [OracleFinding] = []

  init(name: String, configuration: ClientConfiguration) {
    self.name = name
    policy = configuration.reconnect
    servers = configuration.servers.count
  }

  /// The longest delay that the policy allows.
  static func longestDelay(_ policy: ReconnectPolicy) -> Duration {
    max(policy.cap, policy.afterClose, policy.afterLostHeartbeat) * 6 / 5
  }

  mutating func heard(_ event: LinkEvent, at time: LinkInstant) {
    switch event {
    case .attempt(let id, let round, let server, let address, let replaces):
      targets[id] = server
      attempt(id, round: round, at: address, replaces: replaces, at: time)
    case .failed:
      hasFailure = true
    case .roundFailed(_, let replaces):
      if !replaces { outage.failures += 1 }
    case .established(let id):
      current = (id, current?.since ?? time, false)
      notBefore = nil
      mayReplace = false
    case .worked(let id):
      guard current?.id == id else { return }
      current?.hasWorked = true
      outage = Outage()
    case .damaged, .shortEnded, .renewed:
      break
    case .goaway(let id, let code, let retryAfter, let spread):
      if code == .draining, let server = targets[id] {
        let most = min(policy.longestHint, retryAfter + spread)
        let least = max(.zero, most - spread)
        let range = time + least.clampedNanoseconds...time + most.clampedNanoseconds
        let old = hints[server] ?? range
        hints[server] =
          min(old.lowerBound, range.lowerBound)...max(old.upperBound, range.upperBound)
      }
      lose(id, .goneAway(code), at: time)
    case .ended(let id, let reason, _):
      lose(id, reason, at: time)
    case .waiting(_, let window, let delay, let cause):
      wait(window.clampedNanoseconds, delay.clampedNanoseconds, cause, at: time)
    case .suspended:
      (current, notBefore) = (nil, nil)
    case .pathChanged:
      notBefore = nil
      mayReplace = true
      outage.moves += 1
    case .resumed:
      notBefore = nil
    }
  }

  /// Handles the loss of the current link. The loss of a link that was replaced does not count.
  private mutating func lose(_ id: UInt32, _ reason: CloseReason, at time: LinkInstant) {
    guard let link = current, link.id == id else { return }
    current = nil
    if time - link.since >= 60_000_000_000 {
      shortDrains = 0
    } else if reason == .goneAway(.draining) || reason == .goneAway(.unauthenticated) {
      shortDrains += 1
    }
    guard link.hasWorked else {
      outage.failures += 1
      return
    }
    let first = reason == .heartbeatLost ? policy.afterLostHeartbeat : policy.afterClose
    outage = Outage(first: first.clampedNanoseconds)
    if reason == .goneAway(.draining) || reason == .goneAway(.unauthenticated) {
      outage.failures = max(0, shortDrains - 8)
    }
  }
}

extension PacingModel {
  private mutating func attempt(
    _ id: UInt32, round: UInt32, at address: SocketAddress, replaces: Bool, at time: LinkInstant
  ) {
    // A link to a better server is allowed at any time, to the same server only after a change.
    if replaces, !mayReplace, let current, targets[current.id] == targets[id] {
      broken.append(
        OracleFinding(.renewedInPlace, at: time, "\(name): attempt \(id) replaces a link"))
    }
    // The client may have left its link without an event, for example for other servers.
    if !replaces { current = nil }
    if self.round == round {
      let pause = time - lastAttempt
      if addresses.contains(address) {
        if pause < Self.patience || Set(addresses).count < addresses.count {
          fail("attempt \(id) is the second to \(address), \(pause) ns after the last", time)
        }
      } else if pause < Self.stagger, !hasFailure {
        fail("attempt \(id) came \(pause) ns after the previous one, which had not failed", time)
      }
    } else if !replaces, let notBefore, time < notBefore {
      fail("attempt \(id) came \(notBefore - time) ns too early", time)
    }
    addresses = self.round == round ? addresses + [address] : [address]
    self.round = round
    lastAttempt = time
    hasFailure = false
  }

  private mutating func wait(
    _ window: Int64, _ delay: Int64, _ cause: LinkWait.Cause, at time: LinkInstant
  ) {
    notBefore = time + delay
    guard cause != .goaway else {
      if !hints.values.contains(where: { $0.contains(time + delay) }) {
        fail("a delay of \(delay) ns is not what the server asked for", time)
      }
      return
    }
    let allowed = windows
    if !allowed.contains(window) {
      fail(
        """
        the window after \(outage.failures) failures (\(cause)) is \(window) ns, \
        and should be within \(allowed) ns
        """, time)
    }
    let isWider = window > outage.widest
    outage.widest = max(outage.widest, window)
    let pauses = isWider ? 0...window : window...window + window / 5
    if !pauses.contains(delay) {
      fail("a delay of \(delay) ns is not within \(pauses) ns", time)
    }
    // By chance, a delay equals its window once in many millions, so practically never twice.
    if delay == window, window > 10_000_000 { unjittered += 1 }
    if unjittered > 1 { fail("delays equal their windows, without jitter", time) }
  }

  /// The allowed windows, in nanoseconds. They grow after each server was tried, or earlier if
  /// servers are cooling down.
  private var windows: ClosedRange<Int64> {
    guard outage.failures > 0 else { return bound(0)...bound(0) }
    let least = outage.failures - outage.moves - (servers - 1)
    return bound(max(1, least))...bound(outage.failures)
  }

  /// The window after some failures, in nanoseconds: the outage's first window, then at least
  /// `afterRefused`, doubled by each further failure, up to the cap.
  private func bound(_ failures: Int) -> Int64 {
    let cap = policy.cap.clampedNanoseconds
    guard failures > 0 else { return min(cap, outage.first) }
    var bound = policy.afterRefused.clampedNanoseconds
    for _ in 1..<failures where bound < cap { bound *= 2 }
    return min(cap, max(outage.first, bound))
  }

  private mutating func fail(_ detail: String, _ time: LinkInstant) {
    broken.append(OracleFinding(.attemptsPaced, at: time, "\(name): \(detail)"))
  }
}
