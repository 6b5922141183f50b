// SPDX-License-Identifier: Apache-2.0

/// What happens to a request while there is no connection.
package enum OfflinePolicy: Hashable, Sendable {
  case wait
  case failUnlessConnecting

  package init(waits: Bool) { self = waits ? .wait : .failUnlessConnecting }
}

/// Whether a request is retried automatically.
///
/// Each attempt carries the time that then remains, and the same idempotency key. If the request
/// finally fails, its `delivery` covers all attempts: it is `sent` if any of them may have run,
/// even if the last was refused.
public enum RetryMode: Hashable, Sendable {
  /// The request is sent at most once. It is not retried even if it was lost before any byte was
  /// sent.
  case never
  /// The request is retried while it has certainly not run. Either no byte of it was sent, or the
  /// server's goaway says that it was not accepted, or the server refused it because it drains or
  /// is overloaded. After an overload it waits for the delay that the server requests, or else for
  /// a growing delay; if the delay would not end before its deadline, it fails at once. Other
  /// refusals, such as an unknown type, are final.
  case ifSafe
  /// The request is also retried if its connection was lost and it may have run, within the
  /// client's retry budget. Use it for requests that can safely run twice, or that your handler
  /// de-duplicates by idempotency key. Ordered requests are excluded, because they could then run
  /// after later ones.
  case idempotent
  /// The request runs once, and is retried as with `idempotent`. The server keeps its answer under
  /// a key, by which it recognises a retry: the idempotency key, or else 16 random bytes.
  ///
  /// A server that keeps other answers refuses a request that may have run, which then fails with
  /// delivery `sent`. If the server keeps no answers for this client, the request fails with
  /// `unsupported` before it is sent, as it does in a dialect. Only a client's requests run once,
  /// but not its streams.
  case once

  /// Whether a request in this mode can be retried after it may have run.
  package var repeats: Bool { self == .idempotent || self == .once }
}

/// The options of a request. Each has a default.
///
/// An option that is not set (nil or empty) is taken from the next wider options. From narrow to
/// wide these are: the options of the call; those of the method (``RPCMethod/options``); those that
/// a generated client, or a service of `LongLinkCalls`, has for all of its methods;
/// `timeouts.request` of the client's or server's configuration, and `waitsForConnection` of the
/// client's; and the defaults given below.
public struct RequestOptions: Hashable, Sendable {
  /// The time limit from the request's creation, including waiting and reconnecting.
  ///
  /// Default: `timeouts.request` of the configuration, which is 15 s. Resolution: 1 ms.
  ///
  /// A suspended or stopped process cannot watch the time. When it continues, it first reads what
  /// arrived meanwhile: a request with a response succeeds, however late, and any other one fails
  /// with `deadlineExceeded`. Whether time counts while the machine sleeps depends on the system's
  /// monotonic clock; on Linux it does not count.
  public var timeout: Duration?
  /// Whether the peer is notified when the caller stops waiting for a request that was sent.
  /// Default: true, so that it can stop the work.
  ///
  /// The caller stops when it cancels, when its task is cancelled, and at the deadline. In each
  /// case the request ends on this side at once. If true, the peer gets a cancel frame of 16 bytes:
  /// it cancels the task of its handler and sends no response. The handler of a request that runs
  /// once is cancelled only if no other request waits for the same answer. In a dialect, this works
  /// as far as the dialect has cancels.
  ///
  /// If false, a cancelled request goes on at the peer, and its late response is dropped and
  /// counted. A cancel is still sent if only a part of the request was sent, or if the request's
  /// slot at the peer is needed. This does not make work finish in any case: a native peer is told
  /// the deadline with the request, and cancels the handler then without a cancel frame; so it does
  /// when the connection ends, unless the request runs once.
  public var cancelsAtPeer: Bool?
  /// Whether the request waits while there is no connection, within its timeout and the client's
  /// limits. Default: `waitsForConnection` of the client's configuration, which is true.
  ///
  /// If false, it waits only for a connection attempt in progress, which an idle client starts.
  /// During back-off it fails at once.
  public var waitsForConnection: Bool?
  /// The priority of the request: larger is more urgent. Default: 0, the least urgent. The peer's
  /// handler gets it.
  ///
  /// Waiting requests are sent strictly by priority: a constant supply of more urgent ones starves
  /// the others.
  public var priority: UInt32?
  /// The key by which the peer's handler can recognise a retry. With `retry: .once`, the server
  /// recognises it, and the key has at most 255 bytes. Default: none.
  public var idempotencyKey: [UInt8] {
    get { rare?.idempotencyKey ?? [] }
    set { rare = .having(idempotencyKey: newValue, metadata: metadata, ticket: ticket) }
  }
  /// Entries for the peer's handler, such as a trace context. Default: none. An entry of narrower
  /// options replaces an entry of wider ones with the same key. All metadata of a request, with its
  /// idempotency key, has at most 65,535 bytes on the wire: a longer one fails with
  /// `encodingFailed`.
  public var metadata: [String: String] {
    get { rare?.metadata ?? [:] }
    set { rare = .having(idempotencyKey: idempotencyKey, metadata: newValue, ticket: ticket) }
  }
  /// Whether the request is retried automatically. Default: `ifSafe`, which retries it only while
  /// it has certainly not run.
  public var retry: RetryMode?
  /// The ticket of a request that runs once, with which you can repeat it. Default: none.
  ///
  /// With a ticket, a request runs once whatever `retry` is. `retry` then decides only whether the
  /// library retries it; not set, it means ``RetryMode/once``. The ticket's key takes the place of
  /// `idempotencyKey`.
  public var ticket: OnceTicket? {
    get { rare?.ticket }
    set { rare = .having(idempotencyKey: idempotencyKey, metadata: metadata, ticket: newValue) }
  }
  /// Whether the request is sent after all ordered requests that were submitted to the same client
  /// before, whatever the priorities and deadlines. Default: false. Waiting requests that are not
  /// ordered are sent by priority; among equal priorities by deadline, then in the order of
  /// submission.
  ///
  /// The order of sending is kept, even over reconnects: the server never accepts an ordered
  /// request after a later one. The order of submission is the order in which requests reach the
  /// client's loop; those of one task or thread keep their order. The first waiting one competes
  /// with other requests by its own urgency. Those after it wait with it, even while it waits for a
  /// retry, and until a large one is sent completely. After a change of connection they wait until
  /// the earlier ones on the old connection have ended. The server handles requests concurrently:
  /// handlers of one kind begin in the order of arrival and can end in any order.
  ///
  /// If an earlier one fails (refused, lost, cancelled, past its deadline), the later ones
  /// continue; to require the success of each, await it before you send the next. An ordered
  /// request is retried only if neither it nor a later one may have been accepted, even if it is
  /// idempotent: its first attempt could still arrive on the old connection, after later ones.
  /// Otherwise it fails, and its error states what happened. One that failed with delivery `sent`
  /// can therefore still arrive later.
  public var isOrdered: Bool?
  /// What few requests have, in one object, so that options are copied at little cost.
  @usableFromInline package private(set) var rare: RareOptions?

