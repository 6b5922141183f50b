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
  /// It waits for a connection, for room on it, or for its turn to be sent again.
  case created
  /// It is being written.
  case sending
  /// It was written; the answer is awaited.
  case waiting
  /// It has ended.
  case completed
}

extension Metadata {
  /// Whether it holds what only the peer can make use of.
  var isMoreThanPriority: Bool { !idempotencyKey.isEmpty || !entries.isEmpty }

  /// What a caller's options tell the peer.
  init(_ options: RequestOptions) {
    self.init(
      priority: options.priority, idempotencyKey: options.idempotencyKey,
      entries: options.entries.sorted { $0.key < $1.key }
        .map { Entry(key: $0.key, value: $0.value) })
  }
}
