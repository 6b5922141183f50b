// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// Connections that resume earlier ones.
@Suite struct TicketTests {
  private static let client = TLSClientConfiguration.trusting {
    $0.certificate = TLSIdentity(Certificates.client)
  }
  private static let server = TLSServerConfiguration.with {
    $0.clientCertificates = .required(.only(Certificates.authority))
  }

  /// Whether each of some connections, one after the other, was resumed.
  private static func connections(
    _ count: Int, _ world: World, between: @Sendable (Int) async throws -> Void = { _ in }
  ) async throws -> [String] {
    var answers: [String] = []
    for number in 0..<count {
      let answer = try await world.client.request(World.identity, [])
      answers.append(String(decoding: answer, as: UTF8.self))
      try await between(number)
      world.simulation?.network.links.last?.lose()
      try await world.simulation?.sleep(for: .seconds(2))
    }
    return answers
  }

  @Test func `a later connection resumes an earlier one, and knows the client`() async throws {
    let parts = try World.Parts(Self.client, Self.server)
    let (answers, _) = try await World.simulate(parts) { world in
      try await Self.connections(4, world)
    }
    #expect(answers == ["false 2", "true 2", "true 2", "true 2"])
  }

  @Test func `a client or a server may do without tickets`() async throws {
    var client = Self.client
    client.resumes = false
    var server = Self.server
    server.tickets = .none
    for parts in [try World.Parts(client, Self.server), try World.Parts(Self.client, server)] {
      let (answers, _) = try await World.simulate(parts) { world in
        try await Self.connections(2, world)
      }
      #expect(answers == ["false 2", "false 2"])
    }
  }

  @Test func `a ticket is good for one interval at least, and not for three`() async throws {
    var server = Self.server
    server.tickets = .rotating(every: .seconds(600))
    let parts = try World.Parts(Self.client, server)
    let (answers, _) = try await World.simulate(parts) { world in
      try await Self.connections(4, world) { number in
        try await world.simulation?.sleep(for: .seconds(number < 2 ? 590 : 1_500))
      }
    }
    #expect(answers == ["false 2", "true 2", "true 2", "false 2"])
  }

  @Test(arguments: [
    (TLSServerConfiguration.Tickets.rotating(every: .seconds(600)), 500),
    (.keys(.bytes(Array(repeating: 3, count: 80))), 40_000),
  ])
  func `a session ends in time, however often it was resumed`(
    tickets: TLSServerConfiguration.Tickets, pause: Int
  ) async throws {
    var server = Self.server
    server.tickets = tickets
    let parts = try World.Parts(Self.client, server)
    let (answers, _) = try await World.simulate(parts, timeLimit: .seconds(200_000)) { world in
      try await Self.connections(5, world) { number in
        try await world.simulation?.sleep(for: .seconds(number < 3 ? pause : 1))
      }
    }
    // The fourth begins a session of its own, which is resumed.
    #expect(answers == ["false 2", "true 2", "true 2", "false 2", "true 2"])
  }

  @Test func `servers that share keys resume each other's connections`() async throws {
    var server = Self.server
    let keys = (0..<160).map { UInt8($0) }
    server.tickets = .keys(.bytes(keys))
    let client = try ClientSecurity.tls(Self.client)
    // The second server makes its tickets with the other key.
    var other = server
    other.tickets = .keys(.bytes(Array(keys[80...] + keys[..<80])))
    var answers: [String] = []
    for configuration in [server, other] {
      let parts = World.Parts(client, try .tls(configuration))
      answers += try await World.simulate(parts) { world in
        try await Self.connections(1, world)
      }.result
    }
    #expect(answers == ["false 2", "true 2"])
  }

