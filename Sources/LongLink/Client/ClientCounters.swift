// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

/// A snapshot of a client's counters since it was made.
public struct ClientCounters: Hashable, Sendable {
  /// Counters of the client's requests, over long and short links.
  public let requests: RequestCounters
  /// The totals of all connections, past and present.
  public let connections: ConnectionCounters
  /// Connections that ended, and short links that failed, by the `token` of their `CloseReason`.
  /// `stalledPeer` means that the peer took no byte for too long, `unreadOutput` that too many
  /// bytes waited for it.
  public let endings: [String: UInt64]
  /// Connections that ended because the peer broke a rule, by the rule's name.
  public let violations: [String: UInt64]
  /// Requests that have not ended.
  public let requestsOpen: Int
  /// Requests that wait for a connection, for room on it, or for a retry.
  public let requestsWaiting: Int
  /// Bytes in the bodies of waiting requests.
  public let bytesWaiting: Int
  /// Pushes that wait for room on the connection.
  public let pushesWaiting: Int
  /// Bytes of output that wait to be written, on all connections.
  public let bytesUnwritten: Int
  /// Connections that took requests; all but the first were reconnects.
  public let connects: UInt64
  /// Attempts to connect that failed, during the handshake or before.
  public let failedAttempts: UInt64
  /// Attempts that the client abandoned before they took requests: another was faster, or the
  /// client was suspended or closed. The server may have accepted them.
  public let abandonedAttempts: UInt64
  /// Second attempts to connect to an address: the first one had no answer for a second. At most
  /// one for each round of attempts.
  public let secondAttempts: UInt64
  /// Connections that took requests after a trial, because the network had cut earlier ones. They
  /// are among `connects`.
  public let trialsPassed: UInt64
  /// Connections that ended in their trial. They are not among `connects` or `failedAttempts`.
  public let trialsFailed: UInt64
  /// Connections to a different server because the previous one failed, drained, or exceeded the
  /// error ratio.
  public let failovers: UInt64
  /// Connections that were replaced, or left for a draining server or by `switchServers`.
  public let migrations: UInt64
  /// Replaced connections closed with responses outstanding because `timeouts.lingering` had
  /// passed.
  public let linksExpired: UInt64
  /// Times that one of several servers began to cool down.
  public let coolDowns: UInt64
  /// Servers named in a goaway and not used: there were too many, their names are invalid, or
  /// `followsAlternatives` is off.
  public let alternativesIgnored: UInt64
  /// Short links that were begun, those that failed to open included, by the names of their ways.
  public let shortLinksBegun: [String: UInt64]
  /// Short links that failed before a byte of a request was written, by the names of their ways.
  public let shortLinksFailed: [String: UInt64]
  /// Requests that were handed to a short link, by the names of the ways.
  public let shortLinkRequests: [String: UInt64]
  /// Requests whose short link ended or failed without a response, by the names of the ways.
  public let shortLinkRequestsUnanswered: [String: UInt64]
  /// Pushes dropped because a consumer fell behind.
  public let pushesDropped: UInt64
  /// Sequences of pushes that ended because a consumer fell behind.
  public let pushSequencesClosed: UInt64
  /// Pushes without a subscriber or handler.
  public let pushesUnhandled: UInt64
}

extension ClientCounters: CustomStringConvertible {
  /// The counters that are not zero, a line for each.
  public var description: String { CounterText.lines(of: self) }
}

extension ClientCounters {
  /// The counters of a client; on its loop.
  init(of core: ClientCore) {
    let ways = core.shortLinks?.counters ?? [:]
    let links = core.connections.map(\.link) + (core.shortLinks?.connections.map(\.link) ?? [])
    let (counters, counts, hubCounts) = (core.counters, core.machine.link.counts, core.hub.counts)
    self.init(
      requests: core.requests.counters,
      connections: links.reduce(into: core.totals.counters) { $0 += $1.counters },
      endings: core.totals.endings, violations: core.totals.violations,
      requestsOpen: core.requests.count,
      requestsWaiting: core.requests.waitingCount, bytesWaiting: core.requests.waitingBytes,
      pushesWaiting: core.pushes.count,
      bytesUnwritten: links.reduce(0) { $0 + $1.connection.outbox.totalBytes },
      connects: counters.connects, failedAttempts: counters.failedAttempts,
      abandonedAttempts: counters.abandonedAttempts,
      secondAttempts: counts.secondAttempts,
      trialsPassed: counters.trialsPassed, trialsFailed: counters.trialsFailed,
      failovers: counts.failovers, migrations: counts.migrations,
      linksExpired: counters.linksExpired, coolDowns: counts.coolDowns,
      alternativesIgnored: counters.alternativesIgnored,
      shortLinksBegun: ways.mapValues(\.begun), shortLinksFailed: ways.mapValues(\.failed),
      shortLinkRequests: ways.mapValues(\.requests),
      shortLinkRequestsUnanswered: ways.mapValues(\.unanswered),
      pushesDropped: hubCounts.dropped, pushSequencesClosed: hubCounts.closed,
      pushesUnhandled: hubCounts.unhandled)
  }
}
