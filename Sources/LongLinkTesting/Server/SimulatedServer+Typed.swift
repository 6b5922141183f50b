// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

extension SimulatedServer {
  /// Answers the requests of a type, which are messages, with what the closure makes of each.
  ///
  /// The closure runs on the loop and must not block. Where it throws a `Rejection` the answer has
  /// its code and body; after any other error it is 500, and 400 for a body that is not a message.
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

  /// The requests of one type that were received up to now; throws where one is no such message.
  public func requests<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type
  ) throws(BodyError) -> [Request] {
    var decoded: [Request] = []
    for message in requests(of: type) { decoded.append(try message.decoded(as: request)) }
    return decoded
  }

  /// Waits until requests of a type have come, and returns the last one that was waited for.
  ///
  /// Throws `BodyError` where it is not such a message, and `CancellationError` when the task is
  /// cancelled, or the server stopped, before that.
  @discardableResult
  public func waitForRequest<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type, count: Int = 1
  ) async throws -> Request {
    try await waitForRequest(of: type, count: count).decoded(as: request)
  }

  /// Pushes a message to one connection, or else to all that are open. One that has no encoding is
  /// a programming error.
  public func push(_ message: some PushMessage, to connection: Int? = nil) {
    push(Swift.type(of: message).pushType, message.wireBytes, to: connection)
  }
}

extension ReceivedMessage {
  /// The body as a message.
  public func decoded<Message: BodyDecodable>(
    as message: Message.Type
  ) throws(BodyError) -> Message {
    try Message(copying: body)
  }
}
