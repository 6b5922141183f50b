// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkClient: RequestSender {
  /// Sends a request and waits for the body of its answer.
  ///
  /// Cancelling the task cancels the request. The timeout is the options', else the client's, and
  /// covers everything from this call on. Throws `LongLinkError`, whose `delivery` says what may
  /// have happened to the request.
  @inlinable public func request(
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
}
