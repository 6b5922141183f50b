// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkTransport

/// How a server secures its connections with TLS. Every field but the certificates has a default.
public struct TLSServerConfiguration: Sendable {
  /// Whether the server asks clients for certificates, and which authorities it trusts for them.
  public enum ClientCertificates: Hashable, Sendable {
    /// Clients are not asked for a certificate.
    case none
    /// Clients are asked for a certificate, and may have none. A client that shows a certificate
    /// which was not issued by one of these authorities is refused.
    case requested(TLSRoots)
    /// Clients can connect only with a certificate that one of these authorities has issued.
    case required(TLSRoots)
  }

  /// Whether clients can resume earlier TLS sessions, and where the keys of their tickets come
  /// from.
  public enum Tickets: Hashable, Sendable {
    /// Clients cannot resume earlier connections.
    case none
    /// This process makes the keys of tickets, and replaces them after this interval, of 1 min to 3
    /// days. A session can be resumed for at least one interval, and for at most two, over any
    /// number of connections. Then comes a full handshake, in which the client's certificate is
    /// verified again.
    case rotating(every: Duration)
    /// Several servers share the keys of tickets. The source has 1 to 16 keys, one after the other,
    /// of 80 random bytes each (raw, not PEM). The first key encrypts new tickets; tickets of all
    /// keys are accepted. A session can be resumed for at most a day.
    ///
    /// To replace a key, put the new key second on all servers, then first, and then remove the old
    /// one.
    case keys(TLSSource)
  }

  /// The certificates of the server; at least one. The name that a client asks for (SNI) picks one:
  /// by the exact name, then by a wildcard for one label; else the first.
  public var certificates: [TLSIdentity]
  /// Whether the server asks clients for certificates, and which authorities it trusts for them.
  /// Default: it does not ask.
  public var clientCertificates = ClientCertificates.none
  /// Lists of certificates that authorities have revoked (CRL). Default: none. With any, each
  /// client's certificate needs a list of its issuer that has not expired. They need
  /// `clientCertificates`: without that, they are refused with `invalidConfiguration`.
  public var revocationLists: [TLSSource] = []
  /// The oldest version of TLS that the server speaks. Default: 1.3.
  public var minimumVersion = TLSVersion.tls13
  /// Whether clients can resume earlier TLS sessions, and where the keys of their tickets come
  /// from. Default: they can, with keys that this process makes, and replaces every 8 hours.
  public var tickets = Tickets.rotating(every: .seconds(8 * 3_600))
  /// Whether clients are asked to move to new connections after files were replaced: certificates,
  /// keys, roots or lists. Default false: existing connections keep their certificate.
  public var movesConnections = false

  /// Makes a configuration with these certificates, and the defaults.
  public init(certificates: [TLSIdentity]) {
    self.certificates = certificates
  }

  /// Makes a configuration with one certificate, from the paths of its chain and its key.
  public init(chainFile: String, keyFile: String) {
    self.init(certificates: [TLSIdentity(chainFile: chainFile, keyFile: keyFile)])
  }
}

extension ServerSecurity {
  /// Secures the connections of a server with TLS, with the given configuration.
  ///
  /// It reads the files, and blocks the calling thread meanwhile. Throws `invalidConfiguration`,
  /// naming the field, the file and the reason. Make a ``TLSServer`` instead to reload the files at
  /// once, or to see their state.
  public static func tls(
    _ configuration: TLSServerConfiguration
  ) throws(LongLinkError) -> ServerSecurity {
    tls(try TLSServer(configuration))
  }

  /// Secures the connections of a server with TLS, with certificates that several servers may
  /// share.
  public static func tls(_ server: TLSServer) -> ServerSecurity {
    ServerSecurity(server)
  }
}
