// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How the requests of one side ended, each number since its beginning.
public struct RequestCounters: CounterGroup, Hashable, Sendable {
  /// Requests that were made.
  public package(set) var submitted: UInt64 = 0
  /// Answered with 200.
  public package(set) var succeeded: UInt64 = 0
  /// Answered with another code, refusals included.
  public package(set) var rejected: UInt64 = 0
  /// Cancelled by their callers.
  public package(set) var cancelled: UInt64 = 0
  /// Not answered within their deadline.
  public package(set) var expired: UInt64 = 0
  /// Lost with their connection, or closed with the client.
  public package(set) var lost: UInt64 = 0
  /// Failed for another reason before they were sent: no connection, too large, no room.
  public package(set) var failedLocally: UInt64 = 0
  /// Of those that failed locally, the ones for which no room was left among those that wait.
  public package(set) var turnedAway: UInt64 = 0
  /// Put back to be sent again since no byte of them had left.
  public package(set) var retriedNotSent: UInt64 = 0
  /// Put back to be sent again since the peer had not run them: a refusal with 429 or 503, or a
  /// goaway that did not count them.
  public package(set) var retriedRefused: UInt64 = 0
  /// Put back to be sent again, being idempotent, since their connection was lost.
  public package(set) var retriedIdempotent: UInt64 = 0
  /// Idempotent requests that were lost and not sent again since the retry budget was spent.
  public package(set) var beyondBudget: UInt64 = 0
  /// Responses that came after their request had ended.
  public package(set) var lateReplies: UInt64 = 0

  /// Put back to be sent again, for any reason.
  public var resent: UInt64 { retriedNotSent + retriedRefused + retriedIdempotent }

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
