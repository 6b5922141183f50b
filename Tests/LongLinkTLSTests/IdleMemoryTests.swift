// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Testing

@testable import LongLinkTLS
@_spi(Loop) @testable import LongLinkTransport

/// What OpenSSL holds for connections that idle, in bytes, counted exactly.
@Suite struct IdleMemoryTests {
  /// Whether clients show a certificate, too.
  enum Identities: String, Sendable, CaseIterable, Codable {
    case server
    case both
  }

  /// A server and two clients that have chains of three certificates, the authority's too.
  private static func sides(_ identities: Identities) throws -> (TLSServer, [TLSClient]) {
    let middle = CertificateKit.make(
      CertificateRequest(
        name: "Middle", isAuthority: true, serial: 9, validity: Certificates.validity),
      issuer: Certificates.authority)
    func identity(_ purpose: CertificateRequest.Purpose) -> TLSIdentity {
      var pair = Certificates.make(purpose, ["DNS:server.test"], issuer: middle, keyKind: .p256)
      pair.certificate += middle.certificate + Certificates.authority.certificate
      return TLSIdentity(pair)
    }
    var server = TLSServerConfiguration(certificates: [identity(.server)])
    if identities == .both { server.clientCertificates = .required(.only(Certificates.authority)) }
    let client = TLSClientConfiguration.trusting {
      $0.certificate = identities == .both ? identity(.client) : nil
    }
    return (try TLSServer(server), [try TLSClient(client), try TLSClient(client)])
  }

  /// Prints what each side of a connection holds after its first bytes, which came with tickets.
  private static func measure(_ identities: Identities) async throws {
    OpenSSLMemory.count()
    let (server, clients) = try sides(identities)
    let lines = try await Stage.run { loop in
      func open(_ client: TLSClient) throws -> ClientStage {
        let stage = ClientStage(on: loop, client, server)
        precondition(stage.shakeHands(), "\(identities): no handshake")
        try stage.speak()
        return stage
      }
      // What the first one leaves behind is not for each. Its client has tickets then.
      try open(clients[0]).close()
      return try clients.map { client in
        let before = OpenSSLMemory.held
        let stage = try open(client)
        let security = stage.stream.layer?.security
        precondition(security?.isResumed == (client === clients[0]))
        precondition(security?.peerCertificate?.names == [.dns("server.test")])
        let open = OpenSSLMemory.held
        stage.closeServer()
        let alone = OpenSSLMemory.held
        stage.close()
        return "HELD \(alone - before) \(open - alone)"
      }
    }
    print(lines.joined(separator: "\n"))
  }

  /// The goal is 24 KiB of each process's memory, of which LongLink, and what the allocator adds to
  /// each piece, take 2 to 3.
  @Test(arguments: Identities.allCases)
  func `an idle connection has no buffers of OpenSSL and no chain of its peer`(
    identities: Identities
  ) async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardOutputContent]
    ) { [identities] in
      try await IdleMemoryTests.measure(identities)
    }
    let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
    let lines = output.split(separator: "\n").filter { $0.hasPrefix("HELD ") }
    try #require(lines.count == 2)
    for line in lines {
      print("OpenSSL, with certificates of \(identities.rawValue):", line)
      let numbers = line.split(separator: " ").compactMap { Int($0) }
      try #require(numbers.count == 2)
      // Each buffer of OpenSSL is 16.5 KiB, the rest of these chains 3.3.
      #expect(numbers[0] <= 20 * 1_024, "client")
      #expect(numbers[1] <= (identities == .both ? 20 : 15) * 1_024, "server")
      #expect(numbers.allSatisfy { $0 > 8 * 1_024 })
    }
  }
}
