// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// A request of the peer, as passed to its handler.
public struct InboundRequest: Sendable {
  /// The message type of the body.
  public let type: MessageType
  /// The body, without metadata.
  public let body: [UInt8]
  let id: InboundID
  /// The peer that sent the request.
  public let peer: Peer
  /// When the peer stops waiting for the response, as an instant of `clock`; nil if it set no
  /// deadline.
  public let deadline: LinkInstant?
  /// The request's metadata, and what it has besides, stored separately to keep the request small;
  /// nil in the usual case, where the metadata holds at most the remaining time.
  private let extras: RequestExtras?

  /// `metadata` is nil if it holds nothing but the deadline.
  package init(
    type: MessageType, body: [UInt8], id: InboundID, peer: Peer, deadline: LinkInstant?,
    metadata: ReceivedMetadata?
  ) {
    self.init(type, body, id, peer, deadline, metadata.map { .metadata(MetadataBox($0, nil)) })
  }

  /// Makes a request that waits for the reply of a run, or, without `metadata`, the run's own.
  init(
    type: MessageType, body: [UInt8], id: InboundID, peer: Peer, deadline: LinkInstant?,
    of run: any OnceRun, waitsWith metadata: ReceivedMetadata?
  ) {
    self.init(
      type, body, id, peer, deadline, metadata.map { .metadata(MetadataBox($0, run)) } ?? .run(run))
  }

  private init(
    _ type: MessageType, _ body: [UInt8], _ id: InboundID, _ peer: Peer, _ deadline: LinkInstant?,
    _ extras: RequestExtras?
  ) {
    self.type = type
    self.body = body
    self.id = id
    self.peer = peer
    self.deadline = deadline
    self.extras = extras
  }

  private var received: ReceivedMetadata? {
    switch extras {
    case .metadata(let box): box.metadata
    case .run(let run): run.metadata
    case nil: nil
    }
  }

  /// The run that it belongs to; nil if it is not to run once.
  package var onceRun: (any OnceRun)? {
    switch extras {
    case .metadata(let box): box.once
    case .run(let run): run
    case nil: nil
    }
  }

  /// The serial on the wire; the logs of both sides contain it.
  public var serial: UInt32 { id.serial }
  /// The priority that the peer set: larger is more urgent; 0, the default, is the least urgent.
  public var priority: UInt32 { received?.priority ?? 0 }
  /// The idempotency key, which all attempts of one request share; empty if the peer set none.
  public var idempotencyKey: [UInt8] { received?.idempotencyKey ?? [] }
  /// The entries that the peer has added to the request, such as a trace context, by key. Each
  /// access builds the dictionary anew.
  public var metadata: [String: String] { received?.entries ?? [:] }
  /// The time until `deadline`: negative once that has passed; nil if there is no deadline.
  public var timeRemaining: Duration? { deadline.map { clock.now.duration(to: $0) } }
  /// The clock of the connection's loop. A `sleep` on it throws when the request is cancelled.
  public var clock: EventLoopClock { peer.clock }
}

/// What few requests have.
private enum RequestExtras: Sendable {
  case metadata(MetadataBox)
  /// The run has the metadata of the request for which its handler is called.
  case run(any OnceRun)
}

private final class MetadataBox: Sendable {
  let metadata: ReceivedMetadata
  let once: (any OnceRun)?

  init(_ metadata: ReceivedMetadata, _ once: (any OnceRun)?) {
    self.metadata = metadata
    self.once = once
  }
}

/// An error that a handler throws to respond with a code other than 200.
///
/// The caller gets a `LongLinkError` with the code `rejected`: its `response` is the code here, and
/// its `body` the bytes. A text also arrives as its `detail` and in its description, escaped and
/// cut to 200 bytes, for requests, streams and uploads, over long and short links alike. Bytes of
/// the application are shown there, too, if they look like a text: UTF-8 without control
/// characters. A dialect writes a body only if its error frames have one.
public struct Rejection: Error, Sendable {
  /// The code of the response. Codes from 1000 on are the application's. If it is 200, the peer
  /// gets 500 instead.
  public var code: ResponseCode
  /// The application's bytes for codes from 1000 on; otherwise a text for people.
  public var body: [UInt8]
  /// In a dialect, the error number to write. Default nil: the number that the dialect's table has
  /// for `code`. It may be one of the table, or any number that fits into the code field.
  public var dialectCode: UInt32?
  /// How long the peer should wait before a retry, in steps of 1 ms. Default nil: the peer is told
  /// nothing. The protocol defines it for codes 429 and 503 only.
  public var retryAfter: Duration?

  /// Makes a rejection with a body of the application's bytes.
  public init(_ code: ResponseCode, body: [UInt8], retryAfter: Duration? = nil) {
    self.code = code
    self.body = body
    self.retryAfter = retryAfter
  }

  /// Makes a rejection with a dialect's error number; over the native protocol, the code is 500.
  public init(dialectCode: UInt32, body: [UInt8] = []) {
    self.init(.failed, body: body)
    self.dialectCode = dialectCode
  }

  /// Makes a rejection with a text for people: `throw Rejection(1_000, "the room is full")`.
  public init(_ code: ResponseCode, _ detail: String = "", retryAfter: Duration? = nil) {
    self.init(code, body: Array(detail.utf8), retryAfter: retryAfter)
  }
}

extension Rejection: CustomStringConvertible {
  /// The code, and the text, escaped and cut to 200 bytes. If the body is not a text, the number of
  /// its bytes.
  public var description: String {
    let said = PeerText.isPlain(utf8: body) ? "\(PeerText(utf8: body))" : "\(body.count) bytes"
    let code =
      dialectCode.map { "rejected with \($0) of the dialect" } ?? "rejected \(code.rawValue)"
    return body.isEmpty ? code : "\(code): \(said)"
  }
}
