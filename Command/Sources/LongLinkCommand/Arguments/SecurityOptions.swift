// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport
import LongLinkTLS
import LongLinkTransport

/// How a command secures its connection, and what it proves its identity with.
struct SecurityOptions: ParsableArguments {
  @Flag(help: "Encrypt the connection with TLS, and verify the server.")
  var tls = false

  @Option(
    help: ArgumentHelp(
      "Trust the authorities in this PEM file (default: those of the system).", valueName: "file"))
  private var tlsCa: String?

  @Flag(help: "Do not verify the server: an attacker on the path can read and change everything.")
  private var tlsInsecure = false

  @Option(
    help: ArgumentHelp(
      "The name that the server's certificate has to have (default: that of --host).",
      valueName: "name"))
  private var tlsServerName: String?

  @Option(
    help: ArgumentHelp("Show the server the certificate in this PEM file.", valueName: "file"))
  private var tlsCertificate: String?

  @Option(help: ArgumentHelp("The private key of --tls-certificate.", valueName: "file"))
  private var tlsKey: String?

  @Option(
    help: ArgumentHelp(
      """
      The SHA-256 hash of a public key (SubjectPublicKeyInfo) in base64. The server's chain has to \
      contain one of the keys; give the option twice or more, with a key in reserve. Compute it \
      with: openssl x509 -in ca.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl \
      dgst -sha256 -binary | base64
      """, valueName: "base64"))
  private var tlsPin: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      Prove who you are with this secret. Other users of this machine can see it in the list of \
      processes.
      """, valueName: "secret"))
  private var token: String?

  /// Whether the client proves who it is.
  var hasProof: Bool { token != nil || tlsCertificate != nil }

  func validate() throws {
    let needsTLS =
      tlsCa != nil || tlsInsecure || tlsServerName != nil || tlsCertificate != nil || tlsKey != nil
      || !tlsPin.isEmpty
    if needsTLS, !tls { throw ValidationError("The other options of TLS need --tls.") }
    if tlsCa != nil, tlsInsecure {
      throw ValidationError("Give --tls-ca or --tls-insecure, not both.")
    }
    if (tlsCertificate == nil) != (tlsKey == nil) {
      throw ValidationError("--tls-certificate and --tls-key go together.")
    }
    if tlsPin.count == 1 {
      throw ValidationError("One --tls-pin is not enough: give two, so that one key can be lost.")
    }
    if !tlsPin.isEmpty, tlsInsecure {
      throw ValidationError("--tls-pin needs a verified server: leave out --tls-insecure.")
    }
    if token?.isEmpty == true { throw ValidationError("The token is empty.") }
  }

  /// Secures the connections of a client to `endpoint`, or of its ways over HTTP, which are set.
  func apply(
    to configuration: inout ClientConfiguration, _ endpoint: Endpoint, overHTTP: Bool
  ) throws {
    if tls, overHTTP {
      throw Output.usageError("Over HTTP, TLS is a matter of the URL: https, and no --tls.")
    }
    if let token {
      let isConfidential =
        overHTTP
        ? configuration.ways.allSatisfy { $0.isConfidential }
        : tls || endpoint.staysOnThisMachine
      guard isConfidential else {
        throw Output.usageError(
          "The token would be sent without encryption: \(overHTTP ? "use https" : "add --tls").")
      }
      let credential = Array(token.utf8)
      // Addresses of this machine need no encryption, and no other one gets it without.
      configuration.identity.credential = { credential }
    }
    guard tls else { return }
    var security = TLSClientConfiguration()
    if let tlsCa { security.roots = .only(.file(tlsCa)) }
    if tlsInsecure { security.verification = .insecure }
    security.serverName = tlsServerName
    if let tlsCertificate, let tlsKey {
      security.certificate = TLSIdentity(chainFile: tlsCertificate, keyFile: tlsKey)
    }
    if !tlsPin.isEmpty { security.pins = TLSPins(tlsPin) }
    do throws(LongLinkError) {
      configuration.security = try .tls(security)
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}

extension Endpoint {
  /// Whether what is sent there is sure to stay on this machine.
  fileprivate var staysOnThisMachine: Bool {
    guard let host else { return true }
    return host == "localhost"
      || SocketAddress(literal: host, port: 0)?.group?.isLoopback ?? false
  }
}
