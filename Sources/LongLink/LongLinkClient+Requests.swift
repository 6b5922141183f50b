// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkClient: RequestSender {
  /// Sends a request and waits for the body of its response.
  ///
  /// Cancelling the task cancels the request. The timeout is that of the options, else the
  /// configuration's (default 15 s), and starts with this call. Throws `LongLinkError`, whose
  /// `delivery` states what may have happened to the request.
  @inlinable public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> [UInt8] {
    try await awaitResponse(port, type, RequestBody(body), options)
  }

  /// Sends a request and returns a task that you can await.
  @inlinable public func submit(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions
  ) -> RequestTask {
    RequestTask(port, type, RequestBody(body), options)
  }

  /// Sends a request and calls `completion` once, on the given executor, and never before this
  /// returns.
  @inlinable @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, options: RequestOptions,
    on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    RequestHandle(port, type, RequestBody(body), options, executor, completion)
  }

  /// Sends a request that carries items. Use `stream`, `sendItems` and `exchange` instead.
  public func start(_ stream: StreamRequest) -> RequestHandle { stream.start(on: port) }
}
