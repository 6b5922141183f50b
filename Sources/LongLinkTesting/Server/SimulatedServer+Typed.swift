// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
public import LongLinkCore

extension SimulatedServer {
  /// Responds to each request of a type with the closure's result.
  ///
  /// The closure runs on the loop and must not block. If it throws a `Rejection`, the response has
  /// its code and body; after any other error the code is 500. A request that cannot be decoded
  /// gets 400.
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

  /// The decoded requests of a type that have arrived so far, in order of arrival. Throws
  /// `BodyError` if one does not decode.
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
    of type: MessageType, as request: Request.Type, count: Int = 1,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> Request {
    try await waitForRequest(of: type, count: count, fileID: fileID, line: line).decoded(
      as: request)
  }

  /// The decoded items that each stream of a type has brought so far, an array for each stream in
  /// order of arrival. Throws `BodyError` if one does not decode.
  public func items<Item: BodyDecodable>(
    of type: MessageType, as item: Item.Type
  ) throws(BodyError) -> [[Item]] {
    var decoded: [[Item]] = []
    for stream in streams(of: type) { decoded.append(try stream.decodedItems(as: item)) }
    return decoded
  }

  /// Waits until there are `count` streams of a type for which a condition holds, and returns the
  /// items of the last of these.
  ///
  /// By default the condition is that the items have ended; it is checked after each frame. Throws
  /// `BodyError` if an item cannot be decoded, and `CancellationError` if the task is cancelled or
  /// the server stops before that.
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

  /// Pushes a message on one connection, or by default on all. A message that cannot be encoded is
  /// a programming error.
  public func push(_ message: some PushMessage, to connection: Int? = nil) {
    push(Swift.type(of: message).pushType, message.wireBytes, to: connection)
  }
}

extension ReceivedMessage {
  /// Decodes the body as a message. Throws `BodyError` if it does not decode.
  public func decoded<Message: BodyDecodable>(
    as message: Message.Type
  ) throws(BodyError) -> Message {
    try Message(copying: body)
  }
}

extension ReceivedStream {
  /// Decodes the whole items as messages, in the order of arrival. Throws `BodyError` if one does
  /// not decode.
  public func decodedItems<Item: BodyDecodable>(
    as item: Item.Type
  ) throws(BodyError) -> [Item] {
    var decoded: [Item] = []
    for bytes in items { decoded.append(try Item(copying: bytes)) }
    return decoded
  }
}
