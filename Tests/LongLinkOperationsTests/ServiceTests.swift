// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkDriver
import LongLinkLifecycle
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Logging
import ServiceLifecycleTestKit
import Synchronization
import Testing

/// A list that handlers and services add to.
final class Journal: Sendable {
  private let list = Mutex<[String]>([])

  var entries: [String] { list.withLock { $0 } }

  func add(_ entry: String) { list.withLock { $0.append(entry) } }
}

/// Clients and servers as services, in virtual time.
@Suite struct ServiceTests {
  private static let endpoint = Endpoint.host("10.0.0.1", port: 9_000)

  private static func server(
    in simulation: Simulation, _ lines: LogLines = LogLines(),
    _ handler: @escaping @Sendable (InboundRequest) async throws -> [UInt8] = { $0.body }
  ) throws -> LongLinkServer {
    var configuration = ServerConfiguration(listen: [endpoint])
    configuration.logger = lines.logger
    let server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
    server.route(1, handler)
    return server
  }

  private static func until(
    _ simulation: Simulation, _ condition: () async -> Bool
  ) async throws {
    for _ in 0..<100_000 {
      if await condition() { return }
      try await simulation.sleep(for: .milliseconds(1))
    }
    Issue.record("the condition does not come about")
  }

  /// Sends a request, and returns its task once the server works on it.
  private static func hang(
    _ client: LongLinkClient, on server: LongLinkServer, _ simulation: Simulation
  ) async throws -> RequestTask<[UInt8]> {
    let task = client.submit(1, [7], options: RequestOptions(timeout: .seconds(3_600)))
    try await until(simulation) { await server.counters().requestsRunning == 1 }
    return task
  }

