// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// What sends requests to the other side: a client, and on both sides the connection with the peer.
///
/// Requests have bytes or a message as their body, and the answer's bytes come back; or they are
/// those of an ``RPCMethod``, and its reply does. Both are made in four ways: awaited, with a
/// handle, with a completion handler, and blocking a plain thread.
public protocol RequestSender: Sendable {
  /// The loop that requests are sent on.
  var loop: EventLoop { get }

  /// Sends a request and waits for the body of its answer.
  ///
  /// Cancelling the task cancels the request. The options' timeout covers everything from this call
  /// on. Throws `LongLinkError`, whose `delivery` says what may have happened to the request.
  func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) async throws(LongLinkError) -> [UInt8]

  /// Sends a request and returns at once a task that can be awaited.
  func submit(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) -> RequestTask

  /// Sends a request and calls `completion`, once, on the executor that the caller names, and never
  /// before this returns.
  @discardableResult
  func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions,
    on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle
}

// MARK: - Bytes

extension RequestSender {
  /// Sends a request and returns at once a task that can be awaited, with the default options.
  public func submit(_ type: MessageType, _ body: some BodyEncodable & Sendable) -> RequestTask {
    submit(type, body, options: RequestOptions())
  }

  /// Sends a request with the default options and calls `completion`, once, on the executor that
  /// the caller names.
  @inlinable @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    request(type, body, options: RequestOptions(), on: executor, completion: completion)
  }

  /// Sends a request and blocks the calling thread until it has ended.
  ///
  /// For plain threads alone: from a Swift task, or on the loop, it would hold up the very thread
  /// that it waits for, and traps.
  public func requestBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> [UInt8] {
    BlockingSlot.preconditionMayBlock(on: loop)
    let slot = BlockingSlot()
    request(type, body, options: options, on: .connectionLoop) { slot.fill($0) }
    return try slot.wait().get()
  }
}

// MARK: - Messages

extension RequestSender {
  /// Sends a request of a method and waits for its reply.
  ///
  /// What `options` do not say, the method's say. Throws `decodingFailed`, delivery `answered`,
  /// when the answer is not such a message, and otherwise as the form that takes a message type.
  @inlinable public func request<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> Reply {
    let bytes = try await self.request(
      method.type, request, options: options.over(method.options))
    return try method.reply(of: bytes)
  }

  /// Sends a request of a method and returns its handle at once.
  public func submit<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) -> TypedRequestTask<Reply> {
    TypedRequestTask(submit(method.type, request, options: options.over(method.options))) {
      (bytes) throws(LongLinkError) in
      try method.reply(of: bytes)
    }
  }

  /// Sends a request of a method and calls `completion`, once, with its reply, on the executor that
  /// the caller names.
  @discardableResult
  public func request<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions(), on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<Reply, LongLinkError>) -> Void
  ) -> RequestHandle {
    self.request(method.type, request, options: options.over(method.options), on: executor) {
      outcome in
      completion(
        outcome.flatMap { bytes in
          Result { () throws(LongLinkError) in try method.reply(of: bytes) }
        })
    }
  }

  /// Sends a request of a method and blocks the calling thread, which must not be a task's, until
  /// it has ended.
  public func requestBlocking<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> Reply {
    try method.reply(
      of: try requestBlocking(method.type, request, options: options.over(method.options)))
  }
}

extension RPCMethod where Reply: BodyDecodable {
  /// Decodes the body of an answer; throws `decodingFailed`, delivery `answered`.
  @usableFromInline func reply(of bytes: [UInt8]) throws(LongLinkError) -> Reply {
    do throws(BodyError) {
      return try Reply(copying: bytes)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: .request(type), detail: "\(error)")
    }
  }
}
