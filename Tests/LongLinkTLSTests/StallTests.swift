// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Testing

/// Handshakes that stand still.
@Suite struct StallTests {
  /// Silence from a byte of the connection on; in the end both sides have given up.
  @Test(arguments: [0, 1, 100, 228, 600, 900, 1_050])
  func `a handshake that stands still ends by the timeouts of both sides`(
    bytes: Int
  ) async throws {
    var parts = try World.Parts()
    parts.client.timeout = .seconds(120)
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
}
