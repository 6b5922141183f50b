// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// Counters of the requests that a client or a server has made.
public struct RequestCounters: CounterGroup, Hashable, Sendable {
  /// Requests that were made.
  public package(set) var submitted: UInt64 = 0
  /// Requests answered with 200.
  public package(set) var succeeded: UInt64 = 0
  /// Requests that ended with another response code: refused or answered. Refusals after which the
  /// request was retried are not counted here.
  public package(set) var rejected: UInt64 = 0
  /// Requests cancelled by their callers.
  public package(set) var cancelled: UInt64 = 0
  /// Requests that ended because their deadlines passed.
  public package(set) var expired: UInt64 = 0
  /// Requests that ended with their connection, or because the client was closed.
  public package(set) var lost: UInt64 = 0
  /// Requests that failed on this side for another reason: no connection, too large, no room.
  public package(set) var failedLocally: UInt64 = 0
  /// Requests in `failedLocally` for which there was no place: too many requests or bytes waited,
  /// or half of all serials were in use.
  public package(set) var turnedAway: UInt64 = 0
  /// Retries of requests of which no byte was sent.
  public package(set) var retriedNotSent: UInt64 = 0
  /// Retries of requests that the peer did not run: it refused them with 429 or 503 (or 412, if
  /// they run once), or its goaway did not count them.
  public package(set) var retriedRefused: UInt64 = 0
  /// Retries of requests that were lost with their connection and may have run: those that are
  /// idempotent, or run once.
  public package(set) var retriedIdempotent: UInt64 = 0
  /// Requests that are idempotent, or run once, and were lost and not retried because the retry
  /// budget was spent.
  public package(set) var beyondBudget: UInt64 = 0
  /// Responses that came after their requests had ended.
  public package(set) var lateReplies: UInt64 = 0

  /// Retries for any reason.
  public var retried: UInt64 { retriedNotSent + retriedRefused + retriedIdempotent }

  package init() {}

  mutating func count(_ error: LongLinkError) {
    switch error.code {
    case .cancelled: cancelled += 1
    case .deadlineExceeded: expired += 1
    case .rejected: rejected += 1
    case .connectionLost, .corrupted, .protocolViolation, .closed: lost += 1
    default: failedLocally += 1
    }
  }
}
