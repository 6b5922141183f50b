// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// What a start that fails leaves of a server.
@Suite struct ServerStartTests {
  /// A server that listens on its first address for 1 s, and then fails to start.
  private static func failingServer(
    _ simulation: Simulation
  ) throws -> LongLinkServer {
    let host = "unknown.test"
    simulation.network.failLookUps(of: host, with: "no such name", code: -2, delay: .seconds(1))
    var configuration = ServerConfiguration(listen: [
      .host("10.0.0.1", port: 9_000), .host(host, port: 9_000),
    ])
    configuration.logger.logLevel = .critical
    // The tasks of the test run on this loop too, so that they are not late.
    return try LongLinkServer(configuration, on: [simulation.mainLoop])
  }

  @Test(arguments: 1...8)
  func `a shut-down during a start that fails is final`(seed: UInt64) async throws {
    try await Stage.simulate(seed: seed) { stage, simulation in
      let server = try Self.failingServer(simulation)
      let stopped = Latch()
      // The failed start closes the connection, and has not finished then.
      server.onDisconnect { _ in
        simulation.spawn {
          await server.shutDown()
          #expect(await server.counters().openConnections == 0)
          stopped.open()
        }
      }
      let starting = stage.spawn { try await failure { try await server.start() } }
      let client = try stage.client(to: [.host("10.0.0.1", port: 9_000)])
      try await client.connect()
      let error = try await starting.value
      #expect(error.code == .connectFailed)
      await client.close()
      await stopped.wait()
      await server.waitUntilShutDown()
      #expect(try await failure { try await server.start() }.code == .closed)
    }
  }

  @Test func `a start that fails can be repeated`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try Self.failingServer(simulation)
      server.routeBasics()
      #expect(try await failure { try await server.start() }.code == .connectFailed)
      #expect(server.addresses == [])
      simulation.network.host("unknown.test", addresses: [.ipv4(10, 0, 0, 2, port: 0)])
      try await server.start()
      #expect(server.addresses.count == 2)
      let client = try stage.client(to: [.host("10.0.0.2", port: 9_000)])
      #expect(try await client.request(.echo, [1]) == [1])
      await client.close()
      await server.shutDown()
      await server.waitUntilShutDown()
    }
  }
}
