// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCertificates
import LongLinkTLS
import LongLinkScenarios

extension ScenarioSecurity {
  /// TLS with certificates made for this run. Their keys are of Ed25519, so that seeds replay.
  static func trial() -> ScenarioSecurity {
    // From before the year in which simulations begin, until long after.
    let validity: Range<Int64> = 1_700_000_000..<2_500_000_000
    let authority = CertificateKit.make(
      CertificateRequest(name: "Simulated authority", isAuthority: true, validity: validity))
    let identities = (2..<6 as Range<UInt64>).map { serial in
      let pair = CertificateKit.make(
        CertificateRequest(
          name: "Simulated server", names: (0..<3).map { "DNS:server-\($0)" }, purpose: .server,
          serial: serial, validity: validity), issuer: authority)
      return TLSIdentity(chain: .bytes(pair.certificate), key: .bytes(pair.key))
    }
    var client = TLSClientConfiguration()
    client.roots = .only(.bytes(authority.certificate))
    return ScenarioSecurity { [client] in
      try .tls(client)
    } server: { edition in
      try .tls(TLSServerConfiguration(certificates: [identities[edition % identities.count]]))
    }
  }
}
