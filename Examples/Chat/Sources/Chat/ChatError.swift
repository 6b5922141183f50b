// SPDX-License-Identifier: Apache-2.0

import ChatMessages
import LongLinkCalls

extension CallConfiguration {
  /// What the chat's calls have in common. Each of them may be made twice, as the .proto file says.
  static var chat: CallConfiguration {
    let policy = CallPolicy(RequestOptions(timeout: .seconds(10)))
    return CallConfiguration(
      policy: policy, services: ["chat.Chat": CallService(errors: [ChatError.self])])
  }
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
