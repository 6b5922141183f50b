import ChatMessages
import LongLinkAPI

/// The methods of the service, and how their requests are made.
enum ChatMethods {
  static let service = APIService(
    policy: RequestPolicy(deadline: .seconds(10), idempotency: .harmless),
    errors: [ChatError.self])

  static let join = APIMethod(
    ChatTypes.join, JoinRequest.self, returning: JoinReply.self, of: service)
  // The server knows a message by its id: it may be sent as often as it takes.
  static let send = APIMethod(
    ChatTypes.send, SendRequest.self, returning: SendReply.self, of: service)
  static let history = APIMethod(
    ChatTypes.history, HistoryRequest.self, returning: HistoryReply.self, of: service,
    policy: .reading)
}

extension ChatError: ApplicationError {
  /// The error of a code of the server's.
  public init?(code: ResponseCode, body: [UInt8]) {
    self.init(rawValue: code.rawValue)
  }

  /// What people are told, in English whatever the language.
  public func text(in language: String) -> String? {
    switch self {
    case .emptyText: "Say something."
    case .textTooLong: "That is too long."
    }
  }
}
