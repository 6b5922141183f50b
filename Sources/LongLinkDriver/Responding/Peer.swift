// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) public import LongLinkTransport

/// What a connection's owner does for a `Peer`; on the loop.
package protocol PeerOwner: RequestSink, PushSink {
  /// Ends the connection with this number.
  func closeConnection(_ id: UInt64)
}

/// The other side of one connection, as handlers see it: it can be asked, and told.
///
/// It may be used from any thread, and outlives its connection: on a server, what is asked of it
/// then fails. On a client requests and pushes go over the connection that there is at the time,
/// which may be a later one than that of the handler that was given the connection.
public final class Peer: RequestSender {
  /// Finds the owner for as long as the connection lives: until `detach`.
  private final class Reference: RequestSink, PushSink {
    // Not weak: an object that is weakly referenced counts its references the slow way.
    var owner: (any PeerOwner)?
    /// Why the connection ended.
    var reason: CloseReason?

    func submit(
      _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
      _ completion: consuming Completion
    ) -> RequestID {
      if let owner { return owner.submit(type, body, options, completion) }
      completion(.failure(ended(.request(type))))
      return .none
    }

    func cancel(_ id: RequestID) {
      owner?.cancel(id)
    }

    var pushesIfAny: PushQueue? { owner?.pushesIfAny }

    func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link) {
      guard let owner else { throw ended(.push(type)) }
      return try owner.wayOfPush(type)
    }

    func state(of id: RequestID) -> RequestState? {
      owner?.state(of: id)
    }

    func ended(_ operation: LongLinkError.Operation) -> LongLinkError {
      let why = reason.map { ": \($0)" } ?? ""
      return LongLinkError(
        .closed, doing: operation, detail: "the peer has ended\(why)", closeReason: reason)
    }
  }

  /// A number that no other connection of this server or client has.
  public let id: UInt64
  /// The peer's address, where it has one.
  public let address: SocketAddress?
  /// The loop that the connection lives on.
  public let loop: EventLoop
  private let reference: LoopBound<Reference>
  @usableFromInline let port: RequestPort

  package init(id: UInt64, address: SocketAddress?, on loop: EventLoop) {
    self.id = id
    self.address = address
    self.loop = loop
    let reference = Reference()
    self.reference = LoopBound(reference, on: loop)
    port = RequestPort(reference, on: loop)
  }

  /// The clock of the connection's loop.
  public var clock: EventLoopClock { loop.clock }

  /// Sends a one-way message.
  ///
  /// It is queued when this returns, in the order of the calls, more urgent ones first where they
  /// have to wait: while more than the high-water mark of bytes wait for the peer, this waits too,
  /// within the options' deadline. Throws `closed` when the connection has ended (`closeReason`
  /// says why), `connectionLost` when it ends meanwhile, `deadlineExceeded`, `cancelled` when the
  /// task is while it waits, `overloaded` when too many wait already, `tooLarge` when the peer does
  /// not accept a body of this size, and `encodingFailed`.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: PushOptions = PushOptions()
  ) async throws(LongLinkError) {
    try await deliver(reference, on: loop, type, body, options)
  }

  /// Sends a one-way message at once; on the connection's loop alone, as synchronous handlers are.
  ///
  /// It waits for nothing: while more than the high-water mark of bytes wait for the peer it throws
  /// `overloaded`. It throws `closed`, `tooLarge` and `encodingFailed` as the other form does, and
  /// traps on any other thread.
  public func pushNow(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try reference.value.pushNow(type, body, priority: priority)
  }

  /// Asks the peer and waits for its answer.
  ///
  /// Cancelling the task cancels the request. Throws what the peer rejected it with, or why there
  /// was no answer; `delivery` in the error says what may have happened.
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> [UInt8] {
    try await awaitResponse(port, type, RequestBody(body), options)
  }

  /// Sends a request and returns at once a task that can be awaited.
  @inlinable public func submit(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) -> RequestTask {
    RequestTask(port, type, RequestBody(body), options)
  }

  /// Sends a request and calls `completion`, once, on the executor that the caller names, and never
  /// before this returns.
  @inlinable @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions,
    on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    RequestHandle(port, type, RequestBody(body), options, executor, completion)
  }

  /// Ends this connection, and no later one, once what was written has left.
  public func close() {
    loop.execute { [reference, id] in reference.value.owner?.closeConnection(id) }
  }

  /// Sets who does for the connection what it is asked for; on the loop, before anybody has it.
  package func attach(to owner: any PeerOwner) {
    reference.value.owner = owner
  }

  /// Tells why the connection ended; on the loop.
  package func ended(_ reason: CloseReason) {
    reference.value.reason = reason
  }

  /// Lets go of the owner, when its connection has ended; on the loop.
  package func detach() {
    reference.value.owner = nil
  }

  /// The error of what is asked of a connection that has ended; on the loop.
  package func endedError(doing operation: LongLinkError.Operation) -> LongLinkError {
    reference.value.ended(operation)
  }
}
