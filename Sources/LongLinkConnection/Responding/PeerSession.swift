public import LongLinkCore
public import LongLinkTransport

/// What a connection's owner does for a `PeerSession`; on the loop.
package protocol PeerSessionOwner: RequestSink {
  func push(_ type: MessageType, _ body: any BodyEncodable & Sendable) throws(LongLinkError)
  func closeSession()
}

/// The other side of one connection, as handlers see it: it can be asked, and told.
///
/// It may be used from any thread, and outlives its connection: what is asked of it then fails.
public final class PeerSession: Sendable {
  /// Finds the owner for as long as the connection lives.
  private final class Reference: RequestSink {
    weak var owner: (any PeerSessionOwner)?

    init(_ owner: any PeerSessionOwner) {
      self.owner = owner
    }

    func register(
      _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: RequestOptions
    ) -> RequestID {
      owner?.register(type, body, options) ?? .none
    }

    func launch(_ id: RequestID, _ completion: Completion) {
      if let owner {
        owner.launch(id, completion)
      } else {
        completion(.failure(PeerSession.ended("request")))
      }
    }

    func cancel(_ id: RequestID) {
      owner?.cancel(id)
    }
  }

  /// A number that no other session of this server or client has.
  public let id: UInt64
  /// The peer's address, where it has one.
  public let address: SocketAddress?
  /// The loop that the connection lives on.
  public let loop: EventLoop
  private let reference: LoopBound<Reference>

  package init(
    id: UInt64, address: SocketAddress?, on loop: EventLoop, owner: any PeerSessionOwner
  ) {
    self.id = id
    self.address = address
    self.loop = loop
    reference = LoopBound(Reference(owner), on: loop)
  }

  /// The clock of the connection's loop.
  public var clock: EventLoopClock { loop.clock }

  /// Sends a one-way message.
  ///
  /// It is queued when this returns, in the order of the calls. Throws `closed` when the connection
  /// has ended, `tooLarge` when the peer does not accept a body of this size, `encodingFailed`.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable
  ) async throws(LongLinkError) {
    let result: Result<Void, LongLinkError> = await loop.run { [reference] in
      guard let owner = reference.value.owner else {
        return .failure(PeerSession.ended("push type=\(type)"))
      }
      return Result { () throws(LongLinkError) in try owner.push(type, body) }
    }
    try result.get()
  }

  /// Asks the peer and waits for its answer.
  ///
  /// Cancelling the task cancels the request. Throws what the peer rejected it with, or why there
  /// was no answer; `delivery` in the error says what may have happened.
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> [UInt8] {
    try await exchange(reference, on: loop, type, body, options)
  }

  /// Ends the connection, once what was written has left.
  public func close() {
    loop.execute { [reference] in reference.value.owner?.closeSession() }
  }

  fileprivate static func ended(_ operation: String) -> LongLinkError {
    LongLinkError(.closed, doing: operation, detail: "the session has ended")
  }
}
