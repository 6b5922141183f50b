// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import LongLinkTransport
import Testing

/// Machines whose calendars are wrong, and tickets that a server does not take.
@Suite struct CalendarTests {
  private static let years = Duration.seconds(365 * 86_400)

  /// What a client is told whose calendar, or whose server's, is wrong.
  private func code(
    client: Duration = .zero, server: Duration = .zero
  ) async throws -> SecurityFailure.Code? {
    let parts = try World.Parts(
      .trusting { $0.certificate = TLSIdentity(Certificates.client) },
      .with { $0.clientCertificates = .required(.only(Certificates.authority)) })
    return try await World.simulate(parts) { world in
      world.simulation?.machine(of: world.client.loop).calendarOffset = client
      world.serverMachine?.calendarOffset = server
      do throws(LongLinkError) {
        try await world.client.connect()
        _ = try await world.client.request(World.echo, [])
        return nil
      } catch {
        return error.securityFailure?.code
      }
    }.result
  }

  @Test func `certificates are judged by the calendar of each machine`() async throws {
    #expect(try await code() == nil)
    #expect(try await code(client: Self.years * 10) == nil)
    #expect(try await code(client: Self.years * 30) == .expired)
    #expect(try await code(client: Self.years * -10) == .notYetValid)
    // The server does not take the client's certificate, and says so.
    #expect(try await code(server: Self.years * 30) == .certificateRejected)
    #expect(try await code(server: Self.years * -10) == .certificateRejected)
  }

  @Test func `a simulation takes the date of its certificates`() async throws {
    // Valid from 2027-01-15 on; a simulation begins a year earlier.
    let validity: Range<Int64> = 1_800_000_000..<1_800_086_400
    let files = CertificateFiles(serverNames: ["IP:10.0.0.1"], serial: 1, validity: validity)
    let dates: [(Int64?, SecurityFailure.Code?)] = [
      (nil, .notYetValid), (validity.lowerBound, nil), (validity.upperBound + 1, .expired),
    ]
    for (date, code) in dates {
      let simulation = Simulation(seed: 1)
      #expect(simulation.calendar == 1_767_225_600)
      try await simulation.run {
        try await simulation.sleep(for: .seconds(60))
        if let date { simulation.calendar = date }
        let server = try await SimulatedServer.start(
          on: simulation.eventLoop(named: "server"), at: .ipv4(10, 0, 0, 1, port: 7_000),
          security: .tls(.with(files.server)))
        let security = try ClientSecurity.tls(.trusting(files.authority))
        do {
          let client = try await SimulatedClient.connect(
            to: server.address, on: simulation.mainLoop, security: security)
          try await client.sayHello()
          #expect(code == nil)
          let issuer = client.security?.peerCertificate?.issuer
          #expect(issuer?.contains("LongLink trial authority 00000001") == true)
          client.close()
        } catch let error as SocketError {
          #expect(error.errno == EPROTO && error.securityFailure?.code == code)
          #expect(error.description.contains(error.securityFailure?.detail ?? "no detail"))
        }
        try await simulation.sleep(for: .seconds(30))
        if let date { #expect((date + 30...date + 40).contains(simulation.calendar)) }
        await server.stop()
      }
    }
  }

  @Test func `a calendar that is set right lets a client in`() async throws {
    let parts = try World.Parts()
    let (codes, _) = try await World.simulate(parts) { world in
      guard let simulation = world.simulation else { return [] as [String] }
      let machine = simulation.machine(of: world.client.loop)
      machine.calendarOffset = Self.years * 30
      let request = simulation.spawn {
        try await world.client.request(
          World.echo, [1], options: RequestOptions(timeout: .seconds(120), waitsForConnection: true)
        )
      }
      try await simulation.sleep(for: .seconds(20))
      let connections = await world.server.counters().openConnections
      machine.calendarOffset = .zero
      return ["\(connections)", "\(try await request.value)"]
    }
    #expect(codes == ["0", "[1]"])
  }

  @Test func `a server that has lost its ticket keys takes a full handshake`() async throws {
    let keys = { @Sendable (byte: UInt8) -> TLSServerConfiguration in
      .with { $0.tickets = .keys(.bytes(Array(repeating: byte, count: 80))) }
    }
    let client = try ClientSecurity.tls(.trusting())
    let simulation = Simulation(seed: 3)
    let resumed = try await simulation.run {
      var resumed: [Bool?] = []
      // The same keys, other ones, and these again.
      for (start, byte) in [1, 1, 2, 2].enumerated() {
        let server = try await SimulatedServer.start(
          on: simulation.eventLoop(named: "server-\(start)"),
          at: .ipv4(10, 0, 0, 1, port: 7_000), security: .tls(keys(UInt8(byte))))
        let peer = try await SimulatedClient.connect(
          to: server.address, on: simulation.mainLoop, security: client)
        try await peer.sayHello()
        resumed.append(peer.security?.isResumed)
        peer.close()
        try await server.waitForEndings(1)
        await server.stop()
        try await simulation.sleep(for: .seconds(10))
      }
      return resumed
    }
    #expect(resumed == [false, true, false, true])
    #expect(simulation.openStreams == [])
  }
}