  @Test func `a server is not ready first, goes on for the notice, and then drains`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let (journal, lines) = (Journal(), LogLines())
      let server = try Self.server(in: simulation, lines) { request in
        try await request.clock.sleep(for: .seconds(8))
        return request.body
      }
      #expect(!server.isReady)
      try await testGracefulShutdown { trigger in
        let service = server.service(drainingWithin: .seconds(20), notice: .seconds(5)) { isReady in
          journal.add(
            "ready \(isReady) \(server.isReady) \(lines.all("Draining").count)")
        }
        let running = simulation.spawn { try await service.run() }
        try await Self.until(simulation) { server.isReady }
        let client = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
        let reply = try await Self.hang(client, on: server, simulation)
        let before = simulation.mainLoop.clock.now
        trigger.triggerGracefulShutdown()
        try await Self.until(simulation) { !server.isReady }
        // During the notice, the server still takes clients.
        let late = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
        try await late.connect()
        #expect(lines.all("Draining").isEmpty)
        try await Self.until(simulation) { !lines.all("Draining").isEmpty }
        #expect(before.duration(to: simulation.mainLoop.clock.now) >= .seconds(5))
        #expect(try await reply.value == [7])
        try await running.value
        #expect(before.duration(to: simulation.mainLoop.clock.now) < .seconds(12))
        await late.close()
        await client.close()
      }
      #expect(journal.entries == ["ready true true 0", "ready false false 0"])
      #expect(lines.all("Stopped").map { $0.metadata["requestsAbandoned"] } == ["0"])
    }
  }

  @Test func `the bound of a server's drain holds`() async throws {
    let simulation = Simulation(seed: 2)
    try await simulation.run {
      let server = try Self.server(in: simulation) { request in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return request.body
      }
      try await testGracefulShutdown { trigger in
        let service = server.service(drainingWithin: .seconds(4))
        let running = simulation.spawn { try await service.run() }
        try await Self.until(simulation) { server.isReady }
        let client = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
        let hanging = try await Self.hang(client, on: server, simulation)
        let before = simulation.mainLoop.clock.now
        trigger.triggerGracefulShutdown()
        try await running.value
        let time = before.duration(to: simulation.mainLoop.clock.now)
        #expect(time >= .seconds(4) && time < .seconds(6), "\(time)")
        await #expect(throws: LongLinkError.self) { try await hanging.value }
        await client.close()
      }
    }
  }

  @Test(arguments: [Duration.zero, .seconds(600)])
  func `cancellation ends a server's notice and drain at once`(notice: Duration) async throws {
    let simulation = Simulation(seed: 3)
    try await simulation.run {
      let lines = LogLines()
      let server = try Self.server(in: simulation, lines) { request in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return request.body
      }
      try await testGracefulShutdown { trigger in
        let service = server.service(drainingWithin: .seconds(600), notice: notice)
        let running = simulation.spawn { try await service.run() }
        try await Self.until(simulation) { server.isReady }
        let client = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
        let hanging = try await Self.hang(client, on: server, simulation)
        trigger.triggerGracefulShutdown()
        let line = notice == .zero ? "Draining" : "Not ready any more"
        try await Self.until(simulation) { !lines.all(line).isEmpty }
        let before = simulation.mainLoop.clock.now
        running.cancel()
        try await running.value
        #expect(before.duration(to: simulation.mainLoop.clock.now) < .seconds(2))
        await #expect(throws: LongLinkError.self) { try await hanging.value }
        await client.close()
      }
    }
  }

  @Test func `a server that something else shuts down ends its service`() async throws {
    let simulation = Simulation(seed: 4)
    try await simulation.run {
      let server = try Self.server(in: simulation)
      let running = simulation.spawn { try await server.service().run() }
      try await Self.until(simulation) { server.isReady }
      await server.shutDown(within: .zero)
      try await running.value
      #expect(!server.isReady)
    }
  }

  @Test func `a server that cannot start ends its service with the error`() async throws {
    let simulation = Simulation(seed: 5)
    try await simulation.run {
      let first = try Self.server(in: simulation)
      try await first.start()
      var configuration = ServerConfiguration(listen: [Self.endpoint])
      configuration.logger.logLevel = .critical
      let loop = simulation.eventLoop(named: "second")
      let second = try LongLinkServer(configuration, on: [loop])
      let journal = Journal()
      await #expect(throws: LongLinkError.self) {
        try await second.service { journal.add("\($0)") }.run()
      }
      #expect(journal.entries.isEmpty && !second.isReady)
      await first.shutDown(within: .zero)
      await second.shutDown(within: .zero)
    }
  }

  @Test func `a client connects by itself, and finishes what is in flight`() async throws {
    let simulation = Simulation(seed: 6)
    try await simulation.run {
      let server = try Self.server(in: simulation) { request in
        try await request.clock.sleep(for: .seconds(3))
        return request.body
      }
      try await server.start()
      try await testGracefulShutdown { trigger in
        let client = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
        let running = simulation.spawn { try await client.service().run() }
        try await Self.until(simulation) { client.state.isConnected }
        let reply = try await Self.hang(client, on: server, simulation)
        trigger.triggerGracefulShutdown()
        try await running.value
        #expect(try await reply.value == [7])
        #expect(client.state == .closed)
      }
      await server.shutDown(within: .zero)
    }
  }

  @Test func `cancellation ends a client at once that waits to reconnect`() async throws {
    let simulation = Simulation(seed: 7)
    try await simulation.run {
      try await testGracefulShutdown { trigger in
        var configuration = ClientConfiguration(servers: [Self.endpoint])
        configuration.logger.logLevel = .critical
        configuration.reconnect = .spread(over: .seconds(600))
        let client = try LongLinkClient(configuration, on: simulation.mainLoop)
        let running = simulation.spawn {
          try await client.service(closingWithin: .seconds(500)).run()
        }
        try await Self.until(simulation) {
          if case .waiting = client.state { true } else { false }
        }
        let waiting = client.submit(1, [7], options: RequestOptions(timeout: .seconds(3_600)))
        try await Self.until(simulation) { await client.counters().requestsOpen == 1 }
        trigger.triggerGracefulShutdown()
        try await simulation.sleep(for: .seconds(10))
        // It waits for the request, within the bound.
        #expect(client.state != .closed)
        let before = simulation.mainLoop.clock.now
        running.cancel()
        try await running.value
        #expect(before.duration(to: simulation.mainLoop.clock.now) < .seconds(1))
        #expect(client.state == .closed)
        await #expect(throws: LongLinkError.self) { try await waiting.value }
      }
    }
  }

  @Test func `a client that something else closes ends its service`() async throws {
    let simulation = Simulation(seed: 8)
    try await simulation.run {
      let client = try LongLinkClient(to: Self.endpoint, on: simulation.mainLoop)
      let running = simulation.spawn { try await client.service().run() }
      try await Self.until(simulation) { client.state != .idle }
      await client.close()
      try await running.value
    }
  }
}
#endif
