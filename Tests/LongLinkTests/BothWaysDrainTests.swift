import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Drains while requests of the server are under way.
@Suite struct BothWaysDrainTests {
  @Test func `a server drains no session of another one`() async throws {
    try await Stage.simulate { stage, _ in
      let (one, other) = (try await stage.serve(), try await stage.serve())
      let clients = (try stage.client(of: one), try stage.client(of: other))
      try await clients.0.connect()
      try await clients.1.connect()
      let session = try #require(await other.sessions().first)
      #expect(await one.sessions().first?.id == session.id)
      await one.drain(session, within: .zero)
      #expect(await one.counters().sessions == 1)
      #expect(await other.counters().sessions == 1)
    }
  }

  @Test func `a refused request that does not wait is not kept for a link to come`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 80))
      server.on(
        .echo,
        [.sequence([.goAway(retryAfter: .seconds(1)), .refuse(.overloaded, "no")]), .reply([2])])
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      try await client.connect()
      let error = try await failure {
        try await client.request(.echo, [1], options: RequestOptions(offline: .fail))
      }
      #expect(error.response == .overloaded && error.delivery == .refused)
      await server.stop()
    }
  }
}