  @Test func `a ticket does not excuse other rules`() async throws {
    let keys = TLSServerConfiguration.Tickets.keys(.bytes(Array(repeating: 3, count: 80)))
    var first = Self.server
    first.tickets = keys
    let client = try ClientSecurity.tls(Self.client)
    _ = try await World.simulate(World.Parts(client, try .tls(first))) { world in
      try await Self.connections(1, world)
    }
    // The same keys, and another authority for clients.
    var second = first
    second.clientCertificates = .required(.only(Certificates.otherAuthority))
    await #expect(throws: LongLinkError.self) {
      _ = try await World.simulate(World.Parts(client, try .tls(second))) { world in
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [])
      }
    }
  }

  @Test func `a client that is revoked meanwhile does not get in with a ticket`() async throws {
    let folder = try Folder()
    @Sendable func revoke(_ serials: [UInt64]) throws -> String {
      try folder.write(
        "revoked.pem",
        CertificateKit.revocations(
          of: serials, by: Certificates.authority, validity: Certificates.validity))
    }
    var configuration = Self.server
    configuration.revocationLists = [.file(try revoke([]))]
    let server = try TLSServer(configuration)
    let parts = World.Parts(try .tls(Self.client), .tls(server))
    _ = try await World.simulate(parts) { world in
      #expect(try await Self.connections(2, world) == ["false 2", "true 2"])
      _ = try revoke([7])
      await server.reload()
      #expect(server.status.reloads == 1)
      world.simulation?.network.links.last?.lose()
      #expect(await Self.failure(world.client) == .certificateRejected)
    }
  }

  @Test func `a server that is not trusted any more is not resumed`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.authority.certificate)
    var client = Self.client
    client.roots = .only(.file(file))
    let parts = World.Parts(try .tls(client), try .tls(Self.server))
    _ = try await World.simulate(parts) { world in
      #expect(try await Self.connections(2, world) == ["false 2", "true 2"])
      try folder.write("roots.pem", Certificates.otherAuthority.certificate)
      try await world.simulation?.sleep(for: .seconds(11))
      world.simulation?.network.links.last?.lose()
      #expect(await Self.failure(world.client) == .unknownAuthority)
    }
  }

  @Test func `a ticket that comes after authorities were replaced is not kept`() async throws {
    let folder = try Folder()
    let file = try folder.write("roots.pem", Certificates.authority.certificate)
    var client = Self.client
    client.roots = .only(.file(file))
    let parts = World.Parts(try .tls(client), try .tls(Self.server))
    // So a ticket, which comes with the welcome, comes 3 s after the connection was begun.
    let slow = LinkConditions(latency: .milliseconds(500) ... .milliseconds(500))
    _ = try await World.simulate(parts, conditions: slow) { world in
      guard let simulation = world.simulation else { return }
      var configuration = parts.client
      configuration.security = parts.clientSecurity
      let loop = simulation.eventLoop(named: "others")
      let (second, third) = (
        try LongLinkClient(configuration, on: loop), try LongLinkClient(configuration, on: loop)
      )
      // Files are looked at when a connection begins, 10 s after they were looked at last.
      try await world.client.connect()
      try await simulation.sleep(for: .seconds(6))
      let connecting = simulation.spawn { try await second.connect() }
      try await simulation.sleep(for: .milliseconds(1_500))
      try folder.write("roots.pem", Certificates.otherAuthority.certificate)
      #expect(await Self.failure(third) == .unknownAuthority)
      try await connecting.value
      try await simulation.sleep(for: .seconds(1))
      #expect(await Self.failure(third) == .unknownAuthority)
      await second.close()
      await third.close()
    }
  }

  @Test func `a server is not resumed after its certificate has expired`() async throws {
    // Simulations begin at 1,767,225,600.
    let brief = Certificates.make(
      .server, ["IP:10.0.0.1"], validity: 1_767_000_000..<1_767_225_700)
    var server = Self.server
    server.certificates = [TLSIdentity(brief)]
    let parts = try World.Parts(Self.client, server)
    _ = try await World.simulate(parts) { world in
      #expect(try await Self.connections(3, world) == ["false 2", "true 2", "true 2"])
      _ = try await world.client.request(World.echo, [])
      try await world.simulation?.sleep(for: .seconds(120))
      world.simulation?.network.links.last?.lose()
      #expect(await Self.failure(world.client) == .expired)
    }
  }

  /// Why no connection can be secured; nil if one can.
  private static func failure(_ client: LongLinkClient) async -> SecurityFailure.Code? {
    do {
      try await client.connect()
      _ = try await client.request(World.echo, [])
      return nil
    } catch {
      return error.securityFailure?.code
    }
  }

  @Test func `a ticket does not outlive the certificate that it stands for`() async throws {
    // Simulations begin at 1,767,225,600.
    let brief = Certificates.make(
      .client, ["DNS:brief", "DNS:short"], validity: 1_767_000_000..<1_767_225_700)
    var client = Self.client
    client.certificate = TLSIdentity(brief)
    let parts = try World.Parts(client, Self.server)
    let (answers, _) = try await World.simulate(parts) { world in
      var answers = try await Self.connections(2, world) { number in
        if number == 1 { try await world.simulation?.sleep(for: .seconds(120)) }
      }
      do {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [])
      } catch let error as LongLinkError {
        answers.append("\(error.securityFailure?.code.description ?? "none")")
      }
      return answers
    }
    #expect(answers == ["false 2", "true 2", "certificateRejected"])
  }

  /// A list that expires a minute after the beginning of a simulation.
  private static let briefList = TLSSource.bytes(
    CertificateKit.revocations(
      of: [], by: Certificates.authority, validity: 1_767_000_000..<1_767_225_660))

  @Test(arguments: [true, false])
  func `a ticket does not outlive the revocation list of either side`(ofServer: Bool) async throws {
    var (client, server) = (Self.client, Self.server)
    if ofServer {
      server.revocationLists = [Self.briefList]
    } else {
      client.revocationLists = [Self.briefList]
    }
    let parts = try World.Parts(client, server)
    let (outcome, _) = try await World.simulate(parts) { world in
      let answers = try await Self.connections(3, world) { number in
        if number == 2 { try await world.simulation?.sleep(for: .seconds(60)) }
      }
      do {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [])
        return (answers, nil as SecurityFailure?)
      } catch let error as LongLinkError {
        return (answers, error.securityFailure)
      }
    }
    #expect(outcome.0 == ["false 2", "true 2", "true 2"])
    #expect(outcome.1?.code == (ofServer ? .certificateRejected : .invalidCertificate))
    if !ofServer { #expect(outcome.1?.detail.contains("has expired") == true) }
  }

  @Test func `the store of tickets is bounded, and gives each once`() {
    var store = TLSTicketStore()
    for number in 0..<200 {
      for ticket in 0..<6 {
        store.add(
          TLSTicketStore.Ticket(session: [UInt8(number), UInt8(ticket)], expiry: 100),
          for: "server \(number)")
      }
    }
    #expect(store.take("server 0", at: 0) == nil)
    let newest = (0..<5).map { _ in store.take("server 199", at: 0)?.session }
    #expect(newest == [[199, 5], [199, 4], [199, 3], [199, 2], nil])
    #expect(store.take("server 198", at: 100) == nil)
    #expect(store.take("server 150", at: 99) != nil)
    #expect(store.take("server 120", at: 0) == nil)
  }

  @Test func `keys of tickets are checked`() throws {
    for count in [0, 79, 81, 17 * 80] {
      let configuration = TLSServerConfiguration.with {
        $0.tickets = .keys(.bytes(Array(repeating: 1, count: count)))
      }
      let error = #expect(throws: LongLinkError.self) { try ServerSecurity.tls(configuration) }
      #expect(error?.field == "security.tickets")
    }
  }
}
