// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkServer
import Logging
import Testing

@testable import LongLinkScenarios
@testable import LongLinkTesting

/// Each oracle finds what it watches for.
@Suite struct OracleTests {
  private let ledger = RequestLedger { LinkInstant(nanoseconds: 0) }

  private func promises() -> [OraclePromise] { ledger.broken.map(\.promise) }

  private func error(_ delivery: Delivery) -> LongLinkError {
    LongLinkError(.connectionLost, delivery: delivery, doing: "test")
  }

  // MARK: Requests

  @Test func `a request that ended once with a true delivery breaks no promise`() {
    ledger.asked(1)
    ledger.ran(1)
    ledger.ended(1, .success([]))
    ledger.asked(2)
    ledger.ended(2, .failure(error(.notSent)))
    ledger.asked(3, mayRunAgain: true)
    ledger.ran(3)
    ledger.ran(3)
    ledger.ended(3, .failure(error(.sent)))
    #expect(promises() == [])
  }

  @Test func `a request that ends twice or never is found`() {
    ledger.asked(1)
    ledger.ran(1)
    ledger.ended(1, .success([]))
    ledger.ended(1, .success([]))
    #expect(promises() == [.endsOnce])
    ledger.asked(2)
    #expect(promises() == [.endsOnce, .endsOnce])
  }

  @Test(arguments: [Delivery.notSent, .refused])
  func `a request that ran but was reported as not run is found`(_ delivery: Delivery) {
    ledger.asked(1)
    ledger.ran(1)
    ledger.ended(1, .failure(error(delivery)))
    #expect(promises() == [.truthfulDelivery])
  }

  @Test func `an answer that no handler has given is found`() {
    for key in 1...4 as ClosedRange<UInt64> { ledger.asked(key) }
    for key in 2...4 as ClosedRange<UInt64> { ledger.ran(key) }
    ledger.returned(4)
    for key in 1...4 as ClosedRange<UInt64> { ledger.ended(key, .failure(error(.answered))) }
    // Too late.
    ledger.returned(3)
    #expect(promises() == [.truthfulDelivery, .truthfulDelivery, .truthfulDelivery])
  }

  @Test func `a success that never ran, and a second run, are found`() {
    ledger.asked(1)
    ledger.ended(1, .success([]))
    ledger.asked(2)
    ledger.ran(2)
    ledger.ran(2)
    ledger.ended(2, .success([]))
    #expect(promises() == [.truthfulDelivery, .truthfulDelivery])
  }

  @Test func `a wrong response, and a request of no client, are found`() {
    ledger.asked(1)
    ledger.ran(1)
    ledger.ended(1, .success([]), isOwnAnswer: false)
    ledger.ran(7)
    #expect(promises() == [.ownAnswers, .ownAnswers])
  }

  @Test func `ordered requests that overtake each other are found`() {
    for key in 1...3 as ClosedRange<UInt64> { ledger.asked(key, inOrderOf: "client") }
    ledger.asked(4, inOrderOf: "another")
    ledger.ran(2)
    ledger.ran(4)
    ledger.ran(1)
    for key in 1...4 as ClosedRange<UInt64> { ledger.ended(key, .failure(error(.sent))) }
    // This one was given up before: it may come late.
    ledger.ran(3)
    ledger.ran(2)
    #expect(promises().filter { $0 == .orderKept } == [.orderKept])
  }

  @Test func `a push that comes twice, late or changed is found`() {
    let pushes = PushLedger()
    for number in 1...3 as ClosedRange<UInt64> { pushes.sent(number, size: 20) }
    pushes.arrived(2, size: 20, on: "a")
    pushes.arrived(1, size: 20, on: "b")
    #expect(pushes.broken.isEmpty)
    pushes.arrived(2, size: 20, on: "a")
    pushes.arrived(1, size: 20, on: "a")
    pushes.arrived(3, size: 21, on: "a")
    let broken = pushes.broken.map(\.promise)
    #expect(broken == [.endsOnce, .endsOnce, .orderKept, .ownAnswers])
  }

  // MARK: Clients and credentials

  @Test func `a client that is connected and not listed is found`() async throws {
    let clients = ClientLedger()
    _ = try await watch { server in
      clients.watch(server, named: "server", isAlive: { true })
      server.onConnectionOpened { clients.opened($0, of: "server") }
    } _: { simulation, oracle, client, server in
      try await client.connect()
      try await simulation.sleep(for: .seconds(1))
      await clients.checkLists(at: simulation.now)
      #expect(clients.broken.isEmpty)
      // One that the server has never had.
      let log = PeerLog(Logger(label: "peer") { _ in SwiftLogNoOpLogHandler() })
      let other = Peer(
        id: 99, address: nil, routes: Router().snapshot, log: log, on: simulation.mainLoop)
      clients.came(other, to: "server")
      await clients.checkLists(at: simulation.now)
      #expect(clients.broken.isEmpty)
      clients.opened(other, of: "server")
      for _ in 0..<3 {
        await clients.checkLists(at: simulation.now)
        try await simulation.sleep(for: .seconds(10))
      }
    }
    #expect(clients.broken.map(\.promise) == [.onePeer])
    #expect(clients.broken[0].detail == "client server 99 has a connection, and is not listed")
  }

