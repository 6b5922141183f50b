// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Logging
import Testing

/// What a simulation says when it cannot go on, and where.
@Suite struct FailureTextTests {
  /// Runs a body that does not end, and returns the error.
  private func fail(
    grace: Duration = .zero, fileID: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Simulation) async throws -> Void
  ) async throws -> SimulationError {
    let simulation = Simulation(
      configuration: .init(timeLimit: .seconds(1_000), foreignGrace: grace))
    let error = await #expect(throws: SimulationError.self) {
      try await simulation.run(fileID: fileID, line: line) { try await body(simulation) }
    }
    return try #require(error)
  }

  private func place(_ line: Int) -> SourcePlace { SourcePlace(line: line) }

  @Test func `a wait that never ends is named with its place and its time`() async throws {
    let line = #line + 5
    let error = try await fail { simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      defer { withExtendedLifetime(server) {} }
      try await simulation.sleep(for: .seconds(3))
      try await server.waitForRequest(of: 7, count: 2)
    }
    #expect(error.code == .stuck && error.place == place(line))
    #expect(error.description.hasPrefix("FailureTextTests.swift:\(line): the simulation is stuck"))
    #expect(
      error.state.contains(
        "FailureTextTests.swift:\(line): the body waits for request 2 of type 7, at the server "
          + "127.0.0.1:49152, since 3"), "\(error)")
  }

  @Test func `a task that the body awaits is named, with where it was started`() async throws {
    let line = #line + 4
    let error = try await fail { simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      defer { withExtendedLifetime(server) {} }
      let task = simulation.spawn {
        try await server.waitForConnections(1)
      }
      try await task.value
    }
    #expect(error.code == .stuck && error.place == place(line + 1))
    #expect(
      error.state.contains(
        "the task that was started at FailureTextTests.swift:\(line) waits for connection 1"))
    #expect(error.state.contains("the body has not ended. It waits for something without a place"))
  }

  @Test func `the body's own wait stands out among those of tasks that sleep`() async throws {
    let line = #line + 6
    let error = try await fail { simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      simulation.spawn { while true { try await simulation.sleep(for: .seconds(1)) } }
      let client = try await SimulatedClient.connect(to: server.address, on: simulation.mainLoop)
      server.on(3, .never)
      _ = try await client.request(3)
    }
    #expect(error.code == .timeLimit && error.place == place(line))
    #expect(error.state.contains("the body waits for the response to request 3 (serial 50)"))
    #expect(error.state.contains("waits for the end of a sleep of 1.0 seconds, since 1000"))
  }

  @Test func `without a known wait, or with several, it is the place of the run`() async throws {
    let first = try await fail { simulation in
      try await withTaskCancellationHandler {
        for await _ in AsyncStream<Never>.makeStream().stream {}
        try await Task.sleep(for: .seconds(3_600))
      } onCancel: {
      }
    }
    #expect(first.place == place(#line - 7))
    let second = try await fail { simulation in
      let server = try await SimulatedServer.start(on: simulation.mainLoop)
      async let one: Void = server.waitForConnections(1)
      async let two: Void = server.waitForConnections(2)
      _ = try await (one, two)
    }
    #expect(second.place == place(#line - 6))
    #expect(second.state.contains("waits for connection 2"))
  }

  @Test func `requests under way are listed with their server, serial and state`() async throws {
    let error = try await fail { simulation in
      let server = try await SimulatedServer.start(on: simulation.eventLoop(named: "server"))
      server.on(6, .never)
      let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
      let patient = RequestOptions(timeout: .seconds(1_000_000))
      let other = try LongLinkClient(
        to: .host("10.0.0.9", port: 1), on: simulation.eventLoop(named: "other"))
      async let waiting = other.request(8, [], options: patient)
      _ = try await client.request(6, [], options: patient)
      _ = try await waiting
    }
    #expect(error.code == .timeLimit)
    #expect(error.state.contains(#"on loop "main": request 6 from 127.0.0.1:"#), "\(error)")
    #expect(
      error.state.contains(" to 127.0.0.1:49152 (serial 50): sent, without its response, until 1"))
    #expect(
      error.state.contains(#"on loop "other": request 8 (serial 50): waiting for a connection: "#))
    #expect(error.state.contains(#"loop "main": timers ("#))
    #expect(!error.state.contains("outside the simulation"))
  }

  @Test func `open streams are listed on both sides, with their items`() async throws {
    let error = try await fail { simulation in
      let server = try LongLinkServer(
        listen: .host("10.0.0.1", port: 9000), on: [simulation.eventLoop(named: "server")])
      let watch = RPCMethod<[UInt8], Streamed<[UInt8]>>(7, "Watch", of: "test.Hub")
      let report = RPCMethod<Streamed<[UInt8]>, [UInt8]>(8, "Report", of: "test.Hub")
      server.routeStream(watch) { _, _, writer in
        for number: UInt8 in 1...3 { try await writer.write([number]) }
        try await simulation.sleep(for: .seconds(1_000_000))
      }
      server.routeStream(report) { _, items in
        for try await _ in items {}
        return []
      }
      try await server.start()
      let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
      let reports = simulation.spawn {
        try await client.sendItems(report) { writer in
          for number: UInt8 in 1...2 { try await writer.write([number]) }
          try await simulation.sleep(for: .seconds(1_000_000))
        }
      }
      for try await _ in client.stream(watch, resuming: { _ in [] }) {}
      _ = try await reports.value
    }
    #expect(
      error.state.contains(
        """
        on loop "main": stream test.Hub/Watch (type 7) from 198.18.0.1:49152 to 10.0.0.1:9000 \
        (serial 50): sent, without its response; 3 items came, the application awaits the next; \
        it is opened again when it is cut off
        """), "\(error)")
    #expect(
      error.state.contains(
        """
        on loop "server": handler of test.Hub/Report (type 8) from 198.18.0.1:49152 (serial 51): \
        has not returned; 2 items came, the handler awaits the next
        """), "\(error)")
    #expect(
      error.state.contains(
        """
        on loop "server": handler of test.Hub/Watch (type 7) from 198.18.0.1:49152 (serial 50): \
        has not returned\n
        """), "\(error)")
  }

  @Test func `a client on a real loop is named with what it connects to`() async throws {
    let error = try await fail(grace: .seconds(3)) { simulation in
      let server = try await SimulatedServer.start(
        on: simulation.mainLoop, at: .ipv4(127, 0, 0, 1, port: 9))
      let loop = try EventLoop(name: "outside")
      defer { loop.shutDown() }
      var configuration = ClientConfiguration(servers: [server.endpoint])
      configuration.logger.logLevel = .critical
      // Nobody gave it a loop of the simulation. It has tried before the simulation gives up.
      let client = try LongLinkClient(configuration, on: loop)
      try? await client.connect()
      await client.close()
      try await server.waitForConnections(1)
    }
    #expect(error.code == .stuck)
    let line =
      "a client of this process runs on a real event loop, outside the simulation, and connects to "
      + "127.0.0.1:9; give it `on: simulation.mainLoop`"
    #expect(error.state.hasPrefix(line), "\(error)")
    #expect(!error.state.contains("was a client or server made"))
  }
}
