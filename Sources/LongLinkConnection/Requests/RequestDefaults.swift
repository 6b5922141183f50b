internal import LongLinkCore

/// What a client or server does where a request says nothing.
package struct RequestDefaults: Sendable {
  /// In nanoseconds.
  package var deadline: Int64
  package var offline: OfflinePolicy

  package init(deadline: Int64, offline: OfflinePolicy) {
    self.deadline = deadline
    self.offline = offline
  }
}

/// Where a request stands.
public enum RequestState: String, Hashable, Sendable {
  /// It waits for a connection, or for room on it.
  case created
  /// It is being written.
  case sending
  /// It was written; the answer is awaited.
  case waiting
  /// It has ended.
  case completed
}

/// How the requests of one side ended, each number since its beginning.
public struct RequestCounters: Hashable, Sendable {
  /// Requests that were made.
  public var submitted: UInt64 = 0
  /// Answered with 200.
  public var succeeded: UInt64 = 0
  /// Answered with another code, refusals included.
  public var rejected: UInt64 = 0
  /// Cancelled by their callers.
  public var cancelled: UInt64 = 0
  /// Not answered within their deadline.
  public var expired: UInt64 = 0
  /// Lost with their connection, or closed with the client.
  public var lost: UInt64 = 0
  /// Failed for another reason before they were sent: no connection, too large, no room.
  public var failedLocally: UInt64 = 0
  /// Put back to wait for the next connection, since they certainly did not run.
  public var resent: UInt64 = 0
  /// Responses that came after their request had ended.
  public var lateReplies: UInt64 = 0

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

  package static func += (lhs: inout RequestCounters, rhs: RequestCounters) {
    lhs.submitted += rhs.submitted
    lhs.succeeded += rhs.succeeded
    lhs.rejected += rhs.rejected
    lhs.cancelled += rhs.cancelled
    lhs.expired += rhs.expired
    lhs.lost += rhs.lost
    lhs.failedLocally += rhs.failedLocally
    lhs.resent += rhs.resent
    lhs.lateReplies += rhs.lateReplies
  }
}

extension Metadata {
  /// What a caller's options tell the peer.
  init(_ options: RequestOptions) {
    self.init(
      priority: options.priority, idempotencyKey: options.idempotencyKey,
      entries: options.entries.sorted { $0.key < $1.key }
        .map { Entry(key: $0.key, value: $0.value) })
  }
}
