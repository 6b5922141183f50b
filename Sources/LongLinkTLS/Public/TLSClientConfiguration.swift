// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkTransport

/// How a client secures its connections with TLS. Every field has a default.
public struct TLSClientConfiguration: Sendable {
  /// Whether a client verifies the certificates of servers.
  public enum Verification: Hashable, Sendable {
    /// A server needs a certificate that an authority of `roots` has issued for the name that the
    /// client connects to.
    case full
    /// Any server is accepted. **Anyone on the path can read and change everything.** Use it on a
    /// developer's machine, and nowhere else. It cannot be combined with `pins`.
    case insecure
  }

  /// The authorities that issue servers' certificates. Default: the system's.
  public var roots = TLSRoots.system
  /// Whether the certificates of servers are verified. Default: they are.
  public var verification = Verification.full
  /// The name that the server's certificate has to have, and that is sent as SNI. Default nil: the
  /// name or address that was connected to.
  ///
  /// Set it for a Unix socket, which has no name, and where servers are dialled by address.
  public var serverName: String?
  /// The client's certificate, for servers that ask for one. Default nil: none.
  public var certificate: TLSIdentity?
  /// The pinned keys, one of which must be in a server's chain. Default nil: no keys are pinned.
  public var pins: TLSPins?
  /// Lists of certificates that authorities have revoked (CRL). Default: none. With any, the
  /// server's certificate needs a list of its issuer that has not expired. Nothing is asked over
  /// the network: there is no OCSP.
  public var revocationLists: [TLSSource] = []
  /// The oldest version of TLS that the client speaks. Default: 1.3.
  public var minimumVersion = TLSVersion.tls13
  /// Whether later connections to a server resume earlier ones, which saves most of the work of a
  /// handshake. Default true. Each ticket is used once.
  public var resumes = true
  /// A function that is called when files have changed and cannot be used: the old ones stay in
  /// use, and the new ones are tried again at later connections. It is called once for each change,
  /// on any thread. Default nil: there is none.
  public var onReloadFailure: (@Sendable (LongLinkError) -> Void)?

  /// Makes a configuration with the defaults.
  public init() {}
}

extension ClientSecurity {
  /// Secures the connections of a client with TLS, with the given configuration.
  ///
  /// It reads the files, and blocks the calling thread meanwhile. Files that change are read again
  /// when a connection is made, at most every 10 s; later connections use them. Throws
  /// `invalidConfiguration`, naming the field, the file and the reason.
  public static func tls(
    _ configuration: TLSClientConfiguration = TLSClientConfiguration()
  ) throws(LongLinkError) -> ClientSecurity {
    ClientSecurity(try TLSClient(configuration))
  }
}
