public import LongLinkCore

/// Which protocol is spoken on a connection: the native one, or another one that is described.
///
/// Both sides have to choose the same. In a dialect there is no handshake: a connection is open as
/// soon as it is made, and limits and heartbeat are those of the description. What a dialect has no
/// word for is absent: see the page on other headers.
public struct Dialect: Sendable {
  /// Where the bytes of the session prefix come from.
  private enum Session: Sendable {
    case fixed([UInt8])
    case perConnection(@Sendable () -> [UInt8])
  }

  /// What is described, apart from the configurations that hold it: nearly all are native.
  private final class Custom: Sendable {
    let description: FrameDialect
    let session: Session

    init(_ description: FrameDialect, _ session: Session) {
      self.description = description
      self.session = session
    }
  }

  private let custom: Custom?

  /// The native protocol.
  public static let native = Dialect(custom: nil)

  /// The description; nil for the native protocol.
  public var description: FrameDialect? { custom?.description }

  /// A described protocol. `session` is what this side writes as its session prefix, on every
  /// connection: as many bytes as the field is wide. A server that gives none writes zeros.
  public static func custom(_ description: FrameDialect, session: [UInt8] = []) -> Dialect {
    Dialect(custom: Custom(description, .fixed(session)))
  }

  /// A described protocol whose session prefix differs between connections.
  ///
  /// The closure is called on the loop for each connection, and must not block. Where it gives
  /// another number of bytes than the field is wide, the connection comes to nothing.
  public static func custom(
    _ description: FrameDialect, session: @escaping @Sendable () -> [UInt8]
  ) -> Dialect {
    Dialect(custom: Custom(description, .perConnection(session)))
  }

  private init(custom: Custom?) {
    self.custom = custom
  }
}

extension Dialect {
  /// Throws `invalidConfiguration` when it is known beforehand that it cannot work.
  package func validate(_ role: Role, field: String) throws(LongLinkError) {
    guard let custom, case .fixed(let bytes) = custom.session else { return }
    do throws(FrameLayoutError) {
      _ = try DialectCodec(custom.description, role: role, session: bytes)
    } catch {
      throw .configuration("\(field).\(error.field)", error.reason)
    }
  }

  /// What all connections of a server share, but for prefixes that differ; nil for the native
  /// protocol.
  package func serverCodec(maxBody: Int) -> SharedCodec? {
    var dialect = self
    if let description, isPerConnection { dialect = .custom(description) }
    return try? dialect.codec(.server, maxBody: maxBody)
  }

  /// Whether each connection has a prefix of its own.
  package var isPerConnection: Bool {
    if case .perConnection = custom?.session { true } else { false }
  }

  /// What one connection is told; nil for the native protocol. Throws where the session prefix does
  /// not fit.
  package func codec(_ role: Role, maxBody: Int) throws(FrameLayoutError) -> SharedCodec? {
    guard let custom else { return nil }
    let bytes =
      switch custom.session {
      case .fixed(let bytes): bytes
      case .perConnection(let make): make()
      }
    return SharedCodec(
      try DialectCodec(
        custom.description, role: role, session: bytes, maximumIncoming: maxBody))
  }

  /// The heartbeat that holds: a dialect's own times in place of those that are configured.
  package func heartbeat(_ configured: Heartbeat) -> Heartbeat {
    guard let heartbeat = description?.heartbeat else { return configured }
    return Heartbeat(
      interval: heartbeat.interval, timeout: heartbeat.timeout,
      missedDeadlines: configured.missedDeadlines)
  }

  /// The serials of a side's requests; nil for those of the native protocol.
  package func serials(_ role: Role) -> ClosedRange<UInt32>? {
    description?.serials[role]
  }
}
