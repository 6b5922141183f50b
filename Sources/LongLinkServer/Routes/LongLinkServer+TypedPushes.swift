// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

extension LongLinkServer {
  /// Sets the function that is called with each push of one kind of message. Call it before
  /// `start`; it traps afterwards, and if the type of the push has a function already.
  ///
  /// The function runs on the connection's loop, which it must not block. For a body that does not
  /// decode it gets the error `decodingFailed`, and `overloaded` if `limits.memoryLimit` leaves no
  /// room for the decoded message. A push that `rule` does not allow is dropped and counted in
  /// `pushesDenied`. Default: the rule of `require(_:)`.
  public func onPush<Message: PushMessage>(
    _ message: Message.Type, requires rule: AccessRule? = nil,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ handler: @escaping @Sendable (Result<Message, LongLinkError>, Peer) -> Void
  ) {
    onPush(Message.pushType, requires: rule, fileID: fileID, line: line) { push, peer in
      push.withDecoded(as: message, in: peer) { handler($0, peer) }
    }
  }

  /// Sends a one-way message to each client of a principal, without waiting for any. It skips
  /// connections, counts and throws as `push(to:_:_:closingSlow:)` does.
  @discardableResult
  public func push(
    to principal: String, _ message: some PushMessage, closingSlow closesSlow: Bool = false
  ) async throws(LongLinkError) -> BroadcastReport {
    try await push(to: principal, type(of: message).pushType, message, closingSlow: closesSlow)
  }

  /// Sends a one-way message to every client, without waiting for any. It skips connections, counts
  /// and throws as `broadcast(_:_:closingSlow:)` does.
  @discardableResult
  public func broadcast(
    _ message: some PushMessage, closingSlow closesSlow: Bool = false
  ) async throws(LongLinkError) -> BroadcastReport {
    try await broadcast(type(of: message).pushType, message, closingSlow: closesSlow)
  }
}
