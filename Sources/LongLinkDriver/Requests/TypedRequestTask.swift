// SPDX-License-Identifier: Apache-2.0

/// A handle on one request whose response is a message.
///
/// It may be used from any thread. Releasing it does not cancel the request.
public struct TypedRequestTask<Reply: Sendable>: Sendable {
  /// The handle on the request's state, serial and cancellation.
  public let task: RequestTask
  private let decode: @Sendable ([UInt8]) throws(LongLinkError) -> Reply

  init(
    _ task: RequestTask, _ decode: @escaping @Sendable ([UInt8]) throws(LongLinkError) -> Reply
  ) {
    self.task = task
    self.decode = decode
  }

  /// The reply, once it has come. Cancelling the waiting task cancels the request.
  ///
  /// Throws the request's error, or `decodingFailed`, delivery `answered`, if the body does not
  /// decode.
  public var value: Reply {
    get async throws(LongLinkError) { try decode(try await task.value) }
  }

  /// Cancels the request, which fails with `cancelled` unless it has already ended.
  public func cancel() {
    task.cancel()
  }
}
