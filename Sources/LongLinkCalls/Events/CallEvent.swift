// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// Something that came from the server: a push, or how a request ended.
public struct CallEvent: Sendable {
  /// Where an event comes from.
  public enum Source: Hashable, Sendable {
    /// The server pushed it.
    case push
    /// It is how an exchange ended, once for all calls that shared it, or for the cache alone.
    /// Answers out of the cache, and cancelled exchanges, are no events.
    case call
  }

  /// Where it comes from.
  public let source: Source
  /// The type of the push, or of the request.
  public let type: MessageType
  /// The body, or why there is none.
  public let result: Result<[UInt8], LongLinkError>

  /// Makes an event, for tests.
  public init(source: Source, type: MessageType, result: Result<[UInt8], LongLinkError>) {
    self.source = source
    self.type = type
    self.result = result
  }

  /// The body as a message.
  ///
  /// Throws the failure of the request, or `decodingFailed`, delivery `answered`.
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
