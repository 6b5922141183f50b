// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

extension Dialect {
  /// The description; nil for the native protocol.
  public var description: FrameDialect? { (source as? CustomDialect)?.description }

  /// Makes a dialect from a description. `session` is the session prefix of this side on every
  /// connection, and must be as wide as the field. A server without one writes zeros.
  public static func custom(_ description: FrameDialect, session: [UInt8] = []) -> Dialect {
    Dialect(CustomDialect(description, .fixed(session)))
  }

  /// Makes a dialect from a description, with a different session prefix for each connection.
  ///
  /// The closure is called on the loop for each connection, and must not block. If it returns a
  /// prefix that is not as wide as the field, the connection fails.
  public static func custom(
    _ description: FrameDialect, session: @escaping @Sendable () -> [UInt8]
  ) -> Dialect {
    Dialect(CustomDialect(description, .perConnection(session)))
  }
}

/// A description and its session prefix.
private final class CustomDialect: DialectSource {
  /// The source of the session prefix.
  enum Session: Sendable {
    case fixed([UInt8])
    case perConnection(@Sendable () -> [UInt8])
  }

  let description: FrameDialect
  private let session: Session

  init(_ description: FrameDialect, _ session: Session) {
    self.description = description
    self.session = session
  }

  func facts(_ role: Role) -> DialectFacts { description.facts(role) }

  func validate(_ role: Role) throws(FrameLayoutError) {
    guard case .fixed(let bytes) = session else { return }
    _ = try DialectCodec(description, role: role, session: bytes)
  }

  var isPerConnection: Bool {
    if case .perConnection = session { true } else { false }
  }

  func sharedFraming(_ role: Role, maxBody: Int) throws(FrameLayoutError) -> any DialectFraming {
    if isPerConnection { return try framing(role, maxBody, []) }
    return try framing(role, maxBody: maxBody)
  }

  func framing(_ role: Role, maxBody: Int) throws(FrameLayoutError) -> any DialectFraming {
    switch session {
    case .fixed(let bytes): try framing(role, maxBody, bytes)
    case .perConnection(let make): try framing(role, maxBody, make())
    }
  }

  private func framing(
    _ role: Role, _ maxBody: Int, _ session: [UInt8]
  ) throws(FrameLayoutError) -> any DialectFraming {
    try DialectCodec(description, role: role, session: session, maximumIncoming: maxBody)
  }
}

extension FrameDialect {
  /// Returns what one side can do.
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
