// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import Testing

/// A server hears of the ends of its sessions.
@Suite struct SessionEndTests {
  @Test(arguments: World.allCases)
  func `each session that began ends once`(_ world: World) async throws {
    try await Stage.run(world) { stage in
      let begun = Tally<UInt64>()
      let ended = Tally<UInt64>()
      let server = try await stage.serve { server in
        server.onSessionOpen { begun.add($0.id) }
        server.onSessionEnd { ended.add($0.id) }
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
