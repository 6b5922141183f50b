// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTesting
import Testing

@testable import LongLinkTLS
@_spi(Loop) @testable import LongLinkTransport

/// What a ticket must not get around.
@Suite struct ResumptionTests {
  private static let keys = TLSServerConfiguration.Tickets.keys(
    .bytes(Array(repeating: 3, count: 80)))

  private static func server(_ names: [String]) throws -> TLSServer {
    try TLSServer(.with(Certificates.make(.server, names)) { $0.tickets = keys })
  }

  @Test func `a ticket of one name is never offered to another`() async throws {
    // Two servers that share keys: each could resume a session of the other.
    let servers = try ["a.test", "b.test"].map { try Self.server(["DNS:\($0)"]) }
    let client = try TLSClient(.trusting())
    try await Stage.run { loop in
      func connect(_ host: String, _ server: TLSServer) throws -> String {
        let stage = ClientStage(on: loop, client, server, host: host)
        guard stage.shakeHands() else {
          defer { stage.close() }
          return stage.stream.securityFailure?.code.description ?? "none"
        }
        let isResumed = stage.stream.security?.isResumed
        try stage.finish()
        return isResumed == true ? "resumed" : "new"
      }
      var outcomes = [try connect("a.test", servers[0])]
      // Somebody leads the client to the first server, which has no certificate for this name.
      outcomes.append(try connect("b.test", servers[0]))
      outcomes.append(try connect("a.test", servers[0]))
      outcomes.append(try connect("b.test", servers[1]))
      #expect(outcomes == ["new", "nameMismatch", "resumed", "new"])
    }
  }

  @Test func `a client forgets its tickets when its files change`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.authority.certificate)
    var client = TLSClientConfiguration()
    client.roots = .only(.file(file))
    let parts = World.Parts(try .tls(client), try .tls(.with()))
    _ = try await World.simulate(parts) { world in
      for expected in ["false 0", "true 0"] {
        let answer = try await world.client.request(World.identity, [])
        #expect(String(decoding: answer, as: UTF8.self) == expected)
        if expected == "true 0" {
          try folder.write("roots.pem", Certificates.otherAuthority.certificate)
          try await world.simulation?.sleep(for: .seconds(15))
        }
        world.simulation?.network.links.last?.lose()
        try await world.simulation?.sleep(for: .seconds(2))
      }
      // The first connection after the change looks at the files, and may be made before.
      world.simulation?.network.links.last?.lose()
      try await world.simulation?.sleep(for: .seconds(2))
      let error = await #expect(throws: LongLinkError.self) {
        try await world.client.connect()
        _ = try await world.client.request(World.identity, [])
      }
      #expect(error?.securityFailure?.code == .unknownAuthority)
    }
  }

  @Test func `a ticket that comes by a connection with former files is of no use`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.authority.certificate)
    var configuration = TLSClientConfiguration()
    configuration.roots = .only(.file(file))
    let client = try TLSClient(configuration)
    let server = try Self.server(["DNS:server.test"])
    let simulation = Simulation()
    try await simulation.run {
      let loop = simulation.eventLoop(named: "client")
      // It stands before the files change, and gets its tickets afterwards.
      let standing = await loop.run {
        let stage = ClientStage(on: loop, client, server)
        #expect(stage.shakeHands())
        return LoopBound(stage, on: loop)
      }
      try folder.write("roots.pem", Certificates.otherAuthority.certificate)
      try await simulation.sleep(for: .seconds(15))
      await loop.run { ClientStage(on: loop, client, server).close() }
      try await simulation.sleep(for: .seconds(1))
      try await loop.run { Result { try standing.value.finish() } }.get()
      let code = await loop.run {
        let stage = ClientStage(on: loop, client, server)
        stage.shakeHands()
        let code = stage.stream.securityFailure?.code
        stage.close()
        return code
      }
      #expect(code == .unknownAuthority)
      try await simulation.sleep(for: .seconds(10))
    }
  }

  @Test func `a ticket does not outlive the server's certificate`() async throws {
    // Simulations begin at 1,767,225,600.
    let brief = Certificates.make(
      .server, ["IP:10.0.0.1"], validity: 1_767_000_000..<1_767_225_660)
    let parts = try World.Parts(.trusting(), .with(brief))
    _ = try await World.simulate(parts) { world in
      for expected in ["false 0", "true 0"] {
        let answer = try await world.client.request(World.identity, [])
        #expect(String(decoding: answer, as: UTF8.self) == expected)
        world.simulation?.network.links.last?.lose()
        try await world.simulation?.sleep(for: .seconds(2))
      }
      try await world.simulation?.sleep(for: .seconds(60))
      world.simulation?.network.links.last?.lose()
      try await world.simulation?.sleep(for: .seconds(2))
      let error = await #expect(throws: LongLinkError.self) {
        try await world.client.connect()
        _ = try await world.client.request(World.identity, [])
      }
      #expect(error?.securityFailure?.code == .expired)
    }
  }

  @Test func `a ticket does not get around a new revocation list`() async throws {
    let client = try ClientSecurity.tls(
      .trusting { $0.certificate = TLSIdentity(Certificates.client) })
    // The second server revokes the client's certificate, which has this number.
    for (revoked, isFine) in [([], true), ([7], false)] as [([UInt64], Bool)] {
      let server = TLSServerConfiguration.with {
        $0.clientCertificates = .required(.only(Certificates.authority))
        $0.tickets = Self.keys
        $0.revocationLists = [
          .bytes(
            CertificateKit.revocations(
              of: revoked, by: Certificates.authority, validity: Certificates.validity))
        ]
      }
      let (code, _) = try await World.simulate(World.Parts(client, try .tls(server))) { world in
        do {
          try await world.client.connect()
          _ = try await world.client.request(World.echo, [])
        } catch let error as LongLinkError {
          return error.securityFailure?.code
        }
        return nil
      }
      #expect(code == (isFine ? nil : .certificateRejected))
    }
  }
}
