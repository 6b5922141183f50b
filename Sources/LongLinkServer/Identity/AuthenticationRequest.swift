// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

/// A client's credential and other evidence, for a server's `authenticate` function.
public struct AuthenticationRequest: Sendable {
  /// The credential in the client's hello: any bytes, at most 65,536; empty if the client has none.
  /// Nil if the client sends no hello: older clients and those of dialects do not.
  public let credential: [UInt8]?
  /// The client's address; nil for a Unix socket. If a trusted proxy names the client, this is the
  /// client's address, not the proxy's.
  public let address: SocketAddress?
  /// The security of the connection, with the application protocol, and the client's certificate if
  /// one was verified. Nil for a connection without encryption, and for a request over HTTP, which
  /// a server in front of the gateway may have decrypted.
  public let security: ConnectionSecurity?
  /// Whether the client sends a single request over HTTP, through a gateway.
  public let isShortLink: Bool
  /// Whether a trusted proxy in front of a gateway has decrypted the request, as the gateway's
  /// configuration states (`isSecuredByProxy`). False for a long link.
  public let isSecuredByProxy: Bool
  /// The name that the client gives itself: not proved, and at most 1,024 bytes.
  public let clientName: String

  /// Whether everything that the client has sent, including its credential, was encrypted: either
  /// this server decrypts it, or a trusted proxy in front of its gateway does.
  public var isEncrypted: Bool { security != nil || isSecuredByProxy }
  /// The client's verified certificate; nil if it has shown none.
  public var certificate: PeerCertificate? { security?.peerCertificate }
}
