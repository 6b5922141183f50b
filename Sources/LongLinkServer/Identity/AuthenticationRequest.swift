// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport

/// What a client has shown, for a server's `authenticate` function.
public struct AuthenticationRequest: Sendable {
  /// The credential in the client's hello: any bytes, at most 65,536; empty if the client has none.
  /// Nil if the client skips the hello, as older clients and those of dialects do.
  public let credential: [UInt8]?
  /// The client's address; nil for a Unix socket. Behind a proxy that names it, the address behind
  /// the proxy.
  public let address: SocketAddress?
  /// How the connection is secured, with the client's verified certificate if it has shown one, and
  /// the application protocol. Nil for a connection without encryption, and for a request over
  /// HTTP, which a server in front of the gateway may have secured.
  public let security: ConnectionSecurity?
  /// Whether the client sends a single request over HTTP, through a gateway.
  public let isShortLink: Bool
  /// Whether a trusted proxy in front of a gateway has decrypted the request, as the gateway's
  /// configuration states (`isSecuredByProxy`). False for a long link.
  public let isSecuredByProxy: Bool
  /// The name that the client gives itself: not proved, and at most 1,024 bytes.
  public let clientName: String

  /// Whether what the client has sent, its credential included, was encrypted on its way: this
  /// server decrypts it itself, or a trusted proxy in front of its gateway does.
  public var isEncrypted: Bool { security != nil || isSecuredByProxy }
  /// The client's certificate, if it has shown one that was verified.
  public var certificate: PeerCertificate? { security?.peerCertificate }
}
