internal import LongLinkCore

/// Whether the peer is told when a request is cancelled after it was sent.
public enum CancellationPolicy: Hashable, Sendable {
  /// The request ends here and its late answer is dropped and counted. The peer is told only where
  /// part of the request has left, or where the room that it takes there is needed.
  case local
  /// The peer is told too, so that it can stop the work.
  case notifyServer
}

/// What happens to a request while there is no connection.
public enum OfflinePolicy: Hashable, Sendable {
  /// It waits for a connection, within its deadline and the client's bounds.
  case wait
  /// It waits for a connect that is under way, which an idle client begins, and fails at once when
  /// the next one is still to come.
  case fail
}

/// What a caller may choose for one request. Everything has a default.
public struct RequestOptions: Hashable, Sendable {
  /// How long the request may take from its creation, waiting and reconnecting included.
  ///
  /// Nil, the default, takes the client's (15 seconds unless configured otherwise). Resolution 1
  /// ms.
  public var deadline: Duration?
  /// Whether the peer is told of a cancel, or of a deadline that passes. Default: it is not.
  public var cancellation: CancellationPolicy
  /// What happens while there is no connection. Nil, the default, takes the client's.
  public var offline: OfflinePolicy?
  /// Told to the peer's handler: 0, the default, is ordinary; larger is more urgent.
  public var priority: UInt32
  /// Told to the peer's handler, so that it can recognise a second try. Default: none.
  public var idempotencyKey: [UInt8]
  /// Told to the peer's handler: trace context and the like. Default: none.
  public var entries: [String: String]

  /// Makes options.
  public init(
    deadline: Duration? = nil,
    cancellation: CancellationPolicy = .local,
    offline: OfflinePolicy? = nil,
    priority: UInt32 = 0,
    idempotencyKey: [UInt8] = [],
    entries: [String: String] = [:]
  ) {
    self.deadline = deadline
    self.cancellation = cancellation
    self.offline = offline
    self.priority = priority
    self.idempotencyKey = idempotencyKey
    self.entries = entries
  }

  /// Whether anything but the deadline has to be told to the peer.
  package var hasMetadata: Bool {
    priority != 0 || !idempotencyKey.isEmpty || !entries.isEmpty
  }
}
