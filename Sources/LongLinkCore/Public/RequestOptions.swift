// SPDX-License-Identifier: Apache-2.0

/// Whether the peer is told when the caller stops waiting for a request that was sent.
///
/// The caller stops when it cancels, when its task is cancelled, and at the deadline. The request
/// ends on this side at once either way. In the native protocol the peer knows how much time a
/// request has: at the deadline it stops by itself, whatever the policy, and is not told again.
public enum CancellationPolicy: Hashable, Sendable {
  /// The peer is told with a cancel frame of 16 bytes: it cancels the task of its handler and sends
  /// no answer. A dialect tells it as far as it has a word for that.
  case notifyServer
  /// The peer goes on, and its late answer is dropped and counted. For work that is to be done in
  /// any case. The peer is still told where only a part of the request has left, and where the room
  /// that the request takes there is needed.
  case local
}

/// What happens to a request while there is no connection.
public enum OfflinePolicy: Hashable, Sendable {
  /// It waits for a connection, within its timeout and the client's bounds.
  case wait
  /// It waits for a connect that is under way, which an idle client begins, and fails at once when
  /// the next one is still to come.
  case failUnlessConnecting
}

/// Whether a request is sent again by itself.
///
/// Each sending tells the peer the time that remains then, and the same idempotency key. When it
/// fails in the end, its `delivery` tells of all sendings together: `sent` where any of them may
/// have run, even if the last was refused.
public enum RetryMode: Hashable, Sendable {
  /// It is sent once. What was lost before a byte left is not sent again either.
  case never
  /// It is sent again while it has certainly not run: no byte of it had left its connection, the
  /// server said goaway without having counted it, or refused it because it drains or is
  /// overloaded. After an overload it waits for as long as the server asks, or else for a growing
  /// time; when that would not end before its deadline it fails at once. Other refusals, such as
  /// an unknown type, are final.
  case ifSafe
  /// It is also sent again when its connection was lost and it may have run, within the client's
  /// retry budget: to run twice does no harm, or the server tells it by its idempotency key. Not
  /// so an ordered one, which could then run behind later ones.
  case idempotent
  /// As `idempotent`; a request without an idempotency key gets a random one of 16 bytes, by which
  /// the server tells a second sending from a second request.
  case idempotentByKey

  /// Whether it may be sent again after it may have run.
  package var repeats: Bool { self == .idempotent || self == .idempotentByKey }
}

/// In which order waiting requests leave.
public enum RequestOrder: Hashable, Sendable {
  /// By priority; among equal ones the earlier deadline first, then in the order of submission.
  case byUrgency
  /// Behind all ordered requests that were submitted to the same client before, whatever the
  /// priorities and deadlines.
  ///
  /// What is kept is the order of sending, over reconnects too: the server never takes in an
  /// ordered request behind a later one. Submitted means the order in which the calls reach the
  /// client's loop: that of the calls of one task or thread. The first that waits competes with
  /// other requests by its own urgency; those behind it wait with it, also while it waits to be
  /// sent again, and until all of a large one has left. After a change of connection they wait
  /// until the earlier ones on the old connection have ended. The server handles requests side by
  /// side: handlers of one kind begin in the order of arrival and may end in any.
  ///
  /// When an earlier one fails (refused, lost, cancelled, past its deadline), the later ones go on;
  /// whoever needs each to succeed before the next awaits it. An ordered request is sent again only
  /// while neither it nor a later one may have been taken in, whether it is idempotent or not: its
  /// first sending could still arrive on the old connection, behind later ones. Otherwise it fails,
  /// and says what happened. One that was given up with delivery `sent` may so arrive later.
  case ordered
}

/// How a request is made. Everything has a default.
///
/// A field that says nothing (nil, or empty) leaves the word to the next wider options. These are,
/// the narrowest first: those of the call; those of the method (``RPCMethod/options``); those that
/// a generated client, or a service of `LongLinkCalls`, has for all of its methods; `timeout` and
/// `offline` of the client's or server's configuration; and at last what each field names here.
public struct RequestOptions: Hashable, Sendable {
  /// How long the request may take from its creation, waiting and reconnecting included.
  ///
  /// Where nobody says: 15 seconds. Resolution 1 ms.
  ///
  /// A process that is suspended or stopped cannot watch the time. When it goes on, it first reads
  /// what arrived meanwhile: a request that was answered then succeeds, however late, and any other
  /// one fails with `deadlineExceeded`. Whether the time counts in which the machine sleeps is up
  /// to the system's monotonic clock; on Linux it does not.
  public var timeout: Duration?
  /// Whether the peer is told of a cancel, and of a deadline that it does not know of.
  ///
  /// Where nobody says: it is (`notifyServer`), so that it can stop the work.
  public var cancellation: CancellationPolicy?
  /// What happens while there is no connection. Where nobody says: the request waits.
  public var offline: OfflinePolicy?
  /// Told to the peer's handler: larger is more urgent. Where nobody says: 0, which is ordinary.
  ///
  /// Requests that wait leave by it, strictly: others wait for as long as more urgent ones keep
  /// coming.
  public var priority: UInt32?
  /// Told to the peer's handler, so that it can recognise a second try. Where nobody says: none.
  public var idempotencyKey: [UInt8]
  /// Told to the peer's handler: trace context and the like. Those of narrower options stand for
  /// those of wider ones with the same name.
  public var metadata: [String: String]
  /// Whether it is sent again by itself. Where nobody says: while it has certainly not run.
  public var retry: RetryMode?
  /// In which order it leaves when it has to wait. Where nobody says: by urgency.
  public var order: RequestOrder?

  /// Makes options that say what they are given.
  public init(
    timeout: Duration? = nil,
    cancellation: CancellationPolicy? = nil,
    offline: OfflinePolicy? = nil,
    priority: UInt32? = nil,
    idempotencyKey: [UInt8] = [],
    metadata: [String: String] = [:],
    retry: RetryMode? = nil,
    order: RequestOrder? = nil
  ) {
    self.timeout = timeout
    self.cancellation = cancellation
    self.offline = offline
    self.priority = priority
    self.idempotencyKey = idempotencyKey
    self.metadata = metadata
    self.retry = retry
    self.order = order
  }

  /// These options, with the words of wider ones where they have none.
  public func over(_ wider: RequestOptions) -> RequestOptions {
    RequestOptions(
      timeout: timeout ?? wider.timeout,
      cancellation: cancellation ?? wider.cancellation,
      offline: offline ?? wider.offline,
      priority: priority ?? wider.priority,
      idempotencyKey: idempotencyKey.isEmpty ? wider.idempotencyKey : idempotencyKey,
      metadata: metadata.isEmpty ? wider.metadata : wider.metadata.merging(metadata) { $1 },
      retry: retry ?? wider.retry,
      order: order ?? wider.order)
  }
}
