// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// An event for the application: a push, or the end of an exchange.
public struct CallEvent: Sendable {
  /// Whether the event is a push of the server. Otherwise it is the end of an exchange: one event
  /// for all calls that shared it, or for a refresh of the cache. Cached responses and cancelled
  /// exchanges cause no events.
  public let isPush: Bool
  /// The message type of the push or request.
  public let type: MessageType
  /// The body, or the error of the exchange.
  public let result: Result<[UInt8], LongLinkError>

  /// Makes an event, for tests.
  public init(isPush: Bool, type: MessageType, result: Result<[UInt8], LongLinkError>) {
    self.isPush = isPush
    self.type = type
    self.result = result
  }

  /// Decodes the body as a message.
  ///
  /// Throws the error of the exchange, or `decodingFailed`, delivery `answered`.
  public func message<Message: BodyDecodable>(
    as message: Message.Type = Message.self
  ) throws(LongLinkError) -> Message {
    let body = try result.get()
    do throws(BodyError) {
      return try Message(copying: body)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: "read type=\(type)", detail: "\(error)")
    }
  }
}

extension CallEvent: Broadcastable {
  package var bufferedBytes: Int {
    switch result {
    case .success(let body): body.count
    case .failure(let error): error.body.count
    }
  }

  package static var plural: String { "events" }
}
