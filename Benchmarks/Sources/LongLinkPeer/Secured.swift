// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS

/// TLS between the peers, with a certificate of the server in files, or one that it makes at its start.
enum Secured {
  static func server(
    _ isWanted: Bool, certificate: String?, key: String?
  ) throws -> ServerSecurity? {
    guard isWanted else { return nil }
    if let certificate, let key {
      return try .tls(TLSServerConfiguration(chainFile: certificate, keyFile: key))
    }
    let pair = CertificateFiles(serial: 1, validity: 0..<4_000_000_000).server
    let identity = TLSIdentity(chain: .bytes(pair.certificate), key: .bytes(pair.key))
    return try .tls(TLSServerConfiguration(certificates: [identity]))
  }

  /// The client takes any certificate; checking one is work of the handshake alone.
  static func client(_ isWanted: Bool) throws -> ClientSecurity? {
    guard isWanted else { return nil }
    var configuration = TLSClientConfiguration()
    configuration.verification = .insecure
    return try .tls(configuration)
  }
}
