// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkTransport

/// How a server secures its connections. The certificates are required.
public struct TLSServerConfiguration: Sendable {
  /// Whether clients show certificates.
  public enum ClientCertificates: Hashable, Sendable {
    /// Clients are not asked for a certificate.
    case none
    /// Clients are asked for a certificate, and may have none. A client is refused if none of these
    /// authorities has issued its certificate.
    case requested(TLSRoots)
    /// Clients can connect only with a certificate that one of these authorities has issued.
    case required(TLSRoots)
  }

  /// How clients can resume earlier connections.
  public enum Tickets: Hashable, Sendable {
    /// Clients cannot resume earlier connections.
    case none
    /// The keys of tickets are made by this process, and replaced after an interval of 1 min to 3
    /// days. A session can be resumed for one interval at least, and for two at most, over however
    /// many connections: then comes a full handshake, in which the client's certificate is verified
    /// again.
    case rotating(every: Duration)
    /// The keys of tickets are shared by several servers: 80 random bytes each, at most 16, one
    /// after the other. The first makes tickets, all of them are accepted. A session can be resumed
    /// for a day at most.
    ///
    /// To replace a key, put the next one second on all servers, then first, then drop the old one.
    case keys(TLSSource)
  }

  /// The certificates. The client's choice of a name (SNI) picks one: by the exact name, then by a
  /// wildcard for one label; else the first.
  public var certificates: [TLSIdentity]
  /// Whether clients show certificates. Default: none.
  public var clientCertificates = ClientCertificates.none
  /// Lists of certificates that authorities have revoked (CRL). Default: none. With any, each
  /// client's certificate needs a list of its issuer that has not expired.
  public var revocationLists: [TLSSource] = []
  /// The oldest version of TLS. Default: 1.3.
  public var minimumVersion = TLSVersion.tls13
  /// How clients can resume earlier connections. Default: with keys that are replaced every 8
  /// hours.
  public var tickets = Tickets.rotating(every: .seconds(8 * 3_600))
  /// Whether clients are asked to move to new connections after the certificates, roots or lists
  /// were replaced. Default false: existing connections keep their certificate.
  public var movesConnections = false

  /// Makes a configuration; the certificates are required.
  public init(certificates: [TLSIdentity]) {
    self.certificates = certificates
  }

  /// Makes a configuration with one certificate, whose chain and key are in two files.
  public init(chainFile: String, keyFile: String) {
    self.init(certificates: [TLSIdentity(chainFile: chainFile, keyFile: keyFile)])
  }
}

extension ServerSecurity {
  /// TLS, with the given configuration.
  ///
  /// Reads the files, and blocks meanwhile. Throws `invalidConfiguration`, naming the field, the
  /// file and the reason. Make a ``TLSServer`` instead to reload the files at once, or to see their
  /// state.
  public static func tls(
    _ configuration: TLSServerConfiguration
  ) throws(LongLinkError) -> ServerSecurity {
    tls(try TLSServer(configuration))
  }

  /// TLS, with certificates that several servers may share.
  public static func tls(_ server: TLSServer) -> ServerSecurity {
    ServerSecurity(server)
  }
}
