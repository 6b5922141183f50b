// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension Dialect {
  /// The description of a custom dialect; nil for the native protocol.
  public var description: FrameDialect? { (source as? CustomDialect)?.description }

  /// Makes a dialect from a description. `token` is what this side writes into the token field on
  /// every connection.
  ///
  /// It must be as wide as the field, and empty if there is none; otherwise, making the client or
  /// server throws `invalidConfiguration`. Only a server may leave out its token: it writes zeros.
  public static func custom(_ description: FrameDialect, token: [UInt8] = []) -> Dialect {
    Dialect(CustomDialect(description, .fixed(token)))
  }

  /// Makes a dialect from a description, with a different token for each connection.
  ///
  /// The closure is called on the event loop for each connection, and must not block. If it returns
  /// a token that is not as wide as the field, the connection fails. A server's closure may return
  /// an empty array, for zeros.
  public static func custom(
    _ description: FrameDialect, token: @escaping @Sendable () -> [UInt8]
  ) -> Dialect {
    Dialect(CustomDialect(description, .perConnection(token)))
  }
}

/// A description and its token.
private final class CustomDialect: DialectSource {
  /// The source of the token.
  enum Token: Sendable {
    case fixed([UInt8])
    case perConnection(@Sendable () -> [UInt8])
  }

  let description: FrameDialect
  private let token: Token

  init(_ description: FrameDialect, _ token: Token) {
    self.description = description
    self.token = token
  }

  func facts(_ role: Role) -> DialectFacts { description.facts(role) }

  func validate(_ role: Role) throws(DialectTokenError) {
    guard case .fixed(let bytes) = token else { return }
    _ = try DialectCodec(description, role: role, token: bytes)
  }

  var isPerConnection: Bool {
    if case .perConnection = token { true } else { false }
  }

  func sharedFraming(_ role: Role, maxBody: Int) throws(DialectTokenError) -> any DialectFraming {
    if isPerConnection { return try framing(role, maxBody, []) }
    return try framing(role, maxBody: maxBody)
  }

  func framing(_ role: Role, maxBody: Int) throws(DialectTokenError) -> any DialectFraming {
    switch token {
    case .fixed(let bytes): try framing(role, maxBody, bytes)
    case .perConnection(let make): try framing(role, maxBody, make())
    }
  }

  private func framing(
    _ role: Role, _ maxBody: Int, _ token: [UInt8]
  ) throws(DialectTokenError) -> any DialectFraming {
    try DialectCodec(description, role: role, token: token, maximumIncoming: maxBody)
  }
}

extension FrameDialect {
  /// Returns the properties of the dialect that the library needs on one side.
  func facts(_ role: Role) -> DialectFacts {
    var facts = DialectFacts(name: name, role: role, maximumBody: maximumBody)
    facts.serials = serials[role]
    facts.heartbeatInterval = heartbeat.interval
    facts.heartbeatTimeout = heartbeat.timeout
    facts.sendsPings = heartbeat[role] != nil
    facts.pingsAreAnswered = heartbeat[role]?.answer != nil
    facts.peerSendsPings = heartbeat[role.peer] != nil
    facts.answersPings = heartbeat[role.peer]?.answer != nil
    facts.cancelsByType = cancel?.target == .type
    facts.unknownSerial =
      switch unknownSerial {
      case .violation: .violation
      case .drop: .drop
      case .heartbeat: .ping
      }
    facts.hasCodes = codes != nil
    facts.isDelimited = layout.delimiter != nil
    facts.refusesDelimiter = layout.delimiter?.inside == .refused
    return facts
  }
}
