// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where a test of scripted peers runs: each must behave the same.
enum TestEnvironment: String, CaseIterable, Sendable {
  case simulated
  case simulatedByteByByte
  case loopback
  case unixSocket

  /// Whether time is virtual.
  var isSimulated: Bool { self == .simulated || self == .simulatedByteByByte }

  /// What the peer hears of a reset, which Unix-domain sockets do not have.
  var resetReason: ConnectionEnding.Reason {
    self == .unixSocket ? .endedByPeer : .failed(errno: ECONNRESET)
  }

  /// Runs a body with a loop of this world and an address to listen on, and checks for leaks.
  func run(
    _ body: @escaping @Sendable (EventLoop, SocketAddress) async throws -> Void
  ) async throws {
    switch self {
    case .simulated, .simulatedByteByByte:
      let simulation = Simulation()
      if self == .simulatedByteByByte { simulation.network.conditions = .byteByByte }
      try await simulation.run {
        try await body(simulation.mainLoop, .ipv4(127, 0, 0, 1, port: 0))
        // What was dropped at the end closes on its loop.
        try await simulation.sleep(for: .seconds(1))
      }
      #expect(simulation.openStreams == [])
      #expect(simulation.openListeners == [])
      #expect(simulation.pendingTimers == [])
    case .loopback:
      let loop = try EventLoop(name: "loopback")
      defer { loop.shutDown() }
      try await body(loop, .ipv4(127, 0, 0, 1, port: 0))
    case .unixSocket:
      let loop = try EventLoop(name: "unix")
      defer { loop.shutDown() }
      let path = "/tmp/longlink-test-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
      try await body(loop, .unix(path: path))
    }
  }

  /// Runs a body with a server and a client that is connected to it, and stops both.
  func runPair(
    _ body: @escaping @Sendable (SimulatedServer, SimulatedClient) async throws -> Void
  ) async throws {
    try await run { loop, address in
      let server = try await SimulatedServer.start(on: loop, at: address)
      let client = try await SimulatedClient.connect(to: server.address, on: loop)
      do {
        try await body(server, client)
      } catch {
        client.close()
        await server.stop()
        throw error
      }
      client.close()
      await server.stop()
    }
  }
}
