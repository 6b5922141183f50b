// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkTesting
import LongLinkTransport
import Testing

/// Servers that greet their clients well, and do nothing else: what counts as a link that works.
@Suite struct ProofTests {
  private func serve(_ stage: Stage, host: UInt8) async throws -> SimulatedServer {
    try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(10, 0, 0, host, port: 4000))
  }

  private func observe(_ client: LongLinkClient) -> Tally<(LinkInstant, LinkEvent)> {
    let events = Tally<(LinkInstant, LinkEvent)>()
    client.observeLinks { events.add(($0, $1)) }
    return events
  }

  @Test(arguments: [true, false])
  func `a server that states a short heartbeat and closes is left more and more alone`(
    hasOther: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await serve(stage, host: 1)
      server.handshake = .frames([
        .welcome(heartbeatInterval: .milliseconds(200), heartbeatTimeout: .milliseconds(200))
      ])
      let other = try await serve(stage, host: 2)
      let client = try stage.client(to: [server.endpoint] + (hasOther ? [other.endpoint] : []))
      let events = observe(client)
      try await client.connect()
      for count in 1...(hasOther ? 1 : 6) {
        try await server.waitForConnections(count)
        // It has answered pings by then.
        try await simulation.sleep(for: .seconds(1))
        server.closeConnections()
        try await server.waitForEndings(count)
      }
      if hasOther {
        try await stage.until { client.state == .connected(.ipv4(10, 0, 0, 2, port: 4000)) }
      } else {
        try await stage.until { !client.state.isConnected }
        let windows = events.elements.compactMap { _, event in
          if case .waiting(_, let window, _, .unproven) = event { window } else { nil }
        }
        #expect(windows == [1, 2, 4, 8, 16, 30].map { .seconds($0) })
      }
      await server.stop()
      await other.stop()
    }
  }

  @Test func `a short heartbeat is enough for a server that goes on to answer`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await serve(stage, host: 1)
      server.handshake = .frames([
        .welcome(heartbeatInterval: .milliseconds(200), heartbeatTimeout: .milliseconds(200))
      ])
      let client = try stage.client(to: [server.endpoint])
      let events = observe(client)
      try await client.connect()
      let begin = simulation.now
      try await stage.until { events.elements.contains { $0.1 == .worked(1) } }
      let time = begin.duration(to: simulation.now)
      #expect((.seconds(9)...(.seconds(11))).contains(time), "\(time)")
      await server.stop()
    }
  }

  @Test func `a preferred server that is silent after its welcome is tried less and less`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let best = try await serve(stage, host: 1)
      best.answersPings = false
      let other = try await serve(stage, host: 2)
      let client = try stage.client(to: [best.endpoint, other.endpoint])
      let events = observe(client)
      try await client.connect()
      try await best.waitForEndings(8)
      let times = events.elements.compactMap { time, event in
        if case .attempt(_, _, best.endpoint, _, _) = event { time } else { nil }
      }
      let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
      #expect(gaps.count >= 7)
      #expect((gaps.last ?? 0) > 300_000_000_000, "\(gaps)")
      let lost = events.elements.compactMap { _, event in
        if case .ended(_, .heartbeatLost, let worked) = event { worked } else { nil }
      }
      #expect(lost.count >= 8 && !lost.contains(true))
      await best.stop()
      await other.stop()
    }
  }
}
