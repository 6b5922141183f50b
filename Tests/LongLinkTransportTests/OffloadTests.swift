// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

/// Work that may block.
@Suite struct OffloadTests {
  @Test func `work that blocks runs off the loop`() async throws {
    let loop = try EventLoop()
    let (places, place) = AsyncStream.makeStream(of: Bool.self)
    loop.execute {
      loop.offload { place.yield(loop.isCurrent) }
    }
    #expect(await places.first { _ in true } == false)
    loop.shutDown()
  }
}
