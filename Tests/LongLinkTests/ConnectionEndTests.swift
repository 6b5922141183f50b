// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import Testing

/// A server hears of the ends of its connections.
@Suite struct ConnectionEndTests {
  @Test(arguments: TestEnvironment.allCases)
  func `each connection that began ends once`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let begun = Tally<UInt64>()
      let ended = Tally<UInt64>()
      let server = try await stage.serve { server in
        server.onConnect { begun.add($0.id) }
        server.onDisconnect { ended.add($0.id) }
      }
      let first = try stage.client(of: server)
      let second = try stage.client(of: server)
      try await first.connect()
      try await second.connect()
      await begun.reached(2)
      #expect(ended.elements.isEmpty)
      await first.close()
      await ended.reached(1)
      #expect(ended.elements == [begun.elements[0]])
      await server.shutDown(within: .zero)
      #expect(ended.elements == begun.elements)
    }
  }
}
