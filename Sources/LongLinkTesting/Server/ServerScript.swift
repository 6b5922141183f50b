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

  /// Returns the action for a request.
  mutating func action(for request: ReceivedMessage) -> @Sendable () -> ServerAction {
    switch rules[request.type] {
    case nil:
      return { .refuse(.unknownType, "no action is scripted for this message type") }
    case .made(let make):
      return { make(request) }
    case .listed(let actions, let taken):
      rules[request.type] = .listed(actions, taken: taken + 1)
      let action = actions.isEmpty ? .never : actions[min(taken, actions.count - 1)]
      return { action }
    }
  }
}
