public import LongLinkConnection
public import LongLinkCore

/// One request whose answer is a message, for callers who keep it.
///
/// It may be used from any thread. Letting go of it changes nothing: the request goes on.
public struct TypedRequestTask<Reply: BodyDecodable>: Sendable {
  /// The request: its state, its serial, its cancellation.
  public let task: RequestTask

  init(_ task: RequestTask) {
    self.task = task
  }

  /// The answer, awaited; cancelling the waiting task cancels the request.
  ///
  /// Throws `decodingFailed`, delivery `answered`, when the body is not such a message.
  public var value: Reply {
    get async throws(LongLinkError) {
      try LongLinkClient.decode(try await task.value, as: Reply.self, task.type)
    }
  }

  /// Ends the request with `cancelled`, unless it has ended.
  public func cancel() {
    task.cancel()
  }
}

extension LongLinkClient {
  /// Sends a request whose answer is a message and returns its handle at once.
  public func start<Reply: BodyDecodable>(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, returning reply: Reply.Type,
    options: RequestOptions = RequestOptions()
  ) -> TypedRequestTask<Reply> {
    TypedRequestTask(start(type, body, options: options))
  }

  /// Sends a request and calls `completion`, once, with its answer as a message, on the executor
  /// that the caller names.
  @discardableResult
  public func request<Reply: BodyDecodable & SendableMetatype>(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, returning reply: Reply.Type,
    options: RequestOptions = RequestOptions(), on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<Reply, LongLinkError>) -> Void
  ) -> RequestTask {
    request(type, body, options: options, on: executor) { outcome in
      completion(
        outcome.flatMap { bytes in
          Result { () throws(LongLinkError) in
            try LongLinkClient.decode(bytes, as: Reply.self, type)
          }
        })
    }
  }
}