  /// Makes options of which none is set.
  public init() {}

  /// Makes options with the given values.
  public init(
    timeout: Duration? = nil,
    cancelsAtPeer: Bool? = nil,
    waitsForConnection: Bool? = nil,
    priority: UInt32? = nil,
    idempotencyKey: [UInt8] = [],
    metadata: [String: String] = [:],
    retry: RetryMode? = nil,
    ticket: OnceTicket? = nil,
    isOrdered: Bool? = nil
  ) {
    self.timeout = timeout
    self.cancelsAtPeer = cancelsAtPeer
    self.waitsForConnection = waitsForConnection
    self.priority = priority
    self.retry = retry
    self.isOrdered = isOrdered
    rare = .having(idempotencyKey: idempotencyKey, metadata: metadata, ticket: ticket)
  }

  /// Whether the request is to run once.
  @inlinable
  package var runsOnce: Bool { retry == .once || rare?.ticket != nil }

  package var offline: OfflinePolicy? { waitsForConnection.map(OfflinePolicy.init(waits:)) }

  /// Returns these options with unset ones taken from `wider`.
  public func over(_ wider: RequestOptions) -> RequestOptions {
    var options = self
    options.timeout = timeout ?? wider.timeout
    options.cancelsAtPeer = cancelsAtPeer ?? wider.cancelsAtPeer
    options.waitsForConnection = waitsForConnection ?? wider.waitsForConnection
    options.priority = priority ?? wider.priority
    options.retry = retry ?? wider.retry
    options.isOrdered = isOrdered ?? wider.isOrdered
    options.rare = rare?.over(wider.rare) ?? wider.rare
    return options
  }
}

/// The options that few requests have; never all empty.
@usableFromInline package final class RareOptions: Hashable, Sendable {
  let idempotencyKey: [UInt8]
  let metadata: [String: String]
  @usableFromInline let ticket: OnceTicket?

  private init(_ idempotencyKey: [UInt8], _ metadata: [String: String], _ ticket: OnceTicket?) {
    self.idempotencyKey = idempotencyKey
    self.metadata = metadata
    self.ticket = ticket
  }

  /// Returns nil if all of them are empty, without making an object first.
  static func having(
    idempotencyKey: [UInt8], metadata: [String: String], ticket: OnceTicket?
  ) -> RareOptions? {
    if idempotencyKey.isEmpty, metadata.isEmpty, ticket == nil { return nil }
    return RareOptions(idempotencyKey, metadata, ticket)
  }

  /// These, with empty ones taken from `wider`.
  func over(_ wider: RareOptions?) -> RareOptions {
    guard let wider else { return self }
    return RareOptions(
      idempotencyKey.isEmpty ? wider.idempotencyKey : idempotencyKey,
      metadata.isEmpty ? wider.metadata : wider.metadata.merging(metadata) { $1 },
      ticket ?? wider.ticket)
  }

  @usableFromInline package static func == (left: RareOptions, right: RareOptions) -> Bool {
    left === right
      || left.idempotencyKey == right.idempotencyKey && left.metadata == right.metadata
        && left.ticket == right.ticket
  }

  @usableFromInline package func hash(into hasher: inout Hasher) {
    hasher.combine(idempotencyKey)
    hasher.combine(metadata)
    hasher.combine(ticket)
  }
}
