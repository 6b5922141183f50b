// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing
import LongLinkDialects

/// What damage comes to in a dialect, and what a configuration may not say.
@Suite struct DialectDamageTests {
  @Test(
    arguments: TestEnvironment.allCases,
    [FrameLayout.Delimiter.Inside.escaped(0x5C), .lengthChecked])
  func `a damaged packet between delimiters is dropped, and the link stays`(
    _ environment: TestEnvironment, _ inside: FrameLayout.Delimiter.Inside
  ) async throws {
    try await Stage.run(environment) { stage in
      // The server sends no pings, which a slow machine must not miss.
      let description = try FrameDialect.lines(inside: inside).with(
        heartbeat: FrameDialect.HeartbeatFrames(
          server: FrameDialect.Ping(type: 1, serials: 1...9), interval: .seconds(3_600)))
      let (server, client) = try await stage.scripted(description)
      server.on(0x500, .corruptChecksum([1, 2, 3]))
      server.on(0x501) { .reply($0.body) }
      let events = Tally<Violation.Rule>()
      client.observeLinks { _, event in
        if case .damaged(_, let violation) = event { events.add(violation.rule) }
      }
      let lost = client.submit(0x500, [1])
      try await server.waitForRequest(of: 0x500)
      await events.reached(1)
      #expect(events.elements == [.checksumMismatch])
      #expect(try await client.request(0x501, [7]) == [7])
      // Garbage, and a delimiter: what follows is found.
      server.send(bytes: Array("garbage\r\nmore of it".utf8) + [0x0D, 0x0A])
      #expect(try await client.request(0x501, [8]) == [8])
      #expect(try await client.request(0x501, [9]) == [9])
      let counters = await client.counters()
      #expect(counters.connections.damagedPackets == 2)
      #expect(counters.connects == 1)
      lost.cancel()
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server drops what is damaged, too`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let description = try FrameDialect.lines()
      let server = try await stage.serve {
        $0.route(0x500) { request in request.body }
      } configure: {
        $0.dialect = .custom(description)
      }
      let address = server.addresses[0]
      let client = try await SimulatedClient.connect(to: address, on: stage.clientLoop)
      // Type 0x500, serial 11, no body: constant, type, serial, Adler-32.
      let frame: [UInt8] = [
        0xAB, 0xCD, 0x05, 0x00, 0, 0, 0, 11, 0x0B, 0x24, 0x01, 0x89, 0x0D, 0x0A, 0x0D, 0x0A,
      ]
      var damaged = frame
      damaged[7] = 12
      client.send(bytes: damaged + frame)
      try await stage.until { await server.counters().connections.handled == 1 }
      #expect(await server.counters().connections.damagedPackets == 1)
      #expect(await server.counters().openConnections == 1)
      client.close()
    }
  }

  @Test func `a packet that does not end is given up in time`() async throws {
    try await Stage.simulate { stage, simulation in
      let description = try FrameDialect.lines()
      let (server, client) = try await stage.scripted(description) {
        $0.timeouts.frame = .seconds(5)
      }
      server.on(0x500) { .reply($0.body) }
      #expect(try await client.request(0x500, [1]) == [1])
      server.send(bytes: [0xAB, 0xCD, 0, 2, 0, 0])
      try await simulation.sleep(for: .milliseconds(5_100))
      #expect(await client.counters().connections.damagedPackets == 1)
      // The rest of it, and then the next one.
      server.send(bytes: [0, 0, 0, 200, 1, 2, 3, 4, 0x0D, 0x0A, 5, 0x0D, 0x0A])
      #expect(try await client.request(0x500, [2]) == [2])
      #expect(await client.counters().connects == 1)
      await server.stop()
    }
  }

  @Test(arguments: TestEnvironment.allCases, [Spoken.guarded, .small])
  func `without delimiters damage ends the connection`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(spoken)
      server.on(spoken.echo, [.corruptChecksum([1]), .reply([2])])
      let error = try await failure { try await client.request(spoken.echo, [1]) }
      #expect(error.code == .corrupted && error.delivery == .sent)
      // There is no word for it: the connection just ends.
      let ending = try await server.waitForEndings(1)[0]
      #expect(ending.reason == .endedByPeer && ending.unfinishedBytes == 0)
      #expect(server.record.violations == [])
      #expect(try await client.request(spoken.echo, [1]) == [2])
      await server.stop()
    }
  }

  @Test func `each connection may have a token of its own`() async throws {
    try await Stage.simulate { stage, simulation in
      let description = try Spoken.guarded.description()
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 0), dialect: .custom(description))
      server.on(0x500) { .reply($0.body) }
      let endpoint = server.endpoint
      let given = Tally<UInt8>()
      let client = try stage.client(to: [endpoint]) {
        $0.reconnect.afterClose = .milliseconds(5)
        $0.dialect = .custom(description) {
          given.add(1)
          let count = UInt8(given.count)
          // The second one is too short.
          return [UInt8](repeating: count, count: count == 2 ? 3 : 4)
        }
      }
      #expect(try await client.request(0x500, [1]) == [1])
      server.closeConnections()
      try await server.waitForEndings(1)
      try await stage.until { await client.counters().failedAttempts == 1 }
      #expect(try await client.request(0x500, [2]) == [2])
      #expect(given.count == 3)
      #expect(server.connectionsAccepted == 2)
      await server.stop()
    }
  }

  @Test func `a wrong token is refused before anything is opened`() throws {
    let description = try FrameDialect.guarded(tokenWidth: 4)
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: 1)])
    configuration.dialect = .custom(description, token: [1, 2, 3])
    let short = try #require(throws: LongLinkError.self) { try configuration.validate() }
    #expect(short.code == .invalidConfiguration && short.operation == "check `dialect.token`")
    configuration.dialect = .custom(description)
    #expect(throws: LongLinkError.self) { try configuration.validate() }
    configuration.dialect = .custom(description, token: [1, 2, 3, 4])
    try configuration.validate()
    configuration.adaptiveHeartbeat = AdaptiveHeartbeat(shortest: .seconds(1))
    let adaptive = try #require(throws: LongLinkError.self) { try configuration.validate() }
    #expect(adaptive.operation.contains("adaptHeartbeat"))
    var server = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    server.dialect = .custom(description, token: [1])
    #expect(throws: LongLinkError.self) { try server.validate() }
    server.dialect = .custom(description)
    try server.validate()
  }

  @Test func `an adaptive heartbeat finds its interval in a dialect`() async throws {
    try await Stage.simulate { stage, simulation in
      let description = try Spoken.bare.description(every: .seconds(240), timeout: .seconds(10))
      let server = try await stage.serve { _ in
      } configure: {
        $0.dialect = .custom(description)
      }
      let client = try stage.client(of: server) {
        $0.dialect = .custom(description)
        $0.adaptiveHeartbeat = AdaptiveHeartbeat()
      }
      try await client.connect()
      try await simulation.sleep(for: .seconds(3_600))
      let counters = await client.counters()
      #expect(counters.connects == 1)
      // It began with short ones, and grew.
      #expect(counters.connections.pingsSent > 15)
    }
  }
}
