// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkClient {
  /// Returns the server's pushes of one kind of message, until the client closes.
  ///
  /// `next()` throws `decodingFailed` for a body that does not decode; the next call continues with
  /// the next push. Pushes are buffered as in `pushes(of:)`.
  public func pushes<Message: PushMessage>(
    of message: Message.Type
  ) -> BufferedSequence<Message, LongLinkError> {
    BufferedSequence(pushes(of: Message.pushType))
  }

  /// Returns the server's pushes of one kind of message, with the given buffer.
  ///
  /// With a `close` buffer, `next()` throws `overloaded` when the consumer has fallen behind. It
  /// throws `decodingFailed` for a body that does not decode; the next call continues with the next
  /// push.
  public func pushes<Message: PushMessage, Failure>(
    of message: Message.Type, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Message, LongLinkError> {
    BufferedSequence(pushes(of: Message.pushType, buffer: buffer))
  }

  /// Sets the function that is called with each push of one kind of message, replacing any earlier
  /// one.
  ///
  /// It is called on the client's loop, which it must not block, until the client closes. For a
  /// body that does not decode it gets `decodingFailed`. Call this on any thread.
  public func onPush<Message: PushMessage>(
    _ message: Message.Type,
    _ handler: @escaping @Sendable (Result<Message, LongLinkError>) -> Void
  ) {
    onPush(Message.pushType) { push in
      handler(Result { () throws(LongLinkError) in try Message(push) })
    }
  }

  /// Sends a one-way message; waits and throws as `push(_:_:timeout:priority:)` does.
  public func push(
    _ message: some PushMessage, timeout: Duration? = nil, priority: UInt32 = 0
  ) async throws(LongLinkError) {
    try await push(type(of: message).pushType, message, timeout: timeout, priority: priority)
  }
}
