// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

extension SimulatedServer {
  /// Responds to each request of a type with the closure's result. Both are messages.
  ///
  /// The closure runs on the loop and must not block. If it throws a `Rejection`, the response has
  /// its code and body; after any other error it is 500. A body that cannot be decoded gets 400.
  public func on<
    Request: BodyDecodable & SendableMetatype, Reply: BodyEncodable & SendableMetatype
  >(_ type: MessageType, _ make: @escaping @Sendable (Request) throws -> Reply) {
    on(type) { message -> ServerAction in
      do {
        return .reply(try make(try message.decoded(as: Request.self)).wireBytes)
      } catch let rejection as Rejection {
        return .reply(code: rejection.code, body: rejection.body)
      } catch is BodyError {
        return .reply(code: .malformed)
      } catch {
        return .reply(code: .failed, body: Array("\(error)".utf8))
      }
    }
  }

  /// The requests of one type received so far; throws if one cannot be decoded.
  public func requests<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type
  ) throws(BodyError) -> [Request] {
    var decoded: [Request] = []
    for message in requests(of: type) { decoded.append(try message.decoded(as: request)) }
    return decoded
  }

  /// Waits until `count` requests of a type have arrived, and returns the last of these.
  ///
  /// Throws `BodyError` if it cannot be decoded, and `CancellationError` if the task is cancelled
  /// or the server stops before that.
  @discardableResult
  public func waitForRequest<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type, count: Int = 1
  ) async throws -> Request {
    try await waitForRequest(of: type, count: count).decoded(as: request)
  }

  /// Pushes a message on one connection, or by default on all. A message that cannot be encoded is
  /// a programming error.
  public func push(_ message: some PushMessage, to connection: Int? = nil) {
    push(Swift.type(of: message).pushType, message.wireBytes, to: connection)
  }
}

extension ReceivedMessage {
  /// Decodes the body as a message.
  public func decoded<Message: BodyDecodable>(
    as message: Message.Type
  ) throws(BodyError) -> Message {
    try Message(copying: body)
  }
}
