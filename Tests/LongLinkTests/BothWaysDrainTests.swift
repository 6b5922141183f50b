import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Drains while requests of the server are under way.
@Suite struct BothWaysDrainTests {
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
