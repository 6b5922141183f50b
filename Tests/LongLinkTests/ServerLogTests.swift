// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import Logging
import Testing

/// What a server tells its operator, in a simulation.
@Suite struct ServerLogTests {
  private let lines = LogLines()

  @Test func `a server logs when it drains, and when it has stopped`() async throws {
    try await Stage.pair(server: { $0.logger = lines.logger }) { stage, server, client in
      let hanging = client.submit(.hang, [1])
      try await stage.until { await server.counters().requestsRunning == 1 }
      await server.shutDown(within: .seconds(3))
      _ = try await failure { try await hanging.value }
      let draining = try #require(lines.all("Draining").first)
      #expect(draining.level == .info)
      #expect(draining.metadata["connections"] == "1" && draining.metadata["requests"] == "1")
      #expect(draining.metadata["boundMs"] == "3000")
      #expect(lines.all("Stopped").map { $0.metadata["requestsAbandoned"] } == ["1"])
      // A second call has nothing to tell.
      await server.shutDown()
      #expect(lines.all("Draining").count == 1 && lines.all("Stopped").count == 1)
    }
  }

  @Test func `a server warns of credentials without encryption, unless they stay on its machine`()
    async throws
  {
    let warning = """
      Clients' credentials come without encryption, on an address that others can reach. Set \
      `security`, unless a proxy ends TLS and is the only one that can connect.
      """
    for (host, count) in [("127.0.0.1", 0), ("10.0.0.1", 1), ("0.0.0.0", 1)] {
      try await Stage.simulate { stage, simulation in
        let lines = LogLines()
        var configuration = ServerConfiguration(listen: [.host(host, port: 7_000)])
        configuration.logger = lines.logger
        configuration.identity.authenticate = { _ in .anonymous }
        let server = try LongLinkServer(configuration, on: [stage.serverLoop])
        try await server.start()
        let told = lines.all(warning)
        #expect(told.count == count && told.allSatisfy { $0.level == .warning }, "\(host)")
        #expect(lines.all("Listening").map { $0.metadata["tls"] } == ["off"])
        await server.shutDown()
      }
    }
  }

