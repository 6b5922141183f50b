// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

/// Clients that move to a connection that is being prepared.
extension PrepareTests {
  // MARK: Beside short links

  /// A server whose long link was cut, and the next one of whose client stands a trial.
  private static func trial(
    prepare: @Sendable @escaping (Stage, Int) async throws -> Void,
    client: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    setUp: @Sendable @escaping (LongLinkClient) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.run(.bothWays) { stage in
      let (calls, server) = (Tally<Void>(), try await stage.serve())
      _ = try await stage.gateway(for: server)
      let client = try stage.client(of: server) {
        $0.ways = [.longLink, .short]
        $0.timeouts.connect = .seconds(20)
        $0.prepare = { [unowned stage] _ in
          calls.add(())
          try await prepare(stage, calls.count)
        }
        client(&$0)
      }
      setUp(client)
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      try await body(stage, server, client)
    }
  }

  @Test func `a connection that the application closes in its trial says so`() async throws {
    let lines = LogLines()
    try await Self.trial(
      prepare: { _, _ in }, client: { $0.logger = lines.logger },
      setUp: { client in
        client.onRequest(9) { request in
          request.peer.close()
          return []
        }
      }
    ) { stage, server, client in
      _ = try? await server.peers()[0].request(9, [])
      try await stage.until { await client.counters().trialsFailed == 1 }
      let line = try #require(lines.all("Could not connect").first)
      #expect(line.metadata["reason"] == "closedHere", "\(line)")
      #expect(line.metadata["detail"] == "the application has closed the connection", "\(line)")
    }
  }
}
