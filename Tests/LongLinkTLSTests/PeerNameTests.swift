// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkTLS
import Testing

@testable import LongLinkCore

/// The names of certificates, by which handlers tell clients apart.
@Suite struct PeerNameTests {
  /// What is shown of a certificate with these names.
  private static func certificate(_ names: [String]) throws -> PeerCertificate {
    let server = try TLSServer(.with(Certificates.make(.server, ["DNS:a"] + names)))
    return try #require(server.status.certificates.first)
  }

  private static func uri(_ length: Int, _ last: String) -> String {
    let beginning = "spiffe://test/"
    return beginning + String(repeating: "a", count: length - beginning.count - 1) + last
  }

  @Test(arguments: [201, 2_048, 4_096]) func `long names are whole`(length: Int) throws {
    let (one, two) = (Self.uri(length, "1"), Self.uri(length, "2"))
    let names = try Self.certificate(["URI:\(one)", "URI:\(two)"]).names
    #expect(names == [.dns("a"), .uri(one), .uri(two)])
  }

  @Test func `a name that is too long is left out, so that it is equal to no other`() throws {
    let names = try Self.certificate(["URI:\(Self.uri(4_097, "1"))", "DNS:b"]).names
    #expect(names == [.dns("a"), .dns("b")])
    // Each of these is escaped with four.
    let escaped = "spiffe://" + String(repeating: "\u{85}", count: 1_100)
    #expect(try Self.certificate(["URI:\(escaped)"]).names == [.dns("a")])
  }

  @Test func `names are escaped, and differ where the certificates' do`() throws {
    let names = try Self.certificate(["URI:a\u{1}", "URI:a\\u{1}"]).names
    #expect(names == [.dns("a"), .uri(#"a\u{01}"#), .uri(#"a\\u{1}"#)])
  }

  @Test func `the description of a certificate is short`() {
    let long = "CN=" + String(repeating: #"\u{01}"#, count: 500)
    let certificate = PeerCertificate(
      subject: long, issuer: long, notBefore: 0, notAfter: 1, sha256: [1], names: [])
    #expect(certificate.subject == long)
    #expect(certificate.description.utf8.count < 600)
    #expect(certificate.description.contains("…, issuer CN="))
  }
}
