// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

/// A snapshot of a client's counters since it was made.
public struct ClientCounters: Hashable, Sendable {
  /// Counters of the client's requests, over long and short links.
  public let requests: RequestCounters
  /// The totals of all connections and short links, past and present.
  public let connections: ConnectionCounters
  /// Connections and attempts to connect that ended, and short links that failed, by the `token` of
  /// their `CloseReason`.
  /// `stalledPeer` means that the peer took no byte for too long, `unreadOutput` that too many
  /// bytes waited for it.
  public let endings: [String: UInt64]
  /// Connections, attempts and short links that ended because the peer broke a rule, by the rule's
  /// name.
  public let violations: [String: UInt64]
  /// Requests that have not ended.
  public let requestsOpen: Int
  /// Requests that wait for a connection, for room on it, or for a retry.
  public let requestsWaiting: Int
  /// Bytes in the bodies of waiting requests.
  public let bytesWaiting: Int
  /// Pushes that wait for room on the connection.
  public let pushesWaiting: Int
  /// Bytes of output that wait to be written, on all connections and short links.
  public let bytesUnwritten: Int
  /// Connections that took requests. All but the first were reconnects or moves.
  public let connects: UInt64
  /// Attempts to connect that failed: in the connect, in the handshake, or in
  /// ``ClientConfiguration/prepare``.
  public let failedAttempts: UInt64
  /// Attempts to connect that the client abandoned before they took requests: another was faster,
  /// the network changed, or the client was suspended or closed. The server may have accepted them.
  public let abandonedAttempts: UInt64
  /// Second attempts to connect to an address: the first one had no answer for a second. At most
  /// one for each round of attempts.
  public let secondAttempts: UInt64
  /// Connections whose trial was over: they had to live for a while without requests, because the
  /// network had cut earlier ones. They are among `connects`, unless
  /// ``ClientConfiguration/prepare`` then failed.
  public let trialsPassed: UInt64
  /// Connections that ended, or got a goaway, in their trial. They are not among `connects` or
  /// `failedAttempts`.
  public let trialsFailed: UInt64
  /// Connections to a different server because the previous one failed, drained, or exceeded the
  /// error ratio.
  public let failovers: UInt64
  /// Connections that took requests and were replaced, or were given up because the server sent a
  /// goaway or because of `switchServers`.
  public let migrations: UInt64
  /// Connections that the client had left, and closed with unfinished requests of either side,
  /// because `timeouts.lingering`, or the bound of `suspend`, had passed.
  public let linksExpired: UInt64
  /// How often one of several servers began to cool down.
  public let coolDowns: UInt64
  /// Servers named in a goaway and not used: there were too many, their names are invalid, or
  /// `followsAlternatives` is off.
  public let alternativesIgnored: UInt64
  /// Short links that were begun, those that failed to open included, by the names of their ways.
  public let shortLinksBegun: [String: UInt64]
  /// Short links that failed before a byte of a request was written, by the names of their ways.
  public let shortLinksFailed: [String: UInt64]
  /// Requests that were handed to a short link, by the names of their ways.
  public let shortLinkRequests: [String: UInt64]
  /// Requests whose short link ended or failed without a response, by the names of their ways.
  public let shortLinkRequestsUnanswered: [String: UInt64]
  /// Pushes of the server that were dropped because a consumer fell behind.
  public let pushesDropped: UInt64
  /// Sequences of pushes that ended because a consumer fell behind.
  public let pushSequencesClosed: UInt64
  /// Pushes of the server for which there was neither a sequence nor a handler.
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
