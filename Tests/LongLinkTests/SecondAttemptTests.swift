// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Connects whose packets are lost, and servers that many clients come back to.
@Suite struct SecondAttemptTests {
  /// The cuts begin at once; the client notices after two seconds, and then connects.
  @Test(arguments: [2_500, 3_500, 4_500, 5_200, 5_900])
  func `a cut of some seconds is followed by a second of waiting at most`(
    milliseconds: Int
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.heartbeat = Heartbeat(interval: .seconds(1), timeout: .seconds(1))
        $0.reconnect.afterLostHeartbeat = .milliseconds(1)
        $0.timeouts.request = .seconds(60)
      }
      try await client.connect()
      for link in simulation.network.links { link.silence() }
      simulation.network.connects = .ignored
      try await simulation.sleep(for: .milliseconds(milliseconds))
      simulation.network.connects = .normal
      let healed = simulation.now
      #expect(try await client.request(.echo, [1]) == [1])
      let time = healed.duration(to: simulation.now)
      #expect(time <= .milliseconds(1_050), "\(time)")
      // The loser of the race is closed.
      try await simulation.sleep(for: .seconds(5))
      #expect(await client.counters().connects == 2)
      #expect(simulation.network.links.count == 1)
    }
  }

  /// What a server does for some seconds after all clients have lost it.
  enum Recovery: CaseIterable {
    case refuses
    case acceptsSlowly
    case isCutOff
  }

  @Test(arguments: Recovery.allCases)
  func `a server that recovers gets no more connections than clients`(
    _ recovery: Recovery
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let isSlow = Mutex(false)
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { _ in
          if isSlow.withLock({ $0 }) { try await stage.serverLoop.sleep(for: .seconds(4)) }
          return Authentication(Principal("ann"))
        }
      })
      let clients = try (0..<40).map { _ in
        try stage.client(of: server) { $0.reconnect.cap = .seconds(2) }
      }
      for client in clients { #expect(try await client.request(.echo, [1]) == [1]) }
      let accepted = await server.counters().connectionsAccepted
      switch recovery {
      case .refuses: simulation.network.connects = .refused
      case .acceptsSlowly: isSlow.withLock { $0 = true }
      case .isCutOff: simulation.network.connects = .ignored
      }
      simulation.network.loseAllLinks()
      try await simulation.sleep(for: .seconds(10))
      simulation.network.connects = .normal
      isSlow.withLock { $0 = false }
      for client in clients { #expect(try await client.request(.echo, [1]) == [1]) }
      var seconds: UInt64 = 0
      for client in clients {
        let counters = await client.counters()
        seconds += counters.secondAttempts
      }
      let more = await server.counters().connectionsAccepted - accepted
      switch recovery {
      case .refuses, .acceptsSlowly:
        #expect(seconds == 0 && more == 40)
      case .isCutOff:
        // One for each round of ten seconds; both attempts may arrive before one has won.
        #expect(seconds >= 40 && seconds <= 80, "\(seconds)")
        #expect(more >= 40 && more <= 80, "\(more)")
      }
      try await simulation.sleep(for: .seconds(5))
      #expect(await server.counters().openConnections == 40)
    }
  }
}