  @Test func `a server warns of rules that allow no client`() async throws {
    let warning = """
      Access rules need a principal, and no client gets one: they allow no client. \
      Set `identity.authenticate`.
      """
    func told(
      authenticates: Bool = false, _ set: @escaping @Sendable (LongLinkServer) -> Void
    ) async throws -> [String?] {
      let lines = LogLines()
      try await Stage.simulate { stage, simulation in
        _ = try await stage.serve(setUp: set) {
          $0.logger = lines.logger
          if authenticates { $0.identity.authenticate = { _ in .anonymous } }
        }
      }
      return lines.all(warning).map { $0.metadata["types"] }
    }
    #expect(try await told { $0.require(.authenticated) } == ["all without a rule of their own"])
    #expect(try await told(authenticates: true) { $0.require(.authenticated) } == [])
    #expect(try await told { $0.require(.everyone) } == [])
    #expect(try await told { $0.require(.custom { _ in true }) } == [])
    let either = AccessRule.any([.authenticated, .custom { _ in true }])
    #expect(try await told { $0.require(either) } == [])
    let both = AccessRule.all([.principal(named: "ann"), .custom { _ in true }])
    #expect(
      try await told { server in
        server.route(30, requires: both) { $0.body }
        server.onPush(29, requires: .attribute("role", "editor")) { _, _ in }
        server.route(
          RPCMethod<[UInt8], [UInt8]>(31, "Say", of: "talk.Talk"), requires: .authenticated
        ) { body, _ in body }
      } == ["29, 30, talk.Talk/Say"])
  }

  // MARK: Clients and requests, at the default level

  @Test func `a server says which clients come and go, and what they have done`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.logger = lines.logger(from: .info)
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let client = try stage.client(of: server) {
        $0.name = "oven\ncritical: forged"
        $0.identity.credential = { Array("key-ann".utf8) }
        $0.identity.sendsCredentialUnencrypted = true
      }
      for _ in 0..<3 { _ = try await client.request(.echo, []) }
      _ = try await failure { try await client.request(99, []) }
      try await stage.clientLoop.sleep(for: .seconds(5))
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      let told = lines.all.filter { $0.metadata["connection"] != nil }
      #expect(
        told.map(\.message) == ["Connection opened", "Refused a request", "Connection ended"])
      let (opened, refused, ended) = (told[0], told[1], told[2])
      for line in [opened, refused, ended] {
        #expect(line.level == .info && line.metadata["connection"] == "1")
        #expect(line.metadata["principal"] == "ann" && line.metadata["peer"] != nil, "\(line)")
      }
      #expect(opened.metadata["tls"] == "off" && opened.metadata["client"] == "1")
      #expect(opened.metadata["name"] == #"oven\ncritical: forged"#)
      #expect(refused.metadata["code"] == "404" && refused.metadata["type"] == "99")
      #expect(refused.metadata["detail"] == "no handler for message type 99")
      #expect(ended.metadata["requests"] == "3" && ended.metadata["refused"] == "1")
      #expect(ended.metadata["reason"] == "closedByPeer" && ended.metadata["client"] == "1")
      let age = try #require(ended.metadata["ageMs"].flatMap(Int.init))
      #expect((5_000..<5_100).contains(age))
    }
  }

  @Test func `clients that come and go, and refused requests of each kind, are few lines`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(setUp: { $0.routeBasics() }) {
        $0.logger = lines.logger(from: .info)
        $0.limits.maxInFlight = 2
      }
      for _ in 0..<100 {
        let client = try await SimulatedClient.connect(
          to: server.addresses[0], on: stage.clientLoop)
        _ = try await client.sayHello()
        client.close()
        try await stage.until { await server.counters().openConnections == 0 }
      }
      #expect(lines.all("Connection opened").count == 3)
      #expect(lines.all("Connection ended").count == 3)
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      _ = try await client.sayHello()
      for serial: UInt32 in 0..<1_000 { client.send(.request(99, serial: 50 + serial)) }
      for serial: UInt32 in 0..<1_000 { client.send(.request(.hang, serial: 2_000 + serial)) }
      try await stage.until { await server.counters().connections.refused == 1_998 }
      let refused = lines.all("Refused a request")
      let codes = refused.map { $0.metadata["code"] ?? "none" }
      #expect(codes == ["404", "404", "404", "429", "429", "429"])
      #expect(refused.last?.metadata["detail"] == "more than 2 concurrent requests")
      #expect(lines.all.count == 13)
    }
  }

  @Test func `a server whose logger wants warnings alone says nothing of them`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: { $0.logger = lines.logger(from: .notice) })
      let client = try stage.client(of: server)
      _ = try await failure { try await client.request(99, []) }
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(lines.all.isEmpty)
    }
  }

  // MARK: What peers make of it

  @Test func `a client's text cannot forge a line, and its goaways cannot flood the log`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.logger = lines.logger })
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      _ = try await client.sayHello()
      client.send(.request(.hang, serial: 50))
      let forged = "bye\ncritical: forged" + String(repeating: "x", count: 5_000)
      for _ in 0..<1_000 { client.send(.goAway(code: 1_001, reason: forged)) }
      try await stage.until {
        await server.counters().connections.framesReceived == 1_002
      }
      let told = lines.all("The client is going away")
      #expect(told.count == 3)
      for line in told {
        let detail = try #require(line.metadata["detail"])
        #expect(detail.hasPrefix(#"bye\ncritical"#) && detail.utf8.count == 200)
        #expect(line.metadata["code"] == "1001" && line.metadata["connection"] == "1")
      }
    }
  }

  @Test func `connections that are turned away, and failures of answers, are few lines`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.logger = lines.logger
        $0.limits.maxConnections = 1
      })
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      _ = try await client.sayHello(.hello(maxBody: 1))
      for _ in 0..<100 {
        let other = try await SimulatedClient.connect(
          to: server.addresses[0], on: stage.clientLoop)
        _ = try await other.waitForEnd()
      }
      for serial: UInt32 in 50..<150 { client.send(.request(.echo, serial: serial, [1, 2, 3])) }
      _ = try await client.waitForResponse(to: 149)
      let turnedAway = lines.all("Rejected a connection")
      #expect((3...10).contains(turnedAway.count))
      #expect(turnedAway[0].metadata["reason"] == "limits.maxConnections")
      #expect(lines.all("A response is larger than the peer accepts").count == 3)
    }
  }
}
