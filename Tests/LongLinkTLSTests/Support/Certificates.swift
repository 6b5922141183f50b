// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkTLS

/// Certificates that tests share: they are valid from 2023 to 2049.
enum Certificates {
  static let validity: Range<Int64> = 1_700_000_000..<2_500_000_000
  static let authority = makeAuthority("Test authority")
  static let otherAuthority = makeAuthority("Another authority")
  static let server = make(.server, ["DNS:server.test", "IP:10.0.0.1", "IP:127.0.0.1"])
  static let client = make(.client, ["URI:spiffe://test/client", "DNS:client.test"], serial: 7)

  static func makeAuthority(
    _ name: String, keyKind: CertificateRequest.KeyKind = .ed25519,
    validity: Range<Int64> = Certificates.validity
  ) -> CertificatePair {
    CertificateKit.make(
      CertificateRequest(name: name, isAuthority: true, validity: validity, keyKind: keyKind))
  }

  static func make(
    _ purpose: CertificateRequest.Purpose?, _ names: [String], serial: UInt64 = 2,
    validity: Range<Int64> = validity, issuer: CertificatePair? = authority,
    keyKind: CertificateRequest.KeyKind = .ed25519, password: String? = nil
  ) -> CertificatePair {
    CertificateKit.make(
      CertificateRequest(
        name: names.first ?? "nobody", names: names, purpose: purpose, serial: serial,
        validity: validity, keyKind: keyKind, password: password), issuer: issuer)
  }
}

extension TLSIdentity {
  /// The identity of a pair.
  init(_ pair: CertificatePair, password: String? = nil) {
    self.init(chain: .bytes(pair.certificate), key: .bytes(pair.key), password: password)
  }
}

extension TLSRoots {
  /// The authority of a pair alone.
  static func only(_ pair: CertificatePair) -> TLSRoots { .only(.bytes(pair.certificate)) }
}

extension TLSClientConfiguration {
  /// A client that trusts the tests' authority.
  static func trusting(
    _ authority: CertificatePair = Certificates.authority,
    _ change: (inout TLSClientConfiguration) -> Void = { _ in }
  ) -> TLSClientConfiguration {
    var configuration = TLSClientConfiguration()
    configuration.roots = .only(authority)
    change(&configuration)
    return configuration
  }
}

extension TLSServerConfiguration {
  /// A server with one certificate.
  static func with(
    _ pair: CertificatePair = Certificates.server,
    _ change: (inout TLSServerConfiguration) -> Void = { _ in }
  ) -> TLSServerConfiguration {
    var configuration = TLSServerConfiguration(certificates: [TLSIdentity(pair)])
    change(&configuration)
    return configuration
  }
}
