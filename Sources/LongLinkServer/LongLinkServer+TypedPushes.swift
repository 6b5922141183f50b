// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets the function that is called, on the connection's loop, with each push of one kind of
  /// message: `decodingFailed` where the body is not one.
  public func onPush<Message: PushMessage>(
    _ message: Message.Type,
    _ handler: @escaping @Sendable (Result<Message, LongLinkError>, Peer) -> Void
  ) {
    onPush(Message.pushType) { push, peer in
      handler(Result { () throws(LongLinkError) in try Message(push) }, peer)
    }
  }

  /// Sends a one-way message to every connection, as the form that takes a message type.
  @discardableResult
  public func broadcast(
    _ message: some PushMessage, toSlow policy: SlowPeerPolicy = .skip
  ) async throws(LongLinkError) -> BroadcastReport {
    try await broadcast(type(of: message).pushType, message, toSlow: policy)
  }
}
