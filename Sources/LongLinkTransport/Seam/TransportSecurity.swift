// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How a connection is secured, and who the peer has proved to be.
public struct ConnectionSecurity: Hashable, Sendable {
  /// The protocol's version, such as `TLSv1.3`.
  public let version: String
  /// The cipher's name, such as `TLS_AES_128_GCM_SHA256`.
  public let cipher: String
  /// The application protocol that both sides have agreed on (ALPN): `longlink/1`.
  public let applicationProtocol: String
  /// The server's name that the client sent (SNI), escaped and cut to 200 bytes; nil if it sent
  /// none. On a server, do not trust it: any client can send any name.
  public let serverName: String?
  /// The peer's certificate; nil if it has shown none that this side has verified.
  public let peerCertificate: PeerCertificate?
  /// Whether the handshake resumed an earlier session.
  public let isResumed: Bool

  package init(
    version: String, cipher: String, applicationProtocol: String, serverName: String?,
    peerCertificate: PeerCertificate?, isResumed: Bool
  ) {
    self.version = version
    self.cipher = cipher
    self.applicationProtocol = applicationProtocol
    self.serverName = serverName
    self.peerCertificate = peerCertificate
    self.isResumed = isResumed
  }
}

/// The security of a client's connections, for its configuration. Make it with LongLinkTLS.
public struct ClientSecurity: Sendable {
  package let provider: any ClientSecurityProvider

  package init(_ provider: any ClientSecurityProvider) {
    self.provider = provider
  }
}

/// The security of a server's connections, for its configuration. Make it with LongLinkTLS.
public struct ServerSecurity: Sendable {
  package let provider: any ServerSecurityProvider

  package init(_ provider: any ServerSecurityProvider) {
    self.provider = provider
  }
}

/// Makes secured transports of a client's plain ones. It may be used from any thread.
package protocol ClientSecurityProvider: Sendable {
  /// Returns a transport that secures the bytes of a connecting transport. `host` is the name or
  /// address that was dialled, nil for a Unix socket.
  func secure(_ transport: any Transport, host: String?, on loop: EventLoop) -> any Transport
}

/// Makes secured transports of a server's plain ones. It may be used from any thread.
package protocol ServerSecurityProvider: Sendable {
  /// Returns a transport that secures the bytes of an accepted transport.
  func secure(_ transport: any Transport, on loop: EventLoop) -> any Transport
  /// The protocol versions that clients can use, for the log: `1.3`, for instance.
  var versions: String { get }
  /// A server that uses this provider is about to listen. The provider calls `replaced`, on any
  /// thread, when existing connections should move to new ones, because certificates were replaced.
  func serverStarted(
    _ server: ObjectIdentifier, on loop: EventLoop, _ log: @escaping SecurityLog,
    replaced: @escaping @Sendable () -> Void)
  /// A server that `serverStarted` reported has stopped.
  func serverStopped(_ server: ObjectIdentifier, on loop: EventLoop)
}

extension ServerSecurityProvider {
  package var versions: String { "on" }
}

/// Writes a line into the log of the client or server that uses a provider: its level, the message,
/// and the details.
package typealias SecurityLog = @Sendable (SecurityLogLevel, StaticString, [String: String]) -> Void

/// How much a line of the log matters.
package enum SecurityLogLevel: Sendable {
  /// Something was done, as it should be.
  case info
  /// The operator has to act soon.
  case warning
  /// Something does not work.
  case error
}
