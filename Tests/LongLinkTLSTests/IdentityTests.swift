// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Synchronization
import Testing

/// Who the two sides prove to be.
@Suite struct IdentityTests {
  @Test func `a handler sees the names of a verified client`() async throws {
    let client = TLSClientConfiguration.trusting {
      $0.certificate = TLSIdentity(Certificates.client)
    }
    let server = TLSServerConfiguration.with {
      $0.clientCertificates = .required(.only(Certificates.authority))
    }
    let (text, _) = try await World.simulate(try World.Parts(client, server)) { world in
      String(decoding: try await world.client.request(World.identity, []), as: UTF8.self)
    }
    #expect(text == "false 2")
  }

  @Test func `authorities can be trusted besides those of the system`() async throws {
    let roots = TLSRoots.systemAnd(.bytes(Certificates.authority.certificate))
    #expect(roots.usesSystem)
    let parts = try World.Parts(.trusting { $0.roots = roots })
    let (echo, _) = try await World.simulate(parts) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(echo == [1])
  }

  @Test(arguments: [true, false])
  func `a client may have a certificate where it is only requested`(has: Bool) async throws {
    let client = TLSClientConfiguration.trusting {
      $0.certificate = has ? TLSIdentity(Certificates.client) : nil
    }
    let server = TLSServerConfiguration.with {
      $0.clientCertificates = .requested(.only(Certificates.authority))
    }
    let (text, _) = try await World.simulate(try World.Parts(client, server)) { world in
      String(decoding: try await world.client.request(World.identity, []), as: UTF8.self)
    }
    #expect(text == (has ? "false 2" : "false 0"))
  }

  @Test(arguments: [
    ("one.test", "one"), ("two.test", "two"), ("x.two.test", "wild"), ("deep.x.two.test", "one"),
    ("exact.two.test", "exact"), ("ONE.test", "one"),
  ])
  func `the name that a client asks for picks the certificate`(
    name: String, expected: String
  ) async throws {
    let names = [
      "one": "one.test", "two": "two.test", "wild": "*.two.test", "exact": "exact.two.test",
    ]
    var server = TLSServerConfiguration(certificates: [])
    for key in ["one", "two", "wild", "exact"] {
      server.certificates.append(
        TLSIdentity(Certificates.make(.server, ["DNS:\(names[key] ?? "")"])))
    }
    // Pins that nothing matches tell which certificate came.
    let shown = Mutex<[String]>([])
    let client = TLSClientConfiguration.trusting {
      $0.serverName = name
      $0.pins = TLSPins([Pins.none, Pins.other]) { failure in
        shown.withLock { $0.append("\(failure.certificate?.names ?? [])") }
      }
    }
    let parts = try World.Parts(client, server)
    do {
      _ = try await World.simulate(parts) { world in
        try await world.client.connect()
        return try await world.client.request(World.echo, [1])
      }
      #expect(shown.withLock { $0 }.first == "[DNS:\(names[expected] ?? "")]")
    } catch let error as LongLinkError {
      // The default is for another name.
      #expect(expected == "one" && name == "deep.x.two.test")
      #expect(error.securityFailure?.code == .nameMismatch)
    }
  }

  @Test func `a common name picks no certificate`() async throws {
    let common = CertificateKit.make(
      CertificateRequest(
        name: "both.test", purpose: .server, serial: 5, validity: Certificates.validity),
      issuer: Certificates.authority)
    let server = TLSServerConfiguration(certificates: [
      TLSIdentity(Certificates.server), TLSIdentity(common),
      TLSIdentity(Certificates.make(.server, ["DNS:both.test"])),
    ])
    let client = TLSClientConfiguration.trusting { $0.serverName = "both.test" }
    let (answer, _) = try await World.simulate(try World.Parts(client, server)) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
  }

  @Test func `an encrypted key needs its password`() async throws {
    let pair = Certificates.make(.server, ["IP:10.0.0.1"], password: "open sesame")
    var server = TLSServerConfiguration(certificates: [TLSIdentity(pair, password: "open sesame")])
    let parts = try World.Parts(.trusting(), server)
    let (answer, _) = try await World.simulate(parts) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
    for (password, text) in [
      (nil, "the key has a password, and none is set"),
      ("wrong", "the key has another password than the one that is set"),
      ("", "the key has another password than the one that is set"),
    ] {
      server.certificates = [TLSIdentity(pair, password: password)]
      let error = #expect(throws: LongLinkError.self) { try ServerSecurity.tls(server) }
      #expect(error?.field == "security.certificates[0].key")
      #expect(error?.detail.hasSuffix(text) == true, "\(String(describing: error))")
    }
  }

  @Test(arguments: [CertificateRequest.KeyKind.p256, .rsa])
  func `other kinds of keys work too`(kind: CertificateRequest.KeyKind) async throws {
    let server = TLSServerConfiguration.with(
      Certificates.make(.server, ["IP:10.0.0.1"], keyKind: kind))
    let (answer, _) = try await World.simulate(try World.Parts(.trusting(), server)) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
  }

  @Test func `a chain goes over an intermediate authority`() async throws {
    let middle = CertificateKit.make(
      CertificateRequest(
        name: "Middle", isAuthority: true, serial: 9, validity: Certificates.validity),
      issuer: Certificates.authority)
    var leaf = Certificates.make(.server, ["IP:10.0.0.1"], issuer: middle)
    leaf.certificate += middle.certificate
    let parts = try World.Parts(.trusting(), .with(leaf))
    let (answer, _) = try await World.simulate(parts) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
  }

  @Test func `a certificate that is no authority's may be trusted itself`() async throws {
    for issuer in [nil, Certificates.otherAuthority] {
      let pair = Certificates.make(.server, ["IP:10.0.0.1"], issuer: issuer)
      let parts = try World.Parts(.trusting(pair), .with(pair))
      let (answer, _) = try await World.simulate(parts) { world in
        try await world.client.request(World.echo, [1])
      }
      #expect(answer == [1])
    }
  }

  @Test func `a chain has eight intermediate authorities at most`() async throws {
    var codes: [SecurityFailure.Code?] = []
    for count in [8, 9] {
      var (issuer, chain) = (Certificates.authority, [UInt8]())
      for number in 0..<count {
        issuer = CertificateKit.make(
          CertificateRequest(
            name: "Middle \(number)", isAuthority: true, serial: UInt64(10 + number),
            validity: Certificates.validity), issuer: issuer)
        chain = issuer.certificate + chain
      }
      var leaf = Certificates.make(.server, ["IP:10.0.0.1"], issuer: issuer)
      leaf.certificate += chain
      let parts = try World.Parts(.trusting(), .with(leaf))
      let (code, _) = try await World.simulate(parts) { world in
        do {
          try await world.client.connect()
        } catch let error as LongLinkError {
          return error.securityFailure?.code
        }
        return nil
      }
      codes.append(code)
    }
    #expect(codes.first == .some(nil))
    #expect(codes.last != .some(nil))
  }

  @Test func `insecure takes any certificate`() async throws {
    var client = TLSClientConfiguration()
    client.verification = .insecure
    let server = TLSServerConfiguration.with(Certificates.make(.mail, ["DNS:x"], issuer: nil))
    let (answer, _) = try await World.simulate(try World.Parts(client, server)) { world in
      try await world.client.request(World.echo, [1])
    }
    #expect(answer == [1])
  }
}
