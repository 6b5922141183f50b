// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The options of a stream: a request that carries items. Each has a default.
///
/// A stream has no idempotency key, is not ordered, and always tells the peer when it is cancelled.
public struct StreamOptions: Hashable, Sendable {
  /// The time limit for the whole exchange, from its creation. Default: none.
  ///
  /// Unlike a plain request, a stream may last for months. Resolution: 1 ms.
  public var timeout: Duration?
  /// The longest wait for the next item, or until the peer lets the next one be written. Default:
  /// none. After it, reading or writing throws `deadlineExceeded`. Once the response has begun to
  /// arrive, only `timeout` limits how long it takes.
  public var itemTimeout: Duration?
  /// The bytes that the peer can send before this side has read; each frame of an item counts as
  /// its size plus 16. From 1,024 to 2,147,483,647: making a stream with another value traps.
  ///
  /// Default nil: `limits.streamWindows.first` of the configuration, which is 65,536 unless you
  /// change it, and which grows up to `limits.streamWindows.largest` for a fast reader on a long
  /// path. A value that you set here does not grow.
  public var window: Int?
  /// Whether the request waits while there is no connection, within its `timeout` and the client's
  /// limits. Default: the client's setting, which is true. If false, it waits only for a connection
  /// attempt in progress.
  public var waitsForConnection: Bool?
  /// The priority of the stream: larger is more urgent. Default: 0, the least urgent. The peer's
  /// handler gets it. Items of both sides have the priority of their request.
  public var priority: UInt32?
  /// Entries for the peer's handler, such as a trace context. Default: none.
  public var metadata: [String: String]
  /// Whether the request is sent again if it has certainly not run and no item was written: after a
  /// refusal, or if none of its bytes were sent. Default: true.
  public var retriesIfSafe: Bool

  /// Makes options with the given values.
  public init(
    timeout: Duration? = nil,
    itemTimeout: Duration? = nil,
    window: Int? = nil,
    waitsForConnection: Bool? = nil,
    priority: UInt32? = nil,
    metadata: [String: String] = [:],
    retriesIfSafe: Bool = true
  ) {
    self.timeout = timeout
    self.itemTimeout = itemTimeout
    self.window = window
    self.waitsForConnection = waitsForConnection
    self.priority = priority
    self.metadata = metadata
    self.retriesIfSafe = retriesIfSafe
  }

  /// Returns these options. Where one is not set, that of the method applies.
  func over(_ method: RequestOptions) -> StreamOptions {
    var options = self
    options.timeout = timeout ?? method.timeout
    options.waitsForConnection = waitsForConnection ?? method.waitsForConnection
    options.priority = priority ?? method.priority
    if !method.metadata.isEmpty { options.metadata = method.metadata.merging(metadata) { $1 } }
    return options
  }

  /// The options of the request that opens the stream.
  var request: RequestOptions {
    RequestOptions(
      timeout: timeout, cancelsAtPeer: true, waitsForConnection: waitsForConnection,
      priority: priority,
      metadata: metadata, retry: retriesIfSafe ? .ifSafe : .never)
  }
}
