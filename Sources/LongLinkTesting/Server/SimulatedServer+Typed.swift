// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

extension SimulatedServer {
  /// Decodes each request of a type, and responds with 200 and the closure's result.
  ///
  /// The closure runs on the loop and must not block. If it throws a `Rejection`, the response has
  /// its code and body. A request that cannot be decoded gets 400, as does a `BodyError` that the
  /// closure throws. After any other error the code is 500, and the body is the error's text. A
  /// result that cannot be encoded traps.
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

  /// Returns the decoded requests of a type that have arrived so far, in order of completion.
  /// Throws `BodyError` if one cannot be decoded.
  public func requests<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type
  ) throws(BodyError) -> [Request] {
    var decoded: [Request] = []
    for message in requests(of: type) { decoded.append(try message.decoded(as: request)) }
    return decoded
  }

  /// Waits until `count` requests of a type have arrived since the start, and returns the last of
  /// these, decoded. A `count` below 1 traps.
  ///
  /// Throws `BodyError` if it cannot be decoded, and `CancellationError` if the task is cancelled
  /// or the server stops before that.
  @discardableResult
  public func waitForRequest<Request: BodyDecodable>(
    of type: MessageType, as request: Request.Type, count: Int = 1,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> Request {
    try await waitForRequest(of: type, count: count, fileID: fileID, line: line).decoded(
      as: request)
  }

  /// Returns the decoded items of all streams of a type so far: an array for each stream, in the
  /// order of the streams' first frames. Throws `BodyError` if an item cannot be decoded.
  public func items<Item: BodyDecodable>(
    of type: MessageType, as item: Item.Type
  ) throws(BodyError) -> [[Item]] {
    var decoded: [[Item]] = []
    for stream in streams(of: type) { decoded.append(try stream.decodedItems(as: item)) }
    return decoded
  }

  /// Waits until there are `count` streams of a type for which a condition holds, and returns the
  /// decoded items of the last of these. A `count` below 1 traps.
  ///
  /// By default the condition is that the items have ended. It is checked at once and after each
  /// frame, and must not block or use this server, because a lock is held. Throws `BodyError` if an
  /// item cannot be decoded, and `CancellationError` if the task is cancelled or the server stops
  /// before that.
  @discardableResult
  public func waitForItems<Item: BodyDecodable>(
    of type: MessageType, as item: Item.Type, count: Int = 1,
    until condition: @escaping @Sendable (ReceivedStream) -> Bool = { $0.hasEnded },
    fileID: String = #fileID, line: Int = #line
  ) async throws -> [Item] {
    let call = call("the items of stream \(count) of type \(type)", fileID, line)
    return try await waitForStream(of: type, count: count, until: condition, call)
      .decodedItems(as: item)
  }

  /// Pushes an encoded message on one connection, or by default on all that are open. A message
  /// that cannot be encoded traps.
  public func push(_ message: some PushMessage, to connection: Int? = nil) {
    push(Swift.type(of: message).pushType, message.wireBytes, to: connection)
  }
}

extension ReceivedMessage {
  /// Decodes the body as a message. Throws `BodyError` if it cannot be decoded.
  public func decoded<Message: BodyDecodable>(
    as message: Message.Type
  ) throws(BodyError) -> Message {
    try Message(copying: body)
  }
}

extension ReceivedStream {
  /// Decodes the items that have arrived completely, in the order of arrival. Throws `BodyError` if
  /// one cannot be decoded.
  public func decodedItems<Item: BodyDecodable>(
    as item: Item.Type
  ) throws(BodyError) -> [Item] {
    var decoded: [Item] = []
    for bytes in items { decoded.append(try Item(copying: bytes)) }
    return decoded
  }
}
