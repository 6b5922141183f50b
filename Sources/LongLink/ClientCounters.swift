// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver

/// What a client has counted since it was made.
public struct ClientCounters: Hashable, Sendable {
  /// How requests ended.
  public let requests: RequestCounters
  /// What the connections, past and present, counted.
  public let connections: ConnectionCounters
  /// Connections that ended, by the kind of their `CloseReason`; among them `stalledPeer`, which
  /// took no byte for too long, and `unreadOutput`, for which too many bytes waited.
  public let endings: [CloseReason.Kind: UInt64]
  /// Connections that ended because the peer broke a rule, by rule.
  public let violations: [Violation.Rule: UInt64]
  /// Requests that have not ended.
  public let requestsOpen: Int
  /// Those of them that wait for a connection, for room on it, or to be sent again.
  public let requestsWaiting: Int
  /// What the bodies of those that wait take, in bytes.
  public let bytesWaiting: Int
  /// Pushes that wait now for room on the connection.
  public let pushesWaiting: Int
  /// Bytes that wait now to be written.
  public let bytesUnwritten: Int
  /// Connections whose handshake was completed; all but the first were reconnects.
  public let connects: UInt64
  /// Connects, or their handshakes, that came to nothing.
  public let failedAttempts: UInt64
  /// Connections to another server than the one before, since that one failed, drained or answered
  /// badly.
  public let failovers: UInt64
  /// Connections that were left for another one, or since the server drained, before they ended.
  public let migrations: UInt64
  /// Connections that were left and then closed with answers outstanding, their time being up.
  public let linksExpired: UInt64
  /// Times that one of several servers began to cool down.
  public let coolDowns: UInt64
  /// Servers that a goaway named and that were not used, since there were too many, they cannot be
  /// reached, or they are not to be followed.
  public let alternativesIgnored: UInt64
  /// Pushes that were dropped since a consumer fell behind.
  public let pushesDropped: UInt64
  /// Sequences of pushes that ended since a consumer fell behind.
  public let pushSequencesClosed: UInt64
  /// Pushes that nobody had subscribed to.
  public let pushesUnhandled: UInt64
}

extension ClientCore {
  var snapshot: ClientCounters {
    var counted = totals.counters
    for connection in connections { counted += connection.link.counters }
    let hubCounts = hub.counts
    let bytes = connections.reduce(0) { $0 + $1.link.bytesUnwritten }
    return ClientCounters(
      requests: requests.counters, connections: counted,
      endings: totals.endings, violations: totals.violations,
      requestsOpen: requests.count,
      requestsWaiting: requests.waitingCount, bytesWaiting: requests.waitingBytes,
      pushesWaiting: pushes.count, bytesUnwritten: bytes,
      connects: counters.connects, failedAttempts: counters.failedAttempts,
      failovers: machine.counts.failovers, migrations: machine.counts.migrations,
      linksExpired: counters.linksExpired, coolDowns: machine.counts.coolDowns,
      alternativesIgnored: counters.alternativesIgnored,
      pushesDropped: hubCounts.dropped, pushSequencesClosed: hubCounts.closed,
      pushesUnhandled: hubCounts.unhandled)
  }

  /// Calls `completion` when there is a connection, or when a try for one has failed.
  func connect(_ completion: @escaping @Sendable (Result<Void, LongLinkError>) -> Void) {
    guard closing == nil else {
      completion(
        .failure(LongLinkError(.closed, doing: "connect", detail: "the client was closed")))
      return
    }
    if requests.current != nil {
      completion(.success(()))
      return
    }
    if machine.state == .suspended {
      completion(.failure(notConnected("connect")))
      return
    }
    connectWaiters.append(completion)
    start()
  }
}
