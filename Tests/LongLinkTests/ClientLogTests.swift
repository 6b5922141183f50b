// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Testing

/// What a client tells its operator, in a simulation.
@Suite struct ClientLogTests {
  private let lines = LogLines()

  /// A client of a scripted server, whose log is kept.
  private func connected(
    _ stage: Stage, _ simulation: Simulation
  ) async throws -> (SimulatedServer, LongLinkClient) {
    let server = try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 4000))
    server.on(.echo) { .reply($0.body) }
    server.on(.hang, .never)
    let client = try stage.client(to: [.host("10.0.0.1", port: 4000)]) {
      $0.logger = lines.logger
    }
    try await client.connect()
    return (server, client)
  }

  @Test(arguments: [
    (ServerAction.close, "closedByPeer", "the peer closed the connection"),
    (.reset, "transport", "the connection failed: Connection reset by peer (ECONNRESET)"),
  ])
  func `a loss that was not announced is a warning, with its age and what it carried`(
    action: ServerAction, reason: String, detail: String
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage, simulation)
      server.on(.fail, .delay(.seconds(7), then: action))
      let hanging = client.submit(.hang, [1])
      let failed = try await failure { try await client.request(.fail, [1]) }
      #expect(failed.detail == detail)
      _ = try await failure { try await hanging.value }
      let line = try #require(lines.all("Disconnected").first)
      #expect(line.level == .warning)
      #expect(line.metadata["reason"] == reason)
      #expect(line.metadata["detail"] == detail)
      #expect(line.metadata["requests"] == "2")
      let age = try #require(line.metadata["ageMs"].flatMap { Int($0) })
      #expect((7_000..<7_100).contains(age))
      #expect(line.metadata["peer"] == "10.0.0.1:4000")
      await server.stop()
    }
  }

  @Test func `a server's text cannot forge a line, and its goaways cannot flood the log`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage, simulation)
      let forged = "bye\n2026-01-01 critical: forged" + String(repeating: "x", count: 5_000)
      let hanging = client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(500)))
      _ = try await server.waitForRequest(of: .hang)
      for _ in 0..<1_000 { server.goAway(code: 1_001, reason: forged) }
      try await stage.until { lines.all("The server is going away").count == 5 }
      try await simulation.sleep(for: .seconds(30))
      server.goAway(code: 1_001, reason: forged)
      try await stage.until { lines.all("The server is going away").count == 6 }
      let told = lines.all("The server is going away")
      #expect(told[5].metadata["suppressed"] == "995")
      for line in told {
        let detail = try #require(line.metadata["detail"])
        #expect(detail.hasPrefix(#"bye\n2026"#) && detail.utf8.count == 200)
        #expect(line.metadata["reason"] == nil && line.metadata["code"] == "1001")
      }
      hanging.cancel()
      await server.stop()
    }
  }

  @Test func `an error shows part of the peer's text, escaped, and its body has all of it`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await connected(stage, simulation)
      let text = "no\u{1B}[2Jway " + String(repeating: "y", count: 1_000)
      server.on(.fail, .reply(code: .failed, body: Array(text.utf8)))
      let error = try await failure { try await client.request(.fail, [1]) }
      #expect(error.detail.hasPrefix(#"no\u{1B}[2Jway yyy"#) && error.detail.utf8.count == 200)
      #expect(error.body == Array(text.utf8))
      await server.stop()
    }
  }

  @Test func `in a simulation only warnings are logged, unless a logger was given`() async throws {
    try await Stage.simulate { stage, simulation in
      let endpoint = Endpoint.host("10.0.0.1", port: 4000)
      let client = try LongLinkClient(
        ClientConfiguration(servers: [endpoint]), on: simulation.mainLoop)
      #expect(client.configuration.logger.logLevel == .warning)
      let server = try LongLinkServer(
        ServerConfiguration(listen: [endpoint]), on: [stage.serverLoop])
      #expect(server.configuration.logger.logLevel == .warning)
      var chosen = ClientConfiguration(servers: [endpoint])
      chosen.logger.logLevel = .info
      let talkative = try LongLinkClient(chosen, on: simulation.mainLoop)
      #expect(talkative.configuration.logger.logLevel == .info)
    }
    let client = try LongLinkClient(to: .host("127.0.0.1", port: 1))
    #expect(client.configuration.logger.logLevel == .info)
  }

  @Test func `a server that cannot be reached makes a few lines a minute`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(to: [.host("10.0.0.1", port: 4000)]) {
        $0.logger = lines.logger
        $0.reconnect.cap = .seconds(1)
      }
      _ = try await failure { try await client.connect() }
      try await simulation.sleep(for: .seconds(600))
      let told = lines.all("Could not connect")
      #expect((20...36).contains(told.count), "\(told.count)")
      let all = told.reduce(told.count) { $0 + (Int($1.metadata["suppressed"] ?? "0") ?? 0) }
      #expect(all >= 400)
      #expect(told[0].metadata["reason"] == "transport")
      #expect(told[0].metadata["server"] == "10.0.0.1:4000")
      #expect(
        told[0].metadata["detail"]?.contains("Connection refused (ECONNREFUSED)") == true,
        "\(told[0].metadata)")
    }
  }
}
