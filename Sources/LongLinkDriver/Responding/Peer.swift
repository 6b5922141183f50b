// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) public import LongLinkTransport
internal import Synchronization

/// The owner of a `Peer`'s connection; used on the loop.
package protocol PeerOwner: RequestSink, PushSink {
  /// The requests that it has sent; nil if there were none.
  var requestsIfAny: Requests? { get }
  /// Ends the connection with this number.
  func closeConnection(_ id: UInt64)
}

/// The other side of a connection, to which handlers can send requests and pushes.
///
/// It may be used from any thread. Once its connection has ended, its requests and pushes fail with
/// `closed`. On a client, they go over the current connection, which may be a newer one while the
/// peer's own connection finishes its requests.
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

    init(on loop: EventLoop) {
      self.loop = loop
    }

    func submit(
      _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
      _ completion: consuming Completion
    ) -> RequestID {
      if let owner { return owner.submit(type, body, options, completion) }
      let error = ended(.request(type))
      if completion.isHandler {
        // Never within the call that makes the request.
        completion.record?.end(.failure(error))
        loop.execute { [completion = copy completion] in completion(.failure(error)) }
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

    /// Takes no more requests.
    func detach() {
      if let requests = owner?.requestsIfAny, requests.count > 0 { rest = requests }
      owner = nil
    }

    func ended(_ operation: LongLinkError.Operation) -> LongLinkError {
      let why = reason.map { ": \($0)" } ?? ""
      return LongLinkError(
        .closed, doing: operation, detail: "the peer has ended\(why)", closeReason: reason)
    }
  }

  /// A number that is unique among the connections of this server or client.
  public let id: UInt64
  /// The peer's address, if known.
  public let address: SocketAddress?
  /// The loop of the connection.
  public let loop: EventLoop
  private let reference: LoopBound<Reference>
  /// Where the requests to the peer go.
  public let senderPort: SenderPort
  /// Set once, before anything that the peer sends is acted on.
  private let identity = Mutex<Identity?>(nil)
  /// What its messages take, decoded; nil on a client.
  let decoded: DecodedMemory?

  /// Who the peer is, and how its connection is secured.
  private final class Identity: Sendable {
    let principal: PrincipalRecord?
    let security: ConnectionSecurity?

    init(principal: PrincipalRecord?, security: ConnectionSecurity?) {
      self.principal = principal
      self.security = security
    }
  }

  /// Who the peer is, as a server's `authenticate` has found; nil if nobody was authenticated.
  package var principalRecord: PrincipalRecord? { identity.withLock(of: self) { $0 }?.principal }
  /// How the connection is secured, with the peer's verified certificate; nil if it is plain.
  public var security: ConnectionSecurity? { identity.withLock(of: self) { $0 }?.security }

  /// Records who the peer is; on the loop, before anything that it sends is acted on.
  package func identified(as principal: PrincipalRecord?, security: ConnectionSecurity?) {
    guard principal != nil || security != nil else { return }
    identity.withLock(of: self) { $0 = Identity(principal: principal, security: security) }
  }

  package init(
    id: UInt64, address: SocketAddress?, on loop: EventLoop, decoded: DecodedMemory? = nil,
    observers: Observers? = nil
  ) {
    self.decoded = decoded
    self.id = id
    self.address = address
    self.loop = loop
    let reference = Reference(on: loop)
    self.reference = LoopBound(reference, on: loop)
    senderPort = SenderPort(RequestPort(reference, observers: observers, on: loop))
  }

  /// The clock of the connection's loop.
  public var clock: EventLoopClock { loop.clock }

  /// Sends a one-way message.
  ///
  /// The message is queued when this returns; nothing confirms its arrival. Pushes go in the order
  /// of the calls, more urgent ones first if they have to wait. While the outgoing buffer is above
  /// its high-water mark, this suspends until there is room or the options' timeout has passed.
  ///
  /// Throws `closed` if the connection has ended (`closeReason` states why), `notConnected` while a
  /// client has no connection, `connectionLost` if the connection ends during the wait,
  /// `deadlineExceeded`, `cancelled` if the task is cancelled during the wait, `overloaded` if too
  /// many pushes wait already, `tooLarge` if the peer does not accept a body of this size,
  /// `encodingFailed`, and `unsupported` if the dialect has no such push.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: PushOptions = PushOptions()
  ) async throws(LongLinkError) {
    try await deliver(reference, on: loop, type, body, options)
  }

  /// Sends a one-way message at once, without waiting.
  ///
  /// Throws `overloaded` while the outgoing buffer is above its high-water mark, and otherwise as
  /// `push` does. Call it only on the connection's loop, where synchronous handlers run; it traps
  /// on other threads.
  public func pushNow(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try reference.value.pushNow(type, body, priority: priority)
  }

  /// Closes this connection, and no later one, once its output is written.
  public func close() {
    loop.execute { [reference, id] in reference.value.owner?.closeConnection(id) }
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
