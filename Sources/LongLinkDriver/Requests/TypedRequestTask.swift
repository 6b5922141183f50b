// SPDX-License-Identifier: Apache-2.0

/// One request whose answer is a message, for callers who keep it.
///
/// It may be used from any thread. Letting go of it changes nothing: the request goes on.
public struct TypedRequestTask<Reply: Sendable>: Sendable {
  /// The request: its state, its serial, its cancellation.
  public let task: RequestTask
  private let decode: @Sendable ([UInt8]) throws(LongLinkError) -> Reply

  init(
    _ task: RequestTask, _ decode: @escaping @Sendable ([UInt8]) throws(LongLinkError) -> Reply
  ) {
    self.task = task
    self.decode = decode
  }

  /// The answer, awaited; cancelling the waiting task cancels the request.
  ///
  /// Throws `decodingFailed`, delivery `answered`, when the body is not such a message.
  public var value: Reply {
    get async throws(LongLinkError) { try decode(try await task.value) }
  }

  /// Ends the request with `cancelled`, unless it has ended.
  public func cancel() {
    task.cancel()
  }
}
