// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The script of a server. A value behind the server's lock.
struct ServerScript: Sendable {
  enum Rule: Sendable {
    case made(@Sendable (ReceivedMessage) -> ServerAction)
    /// The last one repeats.
    case listed([ServerAction], taken: Int)
  }

  var rules: [MessageType: Rule] = [:]
  var handshake = ServerHandshake.normal
  var answersPings = true
  var securityFaults: [SecurityFault] = []
  /// How renewals are answered; nil if it follows from the handshake.
  var renewal: Rule?

  /// Returns the action for a request, or for a client's next credential.
  mutating func action(for message: ReceivedMessage) -> @Sendable () -> ServerAction {
    if message.kind != .renewal {
      if let action = rules[message.type]?.next(for: message) { return action }
      return { ServerAction.refuse(.unknownType, "no action is scripted for this message type") }
    }
    if let action = renewal?.next(for: message) { return action }
    guard case .welcome(_, _, let time?, _) = handshake.step else { return { ServerAction.never } }
    return { ServerAction.renewed(credentialExpires: time) }
  }
}

extension ServerScript.Rule {
  fileprivate mutating func next(
    for message: ReceivedMessage
  ) -> @Sendable () -> ServerAction {
    switch self {
    case .made(let make):
      return { make(message) }
    case .listed(let actions, let taken):
      self = .listed(actions, taken: taken + 1)
      let action = actions.isEmpty ? .never : actions[min(taken, actions.count - 1)]
      return { action }
    }
  }
}
