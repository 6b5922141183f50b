// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkServer
import LongLinkTLS

/// How a server secures its connections, and whom it takes.
struct ServingSecurityOptions: ParsableArguments {
  /// Whether clients show certificates.
  enum ClientCertificate: String, ExpressibleByArgument, CaseIterable {
    case none, request, require
  }

  @Option(
    help: ArgumentHelp(
      "Encrypt with TLS, with the certificate in this PEM file, its chain after it.",
      valueName: "file"))
  private var tlsCertificate: String?

  @Option(help: ArgumentHelp("The private key of --tls-certificate.", valueName: "file"))
  private var tlsKey: String?

  @Option(
    help: ArgumentHelp(
      "Verify clients' certificates by the authorities in this PEM file.", valueName: "file"))
  private var tlsClientCa: String?

  @Option(
    help: """
      Whether clients show certificates; with `request` they may have none, but one that cannot be \
      verified is refused (default: require with --tls-client-ca, else none).
      """)
  private var tlsClientCertificate: ClientCertificate?

  @Option(
    help: ArgumentHelp(
      """
      Take only clients with one of these secrets. The name is that of the principal, who may have \
      several. Other users of this machine can see them in the list of processes.
      """, valueName: "name=secret"))
  private var token: [String] = []

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      How long a --token is accepted, from each time that a client shows it (default: without \
      end). Clients show it again in time, though not twice in a second: with less than 2, they \
      may be cut off.
      """, valueName: "seconds"),
    transform: Values.time)
  private var credentialValidity: Duration?

  func validate() throws {
    if (tlsCertificate == nil) != (tlsKey == nil) {
      throw ValidationError("--tls-certificate and --tls-key go together.")
    }
    if tlsCertificate == nil, tlsClientCa != nil || tlsClientCertificate != nil {
      throw ValidationError("Clients can show certificates over TLS alone: add --tls-certificate.")
    }
    switch (tlsClientCertificate, tlsClientCa) {
    case (.request, nil), (.require, nil):
      throw ValidationError("Clients' certificates need --tls-client-ca.")
    case (.some(.none), .some):
      throw ValidationError("With --tls-client-certificate none, leave out --tls-client-ca.")
    default: break
    }
    for text in token where ServingSecurityOptions.parts(of: text) == nil {
      throw ValidationError("A --token is NAME=SECRET, and neither is empty.")
    }
    if let credentialValidity {
      guard !token.isEmpty else { throw ValidationError("--credential-validity needs --token.") }
      guard credentialValidity >= .milliseconds(1) else {
        throw ValidationError("--credential-validity is at least 0.001.")
      }
    }
  }

  /// The name and the secret of a token.
  private static func parts(of text: String) -> (name: String, secret: String)? {
    guard let mark = text.firstIndex(of: "=") else { return nil }
    let (name, secret) = (text[..<mark], text[text.index(after: mark)...])
    return name.isEmpty || secret.isEmpty ? nil : (String(name), String(secret))
  }

  /// Makes what secures the server; nil without TLS.
  func makeTLS() throws -> TLSServer? {
    guard let tlsCertificate, let tlsKey else { return nil }
    var security = TLSServerConfiguration(chainFile: tlsCertificate, keyFile: tlsKey)
    if let tlsClientCa {
      let roots = TLSRoots.only(.file(tlsClientCa))
      security.clientCertificates =
        tlsClientCertificate == .request ? .requested(roots) : .required(roots)
    }
    do throws(LongLinkError) {
      return try TLSServer(security)
    } catch {
      throw Output.usageError("\(error)")
    }
  }

  /// Lets a server take the clients with a token alone, and know those with a certificate.
  func authenticate(in configuration: inout ServerConfiguration) {
    let secrets = token.compactMap(ServingSecurityOptions.parts)
      .map { (name: $0.name, secret: Array($0.secret.utf8)) }
    guard !secrets.isEmpty else {
      guard tlsClientCa != nil else { return }
      let isRequired = tlsClientCertificate != .request
      configuration.identity.authenticate = { request in
        guard let certificate = request.certificate else {
          // Over HTTP no client shows one.
          guard !isRequired else {
            throw Rejection(.unauthenticated, "show a certificate, over TLS")
          }
          return .anonymous
        }
        return Authentication(Principal(certificate.subject))
      }
      return
    }
    configuration.identity.authenticate = { [credentialValidity] request in
      guard let credential = request.credential else {
        throw Rejection(.unauthenticated, "say hello with a token first")
      }
      // All are compared, so that the time says nothing of which one is near.
      var found: String?
      for (name, secret) in secrets where isEqual(secret, credential) { found = name }
      guard let found else { throw Rejection(.unauthenticated, "unknown token") }
      return Authentication(Principal(found), validity: credentialValidity)
    }
  }
}

/// Whether two byte strings are equal, in a time that depends on their lengths alone.
private func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  guard first.count == second.count else { return false }
  return zip(first, second).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
}
