// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// The owner of a `Peer`'s connection; used on the loop.
package protocol PeerOwner: RequestSink, PushSink {
  /// The requests that the owner has sent; nil if there were none.
  var requestsIfAny: Requests? { get }
  /// Performs a command on the connection with this number.
  func perform(_ command: PeerCommand, on id: UInt64)
}

/// A command for a peer's connection.
package enum PeerCommand: Sendable {
  /// Closes the connection once its output is written.
  case close
  /// Announces that the client has a newer connection, pings this one, and closes it if nothing
  /// arrives within the heartbeat's timeout.
  case probe
  /// Lets the connection end in favour of newer ones of the same client.
  case leave
}

/// A client of a server, whatever connections it has; used on any thread.
package protocol PeerClient: AnyObject, Sendable {
  /// A number that is unique among the clients of the server.
  var id: UInt64 { get }
  /// The open connection that was accepted last; nil if there is none.
  var current: Peer? { get }
  /// The open connections in the order in which they were accepted.
  var open: [Peer] { get }
  /// The connections in `open`, and those that were told to end in favour of newer ones.
  var connected: [Peer] { get }
  /// Makes room for a push that is handed to another loop. Throws `overloaded` if there is no room,
  /// and the error of an earlier push that could not be sent there.
  func handOver(_ type: MessageType, bytes: Int) throws(LongLinkError)
  /// Frees the room of a push that was handed over. `failure` is its error if it was not sent.
  func handedOver(bytes: Int, _ failure: LongLinkError?)
}

/// The other side: on a server a client, on a client the server. Handlers can send it requests and
/// pushes.
///
/// On a server, a client is the same one on all its connections (see `ClientIdentity`). Requests
/// and pushes go over the connection that it opened last, even if the one on which you got the peer
/// has ended. They fail with `closed` once the client has no connection. `address`, `security` and
/// the principal are those of the connection on which you got the peer. Two peers are equal if they
/// are the same client.
///
/// On a client, requests and pushes go over the client's current connection, until the connection
/// on which you got the peer has ended; then they fail with `closed`. While
/// `ClientConfiguration.prepare` runs, those of its argument go over the new connection, and fail
/// with `overloaded` instead of waiting for room.
///
/// It may be used from any thread.
public final class Peer: RequestSender {
  /// Forwards to the owner until `detach`, when the connection ends.
  private final class Reference: RequestSink, PushSink {
    private let loop: EventLoop
    // Not weak, because weak references slow down an object's reference counting.
    var owner: (any PeerOwner)?
    /// Why the connection ended.
    var reason: CloseReason?
    /// A client's requests, some of which go on over a later connection.
    private var rest: Requests?
    /// What has happened to the connection; nil if nothing has, and nobody listens.
    var events: PeerEvents?

    init(on loop: EventLoop) {
      self.loop = loop
    }

    func submit(
      _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
      _ completion: consuming Completion
    ) -> RequestID {
      if let owner { return owner.submit(type, body, options, completion) }
      return fail(type, completion)
    }

    func submit(
      _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
      _ completion: Completion, after delay: Int64
    ) -> RequestID {
      owner?.submit(type, body, options, completion, after: delay) ?? fail(type, completion)
    }

    var reconnect: ReconnectPolicy { owner?.reconnect ?? ReconnectPolicy() }

    private func fail(_ type: MessageType, _ completion: Completion) -> RequestID {
      let error = ended(.request(type))
      if completion.isHandler {
        // A handler is never called within the call that makes its request.
        completion.record?.end(.failure(error))
        loop.execute { completion(.failure(error)) }
      } else {
        completion(.failure(error))
      }
      return .none
    }

    func cancel(_ id: RequestID) {
      if let owner { owner.cancel(id) } else { rest?.cancel(id) }
    }

    var pushesIfAny: PushQueue? { owner?.pushesIfAny }

    func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link) {
      guard let owner else { throw ended(.push(type)) }
      return try owner.wayOfPush(type)
    }

    func state(of id: RequestID) -> RequestState? {
      owner.map { $0.state(of: id) } ?? rest?.state(of: id)
    }

    /// Releases the owner, so that it gets no more requests.
    func detach() {
      if let requests = owner?.requestsIfAny, requests.count > 0 { rest = requests }
      owner = nil
      events?.finish()
      events = nil
    }

