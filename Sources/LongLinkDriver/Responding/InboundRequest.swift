// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// A request of the peer, as its handler sees it.
public struct InboundRequest: Sendable {
  /// What the body carries.
  public let type: MessageType
  /// The body.
  public let body: [UInt8]
  /// The serial, by which logs of both sides name the request.
  public let serial: UInt32
  /// The connection that it came on.
  public let peer: Peer
  /// When the peer stops waiting for the answer; nil when it did not say.
  public let deadline: LinkInstant?
  /// Bytes that it counts for until its handler has returned.
  let byteCount: Int
  /// Nil in the usual case, where there is nothing but the time that remains. Apart from the
  /// request, which is small without it.
  private let extras: Box<ReceivedMetadata>?

  /// `metadata` is what there is besides the deadline.
  package init(
    type: MessageType, body: [UInt8], byteCount: Int, serial: UInt32, peer: Peer,
    deadline: LinkInstant?, metadata: ReceivedMetadata?
  ) {
    self.byteCount = byteCount
    self.type = type
    self.body = body
    self.serial = serial
    self.peer = peer
    self.deadline = deadline
    extras = metadata.map { Box($0) }
  }

  private var received: ReceivedMetadata? { extras?.value }

  /// How urgent the peer says it is; 0 is ordinary.
  public var priority: UInt32 { received?.priority ?? 0 }
  /// The same for two tries of one request; empty when the peer gave none.
  public var idempotencyKey: [UInt8] { received?.idempotencyKey ?? [] }
  /// Trace context and the like, by key. Reading it takes time for each entry, at each call.
  public var metadata: [String: String] { received?.entries ?? [:] }
  /// The clock of the connection's loop; its sleeps end when the request is cancelled.
  public var clock: EventLoopClock { peer.clock }
}

/// Thrown by a handler to answer with a code other than 200.
public struct Rejection: Error, Sendable {
  /// The code; from 1000 on it is the application's own. With 200, which rejects nothing, the
  /// request fails with 500.
  public var code: ResponseCode
  /// From 1000 on the application's own bytes; below, a text for people.
  public var body: [UInt8]
  /// In a dialect, the number that is written in place of what its table has for `code`. Default:
  /// none. It has to be an error of the table, or else one that fits into the code field.
  public var dialectCode: UInt32?
  /// How long the peer should wait before the next try; told with 429 and 503 alone.
  public var retryAfter: Duration?

  /// Rejects with bytes of the application's own.
  public init(_ code: ResponseCode, body: [UInt8], retryAfter: Duration? = nil) {
    self.code = code
    self.body = body
    self.retryAfter = retryAfter
  }

  /// Rejects with a dialect's own code; with 500 where the native protocol is spoken.
  public init(dialectCode: UInt32, body: [UInt8] = []) {
    self.init(.failed, body: body)
    self.dialectCode = dialectCode
  }

  /// Rejects with a text.
  public init(_ code: ResponseCode, _ detail: String = "", retryAfter: Duration? = nil) {
    self.init(code, body: Array(detail.utf8), retryAfter: retryAfter)
  }
}

/// Where an asynchronous handler runs.
public enum HandlerPlacement: Sendable {
  /// On the loop of the connection, which it must not block.
  case connectionLoop
  /// On the global pool of the Swift runtime.
  case globalPool
  /// On an executor of the caller's.
  case executor(any TaskExecutor)
}
