// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkServer
import LongLinkTLS

/// How a client secures its connections.
struct ClientSecure: ParsableArguments {
  @Option(help: "Speak TLS, and trust the certificate in this PEM file.")
  var tlsCa: String?

  /// Nil without TLS.
  func security() throws -> ClientSecurity? {
    guard let tlsCa else { return nil }
    var configuration = TLSClientConfiguration()
    configuration.roots = .only(.file(tlsCa))
    return try .tls(configuration)
  }
}

/// How a server secures its connections.
struct ServerSecure: ParsableArguments {
  @Option(help: "Speak TLS, with the certificate in this PEM file.")
  var tlsCertificate: String?
  @Option(help: "The file of its private key.")
  var tlsKey: String?

  func validate() throws {
    guard (tlsCertificate == nil) == (tlsKey == nil) else {
      throw ValidationError("The certificate and its key go together.")
    }
  }

  /// Nil without TLS.
  func security() throws -> ServerSecurity? {
    guard let tlsCertificate, let tlsKey else { return nil }
    return try .tls(TLSServerConfiguration(chainFile: tlsCertificate, keyFile: tlsKey))
  }
}
