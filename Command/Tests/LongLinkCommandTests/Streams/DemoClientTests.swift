// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkDemoMessages
import LongLinkServer
import LongLinkTesting
import Logging
import Synchronization
import Testing

@testable import LongLinkCommand

/// What `longlink serve` does for clients that move and renew their credentials, in virtual time.
@Suite(.timeLimit(.minutes(15))) struct DemoClientTests {
  /// Runs a body with a server that has the demo's routes, and these options of security.
  private static func run(
    _ options: [String] = [],
    configure: @escaping @Sendable (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Simulation, LongLinkServer) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 0)])
      configuration.logger.logLevel = .critical
      try ServingSecurityOptions.parse(options).authenticate(in: &configuration)
      configure(&configuration)
      let server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
      DemoRoutes.install(on: server)
      try await server.start()
      try await body(simulation, server)
      await server.shutDown(within: .zero)
    }
  }

  private static func client(
    of server: LongLinkServer, _ simulation: Simulation,
    credential: (@Sendable () -> String)? = nil
  ) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [server.endpoint])
    configuration.logger.logLevel = .critical
    if let credential { configuration.identity.credential = { Array(credential().utf8) } }
    configuration.identity.sendsCredentialUnencrypted = true
    return try LongLinkClient(configuration, on: simulation.mainLoop)
  }

  private static func numbers(
    _ pushes: BufferedSequence<Push, Never>, _ count: Int
  ) async throws -> [UInt64] {
    var numbers: [UInt64] = []
    for await push in pushes {
      numbers.append(try Tick(copying: push.body).number)
      if numbers.count == count { break }
    }
    return numbers
  }

  @Test func `ticks follow a client that moves, each once`() async throws {
    try await Self.run { simulation, server in
      let client = try Self.client(of: server, simulation)
      let pushes = client.pushes(of: 7)
      _ = try await client.request(
        DemoRoutes.ticks, TicksRequest(count: 100, intervalMilliseconds: 50, messageType: 7))
      for network in 1...10 {
        client.pathChanged(network: "\(network)")
        try await client.loop.sleep(for: .milliseconds(370))
      }
      #expect(try await Self.numbers(pushes, 100).sorted() == Array(1...100))
      try await client.loop.sleep(for: .seconds(5))
      #expect(pushes.buffered == 0)
      #expect(await client.counters().connects == 11)
      await client.close()
    }
  }

  @Test(arguments: [true, false])
  func `ticks that wait for room on a connection go on over the next one`(
    _ ends: Bool
  ) async throws {
    try await Self.run(configure: { $0.limits.waterMarks = WaterMarks(high: 65_536, low: 32_768) })
    {
      simulation, server in
      let connections = try await [
        SimulatedClient.connect(to: server.addresses[0], on: simulation.mainLoop),
        SimulatedClient.connect(to: server.addresses[0], on: simulation.mainLoop),
      ]
      let hello = WireFrame.hello(clientID: [UInt8](repeating: 7, count: 16))
      _ = try await connections[0].sayHello(hello)
      let request = try TicksRequest(count: 30_000, messageType: 7).encodedBytes()
      _ = try await connections[0].request(DemoRoutes.ticks, request)
      connections[0].stopReading()
      while await server.counters().pushesWaiting == 0 {
        try await simulation.mainLoop.sleep(for: .milliseconds(1))
      }
      _ = try await connections[1].sayHello(hello)
      // One that stays and is not read holds a tick until its time is over.
      if ends { connections[0].reset() }
      try await connections[1].wait {
        $0.pushes.last.map { Array($0.body) } == (try? Tick(number: 30_000).encodedBytes())
      }
      let numbers = try connections[1].pushes.map { try Tick(copying: $0.body).number }
      #expect(numbers.count < 30_000 && numbers == Array(30_001 - UInt64(numbers.count)...30_000))
      for connection in connections { connection.close() }
    }
  }

  @Test func `ticks end with their client`() async throws {
    try await Self.run { simulation, server in
      let client = try Self.client(of: server, simulation)
      let other = try Self.client(of: server, simulation)
      let request = TicksRequest(count: .max, intervalMilliseconds: 1_000, messageType: 7)
      // As many as may run at once.
      for _ in 0..<1_024 { _ = try await client.request(DemoRoutes.ticks, request) }
      let error = await #expect(throws: LongLinkError.self) {
        try await other.request(DemoRoutes.ticks, request)
      }
      #expect(error?.response == .overloaded)
      await client.close()
      try await other.loop.sleep(for: .seconds(2))
      _ = try await other.request(DemoRoutes.ticks, request)
      await other.close()
    }
  }

  @Test func `a broadcast comes to each client once, and Peers counts clients and connections`()
    async throws
  {
    try await Self.run { simulation, server in
      let clients = try (0..<3).map { _ in try Self.client(of: server, simulation) }
      for client in clients { try await client.connect() }
      let heard = clients.map { $0.pushes(of: 9) }
      let asking = clients[2]
      func peers() async throws -> PeersReply {
        try await asking.request(DemoRoutes.peers, EmptyBody())
      }
      #expect(try await peers() == PeersReply(clients: 3, connections: 3))
      // Its first connection stays until the answer is there.
      let slow = clients[0].submit(DemoRoutes.sleep, SleepRequest(milliseconds: 5_000))
      _ = try await clients[0].request(DemoRoutes.echo, [])
      clients[0].pathChanged()
      while try await peers().connections != 4 {}
      let request = BroadcastRequest(messageType: 9, body: [1, 2])
      let reply = try await asking.request(DemoRoutes.broadcast, request)
      #expect(reply.clients == 3)
      #expect(try await peers() == PeersReply(clients: 3, connections: 4))
      _ = try await slow.value
      try await asking.loop.sleep(for: .seconds(1))
      #expect(try await peers() == PeersReply(clients: 3, connections: 3))
      for pushes in heard {
        #expect(pushes.buffered == 1)
        var pushes = pushes
        #expect(await pushes.next() == Push(type: 9, body: [1, 2]))
      }
      await clients[0].close()
      try await asking.loop.sleep(for: .seconds(1))
      #expect(try await peers() == PeersReply(clients: 2, connections: 2))
      for client in clients { await client.close() }
    }
  }

  @Test func `a broadcast of a type over 24 bits is answered with 400`() async throws {
    try await Self.run { simulation, server in
      let client = try Self.client(of: server, simulation)
      let pushes = client.pushes()
      let error = await #expect(throws: LongLinkError.self) {
        try await client.request(DemoRoutes.broadcast, BroadcastRequest(messageType: 1 << 24))
      }
      #expect(error?.response == .malformed && error?.delivery == .answered)
      let largest = BroadcastRequest(messageType: 1 << 24 - 1)
      #expect(try await client.request(DemoRoutes.broadcast, largest).clients == 1)
      #expect(pushes.buffered == 1)
      await client.close()
    }
  }

  @Test func `a secret is renewed for an hour under one stream, and a name has several`()
    async throws
  {
    let options = [
      "--token", "ann=first", "--token", "ann=second", "--token", "bob=third",
      "--credential-validity", "12",
    ]
    try await Self.run(options) { simulation, server in
      let asked = Mutex(0)
      let client = try Self.client(of: server, simulation) {
        asked.withLock { $0 += 1 }
        return "first"
      }
      let others = try ["second", "third"].map { secret in
        try Self.client(of: server, simulation) { secret }
      }
      for other in others { try await other.connect() }
      let request = CountRequest(count: 3_600, intervalMilliseconds: 1_000)
      var count = 0
      for try await _ in client.stream(DemoRoutes.count, request) { count += 1 }
      #expect(count == 3_600)
      // At 75 to 90 % of the time.
      #expect((3_599 / 11...3_599 / 9 + 1).contains(asked.withLock { $0 } - 1))
      #expect(await client.counters().connects == 1)
      #expect(server.peers(of: "ann").count == 2 && server.peers(of: "bob").count == 1)
      for client in others + [client] { await client.close() }
    }
  }

  @Test func `a client that shows no secret again is cut off`() async throws {
    try await Self.run(["--token", "ann=first", "--credential-validity", "12"]) {
      simulation, server in
      let asked = Mutex(0)
      let client = try Self.client(of: server, simulation) {
        asked.withLock {
          $0 += 1
          return $0 == 1 ? "first" : "wrong"
        }
      }
      try await client.connect()
      let start = client.loop.clock.now
      for await state in client.states() {
        if state == .notAccepted(.unauthenticated) { break }
      }
      let took = start.duration(to: client.loop.clock.now)
      #expect(took > .seconds(8) && took < .seconds(60), "\(took)")
      await client.close()
    }
  }
}
