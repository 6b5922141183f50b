// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// A type that sends requests: a client, or the ``Peer`` of a connection.
///
/// A request has a message type and a body, and its result is the response's bytes; or it belongs
/// to an ``RPCMethod``, and its result is a decoded reply. Each can be awaited, made with a handle
/// or with a completion handler, or made on a plain thread, which it blocks.
public protocol RequestSender: Sendable {
  /// The loop that sends the requests.
  var loop: EventLoop { get }

  /// Sends a request and waits for the body of its response.
  ///
  /// Cancelling the task cancels the request. The options' timeout starts with this call. Throws
  /// `LongLinkError`, whose `delivery` states what may have happened to the request.
  func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) async throws(LongLinkError) -> [UInt8]

  /// Sends a request and returns a task that you can await.
  func submit(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) -> RequestTask

  /// Sends a request and calls `completion` once, on the given executor, and never before this
  /// returns.
  @discardableResult
  func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions,
    on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle

  /// Sends a request that carries items. Use `stream`, `sendItems` and `exchange` instead.
  func start(_ stream: StreamRequest) -> RequestHandle
}

// MARK: - Bytes

extension RequestSender {
  /// Sends a request with the default options and returns a task that you can await.
  public func submit(_ type: MessageType, _ body: some BodyEncodable & Sendable) -> RequestTask {
    submit(type, body, options: RequestOptions())
  }

  /// Sends a request and calls `completion` once, on the given executor.
  @inlinable @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    request(type, body, options: RequestOptions(), on: executor, completion: completion)
  }

  /// Sends a request and blocks the calling thread until it has ended.
  ///
  /// Call it only on plain threads. It traps in a Swift task and on the loop, because it would
  /// block the thread that it waits for.
  public func requestBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> [UInt8] {
    BlockingSlot<Outcome>.preconditionMayBlock(on: loop)
    let slot = BlockingSlot<Outcome>()
    request(type, body, options: options, on: .connectionLoop) { slot.fill($0) }
    return try slot.wait().get()
  }
}

// MARK: - Messages

extension RequestSender {
  /// Sends a request of a method and waits for its reply.
  ///
  /// The method's options apply where `options` has none. Throws `decodingFailed`, delivery
  /// `answered`, if the response does not decode as the reply, and otherwise as the form that takes
  /// a message type.
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

  /// Sends a request of a method and calls `completion` once with its reply, on the given executor.
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

  /// Sends a request of a method and blocks the calling thread until it has ended.
  ///
  /// Call it only on plain threads; it traps in a Swift task and on the loop.
  public func requestBlocking<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> Reply {
    try method.reply(
      of: try requestBlocking(method.type, request, options: options.over(method.options)))
  }
}

extension RPCMethod where Reply: BodyDecodable {
  /// Decodes the body of a response; throws `decodingFailed`, delivery `answered`.
  @usableFromInline func reply(of bytes: [UInt8]) throws(LongLinkError) -> Reply {
    do throws(BodyError) {
      return try Reply(copying: bytes)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: .request(type), detail: "\(error)")
    }
  }
}