    func ended(_ operation: LongLinkError.Operation) -> LongLinkError {
      let why = reason.map { ": \($0)" } ?? ""
      return LongLinkError(
        .closed, doing: operation, detail: "the peer has ended\(why)", closeReason: reason)
    }
  }

  /// The number of the connection on which you got the peer, which is unique among the connections
  /// of this server or client.
  public let connectionID: UInt64
  /// The peer's address on the connection on which you got the peer; nil if it is unknown.
  public let address: SocketAddress?
  /// The event loop of the connection on which you got the peer.
  public let loop: EventLoop
  private let reference: LoopBound<Reference>
  private let ownPort: SenderPort
  /// Who the peer is: set before its messages are acted on, and when its credential is renewed.
  private let identity = Mutex(Identity())
  /// The memory of the peer's decoded messages; nil on a client.
  let decoded: DecodedMemory?
  /// The handlers of the peer's requests.
  let routes: Routes
  /// The log for what handlers report about the peer's requests.
  let log: PeerLog

  /// Who the peer is, and how its connection is secured.
  private struct Identity {
    var principal: PrincipalRecord?
    var client: (any PeerClient)?
    var security: Box<ConnectionSecurity>?
  }

  /// A number that is unique among the clients of a server, or among the connections of a client.
  public var id: UInt64 { client?.id ?? connectionID }
  /// The port through which requests to the peer are sent.
  public var senderPort: SenderPort { target.ownPort }
  /// The client with all of its connections; nil if it is known on this connection alone.
  package var client: (any PeerClient)? { identity.withLock(of: self) { $0.client } }
  /// The peer of the connection that carries what is sent now.
  private var target: Peer { client?.current ?? self }
  /// Whether this is the connection that carries what is sent to the client.
  package var isCurrent: Bool { target === self }

  /// Who the peer is, as a server's `authenticate` has found; nil if nobody was authenticated.
  package var principalRecord: PrincipalRecord? { identity.withLock(of: self) { $0.principal } }
  /// How the connection on which you got the peer is secured, with the peer's certificate; nil if
  /// the connection is not encrypted.
  public var security: ConnectionSecurity? {
    identity.withLock(of: self) { $0.security }?.value
  }

  /// Records who the peer is; on the loop, before its messages are acted on, or when its identity
  /// has changed. A nil `client` and a second `security` change nothing.
  package func identified(
    as principal: PrincipalRecord?, security: ConnectionSecurity?, client: (any PeerClient)? = nil
  ) {
    identity.withLock(of: self) { identity in
      identity.principal = principal
      if let client { identity.client = client }
      if let security, identity.security == nil { identity.security = Box(security) }
    }
  }

  package init(
    id: UInt64, address: SocketAddress?, routes: Routes, log: PeerLog, on loop: EventLoop,
    decoded: DecodedMemory? = nil, observers: Observers? = nil
  ) {
    self.decoded = decoded
    self.routes = routes
    self.log = log
    connectionID = id
    self.address = address
    self.loop = loop
    let reference = Reference(on: loop)
    self.reference = LoopBound(reference, on: loop)
    ownPort = SenderPort(RequestPort(reference, observers: observers, on: loop))
  }

  /// The clock of the connection's loop.
  public var clock: EventLoopClock { loop.clock }

  /// Sends a one-way message.
  ///
  /// The message is queued when this returns; nothing confirms its arrival. Pushes go in the order
  /// of the calls. If they have to wait, those of a larger `priority` go first, but a push of which
  /// a fragment was sent is finished before any other. While the outgoing buffer is above its
  /// high-water mark, this suspends until there is room or `timeout` has passed. Default nil: the
  /// timeout of requests, which is 15 s unless configured otherwise.
  ///
  /// Throws `closed` if the connection has ended (`closeReason` states why), `notConnected` while a
  /// client has no connection (or `securityFailed` or `notAccepted` if that is why),
  /// `connectionLost` if the connection ends during the wait, `deadlineExceeded` after `timeout`,
  /// `cancelled` if the task is cancelled during the wait, `overloaded` if too many pushes wait
  /// already, `tooLarge` if the peer does not accept a body of this size, `encodingFailed`, and
  /// `unsupported` if the dialect has no such push.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    timeout: Duration? = nil, priority: UInt32 = 0
  ) async throws(LongLinkError) {
    let target = target
    try await deliver(target.reference, on: target.loop, type, body, timeout, priority)
  }

  /// Sends a one-way message at once, without waiting.
  ///
  /// Throws `overloaded` while the outgoing buffer is above its high-water mark, and otherwise as
  /// `push` does. Call it only on the peer's loop, where synchronous handlers run; on another
  /// thread it may trap.
  ///
  /// If the client's current connection is on another loop of the server, the push is handed to
  /// that loop, up to the high-water mark. A push that cannot be sent there is counted in the
  /// server's `pushesLost`, and the next push that is handed over throws its error.
  public func pushNow(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, priority: UInt32 = 0
  ) throws(LongLinkError) {
    let target = target
    guard !target.loop.isCurrent, let client else {
      return try target.reference.value.pushNow(type, body, priority: priority)
    }
    let bytes: [UInt8]
    do throws(BodyError) {
      bytes = try body.encodedBytes()
    } catch {
      throw LongLinkError(.encodingFailed, doing: .push(type), detail: "\(error)")
    }
    try client.handOver(type, bytes: bytes.count)
    target.loop.execute { [target] in
      do throws(LongLinkError) {
        try target.reference.value.pushNow(type, bytes, priority: priority)
        client.handedOver(bytes: bytes.count, nil)
      } catch {
        client.handedOver(bytes: bytes.count, error)
      }
    }
  }

  /// Closes the connections that the peer has now, once their output is written. It does not close
  /// later ones: a client may connect again.
  public func close() {
    for peer in client?.connected ?? [self] { peer.perform(.close) }
  }

  /// The events of the connection on which you got the peer: first those of the past, then each one
  /// when it happens. Each kind comes once, but `draining` comes again if the end is moved forward.
  /// The sequence ends with the connection.
  ///
  /// A handler that runs for a long time, such as that of a stream, can so end by itself before its
  /// connection does: see also `InboundRequest.untilDraining` and `Items.untilDraining`. Pushes do
  /// not depend on this connection: `push` uses the client's newest one.
  public var events: AsyncStream<PeerEvent> {
    let (stream, continuation) = AsyncStream.makeStream(of: PeerEvent.self)
    let id = PeerEvents.nextID()
    // Its job comes after the one that adds the listener.
    continuation.onTermination = { [reference, loop] _ in
      loop.execute {
        if reference.value.events?.remove(id) == true { reference.value.events = nil }
      }
    }
    loop.execute { [reference] in
      guard reference.value.owner != nil else { return continuation.finish() }
      let events = reference.value.events ?? PeerEvents()
      reference.value.events = events
      events.add(id, continuation)
    }
    return stream
  }

  /// The number of listeners to `events`; read it on the loop.
  package var eventListeners: Int { reference.value.events?.listenerCount ?? 0 }

  /// Tells what happens to the connection, and returns whether it is the first event of its kind;
  /// on the loop.
  @discardableResult
  package func announce(_ event: PeerEvent) -> Bool {
    guard reference.value.owner != nil else { return false }
    let events = reference.value.events ?? PeerEvents()
    reference.value.events = events
    return events.announce(event)
  }

  /// Performs a command on the connection, on its loop, unless the connection has ended.
  package func perform(_ command: PeerCommand) {
    loop.execute { [reference, connectionID] in
      reference.value.owner?.perform(command, on: connectionID)
    }
  }

  /// Sets the owner; on the loop, before the peer is given out.
  package func attach(to owner: any PeerOwner) {
    reference.value.owner = owner
  }

  /// Records why the connection ended; on the loop.
  package func ended(_ reason: CloseReason) {
    reference.value.reason = reason
  }

  /// Releases the owner when its connection has ended; on the loop.
  package func detach() {
    reference.value.detach()
  }

  /// Returns the error of an operation on a connection that has ended; on the loop.
  package func endedError(doing operation: LongLinkError.Operation) -> LongLinkError {
    reference.value.ended(operation)
  }
}

extension Peer: Hashable {
  private var key: ObjectIdentifier {
    client.map { ObjectIdentifier($0) } ?? ObjectIdentifier(self)
  }

  /// Returns whether two peers are the same client of a server; on a client, the same connection.
  public static func == (lhs: Peer, rhs: Peer) -> Bool { lhs.key == rhs.key }

  /// Hashes what makes two peers equal.
  public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}