  @Test(arguments: [(4, 1), (6, 0)])
  func `a server that ends a connection before its credential is found`(
    _ seconds: Int, _ count: Int
  ) async throws {
    let simulation = Simulation(seed: 4)
    let oracle = Oracle(simulation)
    try await simulation.run {
      let server = try await SimulatedServer.start(on: simulation.eventLoop(named: "server"))
      server.handshake = .welcome(credentialExpires: .seconds(2))
      server.onRenewal(.renewed(credentialExpires: .seconds(4)))
      let client = try await SimulatedClient.connect(to: server.address, on: simulation.mainLoop)
      try await client.sayHello(.hello(features: [.renewal], credential: [1]))
      try await simulation.sleep(for: .seconds(1))
      try await client.renew([2])
      // With the first credential it would have been right from the second second on.
      try await simulation.sleep(for: .seconds(seconds - 1))
      server.goAway(code: .unauthenticated)
      try await client.waitForFrame(.goaway)
      client.close()
      try await server.waitForEndings(1)
      await server.stop()
      try await simulation.sleep(for: .seconds(1))
    }
    let findings = await oracle.finish()
    #expect(findings.map(\.promise) == Array(repeating: .renewedInPlace, count: count))
  }

  // MARK: A user's own test

  /// A client and a server in a simulation, with an oracle that watches them.
  private func watch(
    setUp: @escaping @Sendable (LongLinkServer) -> Void = { _ in },
    _ body:
      @escaping @Sendable (Simulation, Oracle, LongLinkClient, LongLinkServer) async throws -> Void
  ) async throws -> [OracleFinding] {
    let simulation = Simulation(seed: 4)
    return try await simulation.run {
      let oracle = Oracle(simulation)
      let loop = simulation.eventLoop(named: "server")
      var listening = ServerConfiguration(listen: [.host("10.0.0.1", port: 7_000)])
      listening.logger.logLevel = .critical
      let server = try LongLinkServer(listening, on: [loop])
      server.route(1) { request in
        oracle.requests.ran(UInt64(request.body[0]))
        return request.body
      }
      setUp(server)
      oracle.watch(server, on: [loop], named: "server")
      try await server.start()
      var configuration = ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration, on: simulation.eventLoop(named: "client"))
      oracle.watch(client, named: "client")
      try await body(simulation, oracle, client, server)
      await client.close()
      await server.shutDown(within: .zero)
      try await simulation.sleep(for: .seconds(5))
      return await oracle.finish()
    }
  }

  @Test func `a client and a server that behave break no promise`() async throws {
    let findings = try await watch { simulation, oracle, client, server in
      for key in 1...20 as ClosedRange<UInt8> {
        oracle.requests.asked(UInt64(key), deadline: .seconds(15))
        do throws(LongLinkError) {
          let answer = try await client.request(1, [key])
          oracle.requests.ended(UInt64(key), .success(answer), isOwnAnswer: answer == [key])
        } catch {
          oracle.requests.ended(UInt64(key), .failure(error))
        }
        if key == 10 { simulation.network.links.first?.silence() }
        try await simulation.sleep(for: .seconds(7))
      }
      await oracle.sample()
      await oracle.expectRecovery(
        of: client, within: Oracle.recoveryTime(of: client.configuration))
    }
    #expect(findings == [])
  }

  @Test func `a client that is not connected in time is found`() async throws {
    let findings = try await watch { simulation, oracle, client, server in
      simulation.network.connects = .refused
      await oracle.expectRecovery(of: client, within: .seconds(30))
    }
    #expect(findings.map(\.promise) == [.recovers])
  }

  @Test func `a client that is left open is found`() async throws {
    let simulation = Simulation(seed: 4)
    let findings = try await simulation.run {
      let oracle = Oracle(simulation)
      var configuration = ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)])
      configuration.logger.logLevel = .critical
      let client = try LongLinkClient(configuration, on: simulation.mainLoop)
      oracle.watch(client, named: "client")
      simulation.spawn { _ = try? await client.request(1, [1]) }
      try await simulation.sleep(for: .seconds(1))
      let findings = await oracle.finish()
      await client.close()
      return findings
    }
    #expect(findings.contains { $0.promise == .nothingLeft })
    #expect(findings.contains { $0.promise == .countersAgree })
  }
}
