// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkCalls

extension CallConfiguration {
  /// The policy of the chat's calls. All are idempotent, as the .proto file declares.
  static var chat: CallConfiguration {
    let policy = CallPolicy(RequestOptions(timeout: .seconds(10)))
    return CallConfiguration(
      policy: policy, services: ["chat.Chat": CallService(errors: [ChatError.self])])
  }
}

extension ChatError: ApplicationError {
  /// The error for a code of the server.
  public init?(code: ResponseCode, body: [UInt8]) {
    self.init(rawValue: code.rawValue)
  }

  /// The text for users, in English for every language.
  public func text(in language: String) -> String? {
    switch self {
    case .emptyText: "Say something."
    case .textTooLong: "That is too long."
    }
  }
}
