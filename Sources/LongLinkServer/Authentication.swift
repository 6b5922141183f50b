// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
import LongLinkDriver
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

/// The decision to accept a client, with who it is; an `authenticate` function returns it.
public struct Authentication: Sendable {
  /// Who the client is; nil for a client that stays unknown.
  public var principal: Principal?
  /// How long the client is accepted, in whole milliseconds, at least 1 ms; nil for no end. With
  /// zero or less, it is refused with 401, like a client whose credential has expired.
  public var validity: Duration?

  /// Accepts a client as `principal`, for `validity` or without an end.
  ///
  /// The client is told the time, and moves to a new connection before it ends, with a new
  /// credential. A connection that is still there at the end gets a goaway with 401.
  public init(_ principal: Principal, validity: Duration? = nil) {
    self.principal = principal
    self.validity = validity
  }

  private init() {}

  /// Accepts a client that has not proved who it is; rules of routes can still keep it out.
  public static let anonymous = Authentication()
}

/// The decision not to accept a client; an `authenticate` function throws it.
public struct AuthenticationRefusal: Error, Hashable, Sendable {
  /// The code that the client gets: 401 or 403.
  public let code: ResponseCode
  /// The reason, for people; the client gets it, cut to 1,024 bytes.
  public let reason: String

  private init(_ code: ResponseCode, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// The client has not proved who it is, or its credential has expired (401). A client comes back
  /// with a new credential, and stops if it is refused twice with the same one.
  public static func unauthenticated(_ reason: String) -> AuthenticationRefusal {
    AuthenticationRefusal(.unauthenticated, reason)
  }

  /// The client has proved who it is, and may not connect (403).
  public static func forbidden(_ reason: String) -> AuthenticationRefusal {
    AuthenticationRefusal(.forbidden, reason)
  }
}
