// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Events in an order that is easy to get wrong.
@Suite struct EventOrderTests {
  @Test func `a request that a closing client has encoded is not reported as unsent`() async throws
  {
    let handled = Tally<Void>()
    try await Stage.serving { server in
      server.route(.echo) { request in
        handled.add(())
        return request.body
      }
    } _: { _, server, client in
      try await client.connect()
      let handle = client.submit(.echo, [1])
      await client.close(within: .zero)
      let error = try await failure { try await handle.value }
      await server.shutDown()
      #expect(error.delivery == .sent || handled.count == 0)
    }
  }

  @Test func `a connection that responses push over the unread bound ends, and the server lives`()
    async throws
  {
    try await Stage.serving { server in
      server.route(.echo) { request in
        try await request.clock.sleep(for: .milliseconds(1))
        return [UInt8](repeating: 1, count: 900_000)
      }
    } server: {
      $0.limits.maxBody = 1_000_000
      $0.limits.maxUnreadOutput = 1_000_000
      $0.limits.waterMarks = WaterMarks(high: 1_000_000, low: 0)
    } _: { _, server, client in
      try await client.connect()
      let handles = (0..<20).map { _ in client.submit(.echo, [1]) }
      for handle in handles { _ = try? await handle.value }
      let counters = await server.counters()
      #expect(counters.endings["unreadOutput", default: 0] >= 1)
      #expect(counters.openConnections <= 1)
    }
  }

  @Test func `a server that could not listen is started again`() async throws {
    try await Stage.simulate { stage, _ in
      let first = try await stage.serve()
      let taken = first.endpoint
      let second = try LongLinkServer(listen: taken, on: [stage.serverLoop])
      let error = await #expect(throws: LongLinkError.self) { try await second.start() }
      #expect(error?.code == .connectFailed)
      await first.shutDown()
      try await second.start()
      #expect(second.endpoint == taken)
      await second.shutDown()
    }
  }
}
