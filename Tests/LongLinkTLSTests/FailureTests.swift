// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Testing

/// What a client is told when a connection cannot be secured.
@Suite struct FailureTests {
  /// A client and a server that do not get on, and the code that the client has to get.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: SecurityFailure.Code
    var client = TLSClientConfiguration.trusting()
    var server = TLSServerConfiguration.with()
    /// Whether the failure has the server's certificate.
    var showsCertificate = true

    init(
      _ name: String, _ code: SecurityFailure.Code,
      client: TLSClientConfiguration = .trusting(), server: TLSServerConfiguration = .with(),
      showsCertificate: Bool = true
    ) {
      testDescription = name
      self.code = code
      self.client = client
      self.server = server
      self.showsCertificate = showsCertificate
    }
  }

  /// A simulation begins with the year 2026.
  private static let past = Int64(1_700_000_000)..<1_760_000_000
  private static let future = Int64(1_800_000_000)..<2_500_000_000
  private static let good = ["IP:10.0.0.1"]
  private static let other = Certificates.otherAuthority

  private static func required(_ authority: CertificatePair) -> TLSServerConfiguration {
    .with { $0.clientCertificates = .required(.only(authority)) }
  }

  private static func showing(_ pair: CertificatePair?) -> TLSClientConfiguration {
    .trusting { $0.certificate = pair.map { TLSIdentity($0) } }
  }

  private static func lists(_ serials: [UInt64], by authority: CertificatePair) -> [TLSSource] {
    [
      .bytes(
        CertificateKit.revocations(of: serials, by: authority, validity: Certificates.validity))
    ]
  }

  static let ofServers: [Case] = [
    Case(
      "another name", .nameMismatch,
      server: .with(Certificates.make(.server, ["DNS:other.test"]))),
    Case(
      "another address", .nameMismatch,
      server: .with(Certificates.make(.server, ["IP:10.0.0.2", "DNS:10.0.0.1"]))),
    Case(
      "a name that is no alternative name", .nameMismatch,
      client: .trusting { $0.serverName = "server.test" },
      server: .with(
        CertificateKit.make(
          CertificateRequest(
            name: "server.test", purpose: .server, serial: 5, validity: Certificates.validity),
          issuer: Certificates.authority))),
    Case(
      "a name in part of a label", .nameMismatch,
      client: .trusting { $0.serverName = "ab.server.test" },
      server: .with(Certificates.make(.server, ["DNS:a*.server.test"]))),
    Case(
      "an expired certificate", .expired,
      server: .with(Certificates.make(.server, good, validity: past))),
    Case(
      "a certificate of the future", .notYetValid,
      server: .with(Certificates.make(.server, good, validity: future))),
    Case(
      "an unknown authority", .unknownAuthority,
      server: .with(Certificates.make(.server, good, issuer: other))),
    Case(
      "an authority that the system does not trust", .unknownAuthority,
      client: .trusting { $0.roots = .system }),
    Case(
      "an authority that neither the system nor the list trusts", .unknownAuthority,
      client: .trusting { $0.roots = .systemAnd(.bytes(other.certificate)) }),
    Case(
      "a certificate signed by itself", .selfSigned,
      server: .with(Certificates.make(.server, good, issuer: nil))),
    Case(
      "a client's certificate", .wrongPurpose,
      server: .with(Certificates.make(.client, good))),
    Case(
      "a certificate for mail", .wrongPurpose,
      server: .with(Certificates.make(.mail, good))),
    Case(
      "a revoked certificate", .revoked,
      client: .trusting { $0.revocationLists = lists([2], by: Certificates.authority) }),
    Case(
      "no list of the authority", .invalidCertificate,
      client: .trusting { $0.revocationLists = lists([2], by: other) }),
    Case(
      "an expired list", .invalidCertificate,
      client: .trusting {
        $0.revocationLists = [
          .bytes(
            CertificateKit.revocations(of: [], by: Certificates.authority, validity: past))
        ]
      }),
  ]

  static let ofClients: [Case] = [
    Case(
      "no certificate", .clientCertificateRequired, server: required(Certificates.authority),
      showsCertificate: false),
    Case(
      "an unknown authority", .certificateRejected, client: showing(Certificates.client),
      server: required(other), showsCertificate: false),
    Case(
      "an unknown authority of what was only requested", .certificateRejected,
      client: showing(Certificates.client),
      server: .with { $0.clientCertificates = .requested(.only(other)) }, showsCertificate: false),
    Case(
      "an expired certificate", .certificateRejected,
      client: showing(Certificates.make(.client, ["DNS:c"], validity: past)),
      server: required(Certificates.authority), showsCertificate: false),
    Case(
      "a server's certificate", .certificateRejected,
      client: showing(Certificates.make(.server, ["DNS:c"])),
      server: required(Certificates.authority), showsCertificate: false),
    Case(
      "a revoked certificate", .certificateRejected, client: showing(Certificates.client),
      server: .with {
        $0.clientCertificates = .required(.only(Certificates.authority))
        $0.revocationLists = lists([7], by: Certificates.authority)
      }, showsCertificate: false),
  ]

  /// The error of a request that cannot be sent.
  private func failure(_ parts: World.Parts) async throws -> LongLinkError {
    let (error, simulation) = try await World.simulate(parts) { world in
      do {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [1])
      } catch let error as LongLinkError {
        return error
      }
      throw Unexpected()
    }
    #expect(simulation.openStreams == [])
    return error
  }

  private struct Unexpected: Error {}

  @Test(arguments: ofServers) func `a server's wrong certificate has its code`(
    wrong: Case
  ) async throws {
    let error = try await failure(try World.Parts(wrong.client, wrong.server))
    #expect(error.code == .securityFailed)
    #expect(error.delivery == .notSent)
    #expect(error.securityFailure?.code == wrong.code)
    #expect(error.securityFailure?.certificate?.sha256.count == 32)
    #expect(error.description.contains(error.securityFailure?.detail ?? "nothing"))
  }

  @Test(arguments: ofClients) func `a client is told why its certificate is refused`(
    wrong: Case
  ) async throws {
    let error = try await failure(try World.Parts(wrong.client, wrong.server))
    // In TLS 1.3 the client's handshake is over before the server has seen its certificate. But no
    // request is sent before the server's welcome, which never comes.
    #expect(error.delivery == .notSent)
    #expect(error.securityFailure?.code == wrong.code, "\(error)")
    #expect(error.securityFailure?.certificate == nil)
  }

  @Test(arguments: ofClients) func `a request of a client that is refused was not sent`(
    wrong: Case
  ) async throws {
    let parts = try World.Parts(wrong.client, wrong.server)
    let (outcome, _) = try await World.simulate(parts) { world in
      let error = await #expect(throws: LongLinkError.self) {
        try await world.client.request(
          World.echo, [1], options: RequestOptions(retry: .idempotent))
      }
      return error
    }
    #expect(outcome?.code == .deadlineExceeded)
    #expect(outcome?.delivery == .notSent)
    #expect(outcome?.securityFailure?.code == wrong.code)
  }

  @Test func `a name in the wrong place is named as such`() async throws {
    for (names, text) in [
      (["DNS:10.0.0.1"], "names 10.0.0.1 as a DNS name, not as an IP address"),
      ([], "has only a common name, which is ignored; add 10.0.0.1 to its subject alternative"),
    ] {
      let server = TLSServerConfiguration.with(Certificates.make(.server, names))
      let error = try await failure(try World.Parts(.trusting(), server))
      #expect(error.securityFailure?.code == .nameMismatch)
      #expect(error.detail.contains(text), "\(error)")
    }
  }

  @Test func `a name mismatch tells the names of the certificate`() async throws {
    let server = TLSServerConfiguration.with(
      Certificates.make(.server, ["DNS:other.test", "IP:10.0.0.9"]))
    let error = try await failure(try World.Parts(.trusting(), server))
    #expect(error.detail.contains("is for other.test, 10.0.0.9, and not for 10.0.0.1"))
    #expect(
      error.securityFailure?.certificate?.names == [.dns("other.test"), .address("10.0.0.9")])
  }

  @Test func `a plain server is told apart from a broken one`() async throws {
    let error = try await failure(World.Parts(try .tls(.trusting()), nil))
    #expect(error.securityFailure?.code == .plainPeer)
    #expect(error.delivery == .notSent)
    #expect(
      error.detail
        == "the server does not speak TLS; connect without `security`, or to another port")
  }

  @Test func `a plain client learns that the server speaks TLS`() async throws {
    let error = try await failure(World.Parts(nil, try .tls(.with())))
    #expect(error.closeReason == .securityFailed(.securePeer))
    #expect(error.delivery == .notSent)
    #expect(
      error.detail.hasSuffix(
        """
        the server speaks TLS, and this client does not: set `security`, or connect to another port
        """))
  }

  @Test func `requests do not wait where all servers speak TLS and the client does not`()
    async throws
  {
    var parts = World.Parts(nil, try .tls(.with()))
    parts.client.timeouts.request = .seconds(3600)
    _ = try await World.simulate(parts) { world in
      let simulation = world.simulation!
      let begin = simulation.now
      // The first waits for the attempt; the second comes when its failure is known.
      for _ in 0..<2 {
        let error = await #expect(throws: LongLinkError.self) {
          try await world.client.request(World.echo, [1])
        }
        #expect(error?.code == .securityFailed && error?.delivery == .notSent)
        #expect(error?.securityFailure?.code == .securePeer)
      }
      #expect(begin.duration(to: simulation.now) < .seconds(1))
      // The client goes on trying, and finds the server that replaces this one.
      await world.server.shutDown(within: .zero)
      let server = try World.makeServer(
        World.Parts(nil, nil), on: [simulation.eventLoop(named: "server 2")])
      try await server.start()
      for await state in world.client.states() where state.isConnected { break }
      #expect(try await world.client.request(World.echo, [2]) == [2])
      await server.shutDown(within: .zero)
    }
  }

  @Test func `requests wait for another address of a server, though one speaks TLS`()
    async throws
  {
    var parts = World.Parts(nil, try .tls(.with()))
    parts.client.servers = [ServerEntry(.host("pair.test", port: 7_000))]
    _ = try await World.simulate(parts) { world in
      // Nothing listens at the first, for now.
      world.simulation!.network.host(
        "pair.test", addresses: [.ipv4(10, 0, 0, 9, port: 0), .ipv4(10, 0, 0, 1, port: 0)])
      let error = await #expect(throws: LongLinkError.self) {
        try await world.client.request(World.echo, [1])
      }
      #expect(error?.code == .deadlineExceeded && error?.delivery == .notSent)
      #expect(error?.securityFailure?.code == .securePeer)
    }
  }

  @Test func `requests wait for another server that does not speak TLS`() async throws {
    var parts = World.Parts(nil, try .tls(.with()))
    parts.client.servers.append(ServerEntry(.host("10.0.0.1", port: 7_001), priority: 1))
    _ = try await World.simulate(parts) { world in
      var plain = World.Parts(nil, nil)
      plain.server.listen = [.host("10.0.0.1", port: 7_001)]
      let server = try World.makeServer(
        plain, on: [world.simulation!.eventLoop(named: "server 2")])
      try await server.start()
      #expect(try await world.client.request(World.echo, [2]) == [2])
      await server.shutDown(within: .zero)
    }
  }

  @Test func `a request that waits for a connection is told why none could be secured`()
    async throws
  {
    let parts = try World.Parts(.trusting(Self.other))
    _ = try await World.simulate(parts) { world in
      let error = await #expect(throws: LongLinkError.self) {
        try await world.client.request(World.echo, [1])
      }
      #expect(error?.code == .deadlineExceeded && error?.delivery == .notSent)
      #expect(error?.securityFailure?.code == .unknownAuthority)
    }
  }
}
