public import LongLinkConnection
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

// MARK: - Asynchronous

extension LongLinkClient {
  /// Sends a request and waits for the body of its answer.
  ///
  /// Cancelling the task cancels the request. The deadline is the options', else the client's, and
  /// covers everything from this call on. Throws `LongLinkError`, whose `delivery` says what may
  /// have happened to the request.
  @inlinable public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> [UInt8] {
    try await exchange(port, type, RequestBody(body), options)
  }

  /// Sends a request and waits for its answer as a message.
  ///
  /// As the other form; throws `decodingFailed`, delivery `answered`, when the body is not one.
  public func request<Reply: BodyDecodable>(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, returning reply: Reply.Type,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> Reply {
    let bytes = try await request(type, body, options: options)
    return try LongLinkClient.decode(bytes, as: reply, type)
  }

  static func decode<Reply: BodyDecodable>(
    _ bytes: [UInt8], as reply: Reply.Type, _ type: MessageType
  ) throws(LongLinkError) -> Reply {
    do throws(BodyError) {
      return try Reply(copying: bytes)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: "request type=\(type)", detail: "\(error)")
    }
  }
}

// MARK: - With a handle, and with a completion handler

extension LongLinkClient {
  /// Sends a request and returns its handle at once.
  public func start(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) -> RequestTask {
    submit(type, RequestBody(body), options) { _ in }
  }

  /// Sends a request and calls `completion`, once, on the executor that the caller names.
  @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions(), on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestTask {
    submit(type, RequestBody(body), options) { outcome in
      executor { completion(outcome) }
    }
  }

  private func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> RequestTask {
    let task = RequestTask(type: type, core: core, on: loop)
    if loop.isCurrent {
      task.submit(body, options, completion)
    } else {
      loop.execute { task.submit(body, options, completion) }
    }
    return task
  }
}

// MARK: - Blocking

extension LongLinkClient {
  /// Sends a request and blocks the calling thread until it has ended.
  ///
  /// For plain threads alone: from a Swift task, or on the client's loop, it would hold up the very
  /// thread that it waits for, and traps.
  public func requestBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> [UInt8] {
    LongLinkClient.preconditionMayBlock(on: loop)
    let slot = BlockingSlot()
    _ = submit(type, RequestBody(body), options) { slot.fill($0) }
    return try slot.wait().get()
  }

  /// As the other form; the answer is decoded as a message.
  public func requestBlocking<Reply: BodyDecodable>(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, returning reply: Reply.Type,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> Reply {
    let bytes = try requestBlocking(type, body, options: options)
    return try LongLinkClient.decode(bytes, as: reply, type)
  }

  private static func preconditionMayBlock(on loop: EventLoop) {
    precondition(
      !loop.isCurrent, "a blocking request on the client's own event loop would never end")
    let isTask = unsafe withUnsafeCurrentTask { unsafe $0 != nil }
    precondition(
      !isTask, "a blocking request must not be made from a Swift task; use the async form")
  }
}
