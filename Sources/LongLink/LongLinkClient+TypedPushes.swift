// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkClient {
  /// The server's pushes of one kind of message; it ends when the client closes.
  ///
  /// `next` throws `decodingFailed` for a body that is not such a message and goes on behind it.
  /// Pushes are buffered as in the form that takes a message type.
  public func pushes<Message: PushMessage>(
    of message: Message.Type
  ) -> BufferedSequence<Message, LongLinkError> {
    BufferedSequence(pushes(of: Message.pushType))
  }

  /// The server's pushes of one kind of message, with a buffer of the caller's choice.
  ///
  /// With a buffer that may close it, `next` throws `overloaded` when the consumer fell behind.
  public func pushes<Message: PushMessage, Failure>(
    of message: Message.Type, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Message, LongLinkError> {
    BufferedSequence(pushes(of: Message.pushType, buffer: buffer))
  }

  /// Sets the function that is called, on the client's loop, with each push of one kind of message:
  /// `decodingFailed` where the body is not one.
  public func onPush<Message: PushMessage>(
    _ message: Message.Type,
    _ handler: @escaping @Sendable (Result<Message, LongLinkError>) -> Void
  ) {
    onPush(Message.pushType) { push in
      handler(Result { () throws(LongLinkError) in try Message(push) })
    }
  }

  /// Sends a one-way message; it waits and throws as the form that takes a message type.
  public func push(
    _ message: some PushMessage, options: PushOptions = PushOptions()
  ) async throws(LongLinkError) {
    try await push(type(of: message).pushType, message, options: options)
  }
}
