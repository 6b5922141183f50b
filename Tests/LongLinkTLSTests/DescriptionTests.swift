// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkTLS
import Testing

/// What texts say of configurations, which programs log.
@Suite struct DescriptionTests {
  /// What interpolation, reflection and a dump say of a value.
  private static func texts(of value: some Any) -> [String] {
    var dumped = ""
    dump(value, to: &dumped)
    return ["\(value)", String(reflecting: value), dumped]
  }

  @Test func `no text has a key or a password`() throws {
    let identity = TLSIdentity(Certificates.client, password: "open sesame")
    var server = TLSServerConfiguration(certificates: [identity])
    server.tickets = .keys(.bytes(Array(repeating: 77, count: 80)))
    let client = TLSClientConfiguration.trusting { $0.certificate = identity }
    for text in Self.texts(of: server) + Self.texts(of: client) + Self.texts(of: identity) {
      #expect(!text.contains("sesame"))
      // The lines of PEM, as numbers.
      #expect(!text.contains("45, 45"))
      #expect(!text.contains("77, 77"))
      #expect(!text.split(whereSeparator: \.isNewline).contains { $0.hasSuffix("- 45") })
      #expect(!text.contains("- 77"))
      #expect(text.contains("\(Certificates.client.key.count) bytes"))
      #expect(text.contains("with a password"))
    }
  }

  @Test func `names are written as OpenSSL writes them`() {
    let names: [PeerCertificate.Name] = [
      .dns("client"), .address("10.0.0.1"), .uri("spiffe://a.test/b"), .email("ann@a.test"),
    ]
    #expect(
      names.map { "\($0)" } == [
        "DNS:client", "IP Address:10.0.0.1", "URI:spiffe://a.test/b", "email:ann@a.test",
      ])
  }

  @Test func `files are named`() {
    let identity = TLSIdentity(chainFile: "/etc/server.pem", keyFile: "/etc/server-key.pem")
    #expect("\(identity)" == "chain /etc/server.pem, key /etc/server-key.pem")
  }
}
