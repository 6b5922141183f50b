// SPDX-License-Identifier: Apache-2.0

public import LongLinkConnection
public import LongLinkCore

extension LongLinkServer {
  /// Sets the function that is called, on the session's loop, with each push of one kind of
  /// message: `decodingFailed` where the body is not one.
  public func onPush<Message: PushMessage>(
    _ message: Message.Type,
    _ handler: @escaping @Sendable (Result<Message, LongLinkError>, PeerSession) -> Void
  ) {
    onPush(Message.pushType) { push, session in
      handler(Result { () throws(LongLinkError) in try Message(push) }, session)
    }
  }

  /// Sends a one-way message to every session, as the form that takes a message type.
  @discardableResult
  public func broadcast(
    _ message: some PushMessage, toSlow policy: SlowSessionPolicy = .skip
  ) async throws(LongLinkError) -> BroadcastReport {
    try await broadcast(type(of: message).pushType, message, toSlow: policy)
  }
}
