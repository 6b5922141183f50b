// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// Handshakes that stand still.
@Suite struct StallTests {
  /// Silence from a byte of the connection on; in the end both sides have given up.
  @Test(arguments: [0, 1, 100, 228, 600, 900, 1_050])
  func `a handshake that stands still ends by the timeouts of both sides`(
    bytes: Int
  ) async throws {
    var parts = try World.Parts()
    parts.client.timeouts.request = .seconds(120)
    let (error, simulation) = try await World.simulate(parts, conditions: .byteByByte) { world in
      guard let simulation = world.simulation else { return nil as LongLinkError? }
      let connecting = simulation.spawn { () -> LongLinkError? in
        do throws(LongLinkError) {
          try await world.client.connect()
          return nil
        } catch {
          return error
        }
      }
      while true {
        try await simulation.sleep(for: .microseconds(100))
        guard let link = simulation.network.links.first else { continue }
        if bytes == 0 || link.bytesWritten() >= bytes {
          link.silence()
          break
        }
      }
      let error = try await connecting.value
      await world.client.close()
      try await simulation.sleep(for: .seconds(60))
      #expect(await world.server.counters().openConnections == 0)
      return error
    }
    // The last bytes may have been enough.
    #expect(error?.code == .connectFailed || bytes > 1_000)
    #expect(simulation.openStreams == [])
  }

  @Test func `both sides say that it was the handshake of TLS, and the limit`() async throws {
    let address = SocketAddress.ipv4(10, 0, 0, 1, port: 7_000)
    let simulation = Simulation(seed: 1)
    let log = LogLines()
    let error = try await simulation.run { () -> LongLinkError? in
      let scripted = try await SimulatedServer.start(
        on: simulation.eventLoop(named: "scripted"), at: address, security: .tls(.with()))
      // It stops in the middle of its certificate.
      scripted.securityFaults = [.silence(afterBytes: 400)]
      var configuration = ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)])
      configuration.security = try .tls(.trusting())
      configuration.logger.logLevel = .critical
      configuration.timeouts.connect = .seconds(4)
      let client = try LongLinkClient(configuration, on: simulation.eventLoop(named: "client"))
      var failure: LongLinkError?
      do throws(LongLinkError) { try await client.connect() } catch { failure = error }
      // Its system has answered, so that there is nothing to try a second time.
      #expect(await client.counters().secondAttempts == 0)
      await client.close()
      await scripted.stop()

      var parts = try World.Parts()
      parts.server.timeouts.firstFrame = .seconds(3)
      parts.server.logger = log.logger
      let server = try World.makeServer(parts, on: [simulation.eventLoop(named: "server")])
      try await server.start()
      let silent = try await SimulatedClient.connect(
        to: server.addresses[0], on: simulation.mainLoop)
      try await silent.waitForEnd()
      await server.shutDown()
      return failure
    }
    let late = "did not complete the handshake of TLS in time"
    #expect(error?.detail == "the server \(late) (timeouts.connect: 4.0 seconds)")
    let ending = "the client \(late) (timeouts.firstFrame: 3.0 "
    let told = log.all.compactMap { $0.metadata["detail"] }
    #expect(told.contains { $0.hasPrefix(ending) }, "\(told)")
  }
}
