// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Testing

/// Requests between a client and a server with TLS between them.
@Suite struct RoundTripTests {
  @Test func `requests go over TLS in a simulation`() async throws {
    let (answers, simulation) = try await World.simulate(World.Parts()) { world in
      var answers: [[UInt8]] = []
      for size in [0, 1, 1_000, 16_384, 300_000] {
        answers.append(try await world.client.request(World.echo, Array(repeating: 7, count: size)))
      }
      return answers
    }
    #expect(answers.map(\.count) == [0, 1, 1_000, 16_384, 300_000])
    #expect(simulation.openStreams == [])
    #expect(simulation.pendingTimers == [])
  }

  @Test func `requests go over TLS on loopback`() async throws {
    let size = try await World.overLoopback(World.Parts()) { world in
      var sum = 0
      for size in [0, 1, 1_000, 16_384, 3_000_000] {
        sum += try await world.client.request(World.echo, Array(repeating: 7, count: size)).count
      }
      return sum
    }
    #expect(size == 3_017_385)
  }

  @Test(arguments: [LinkConditions.byteByByte, .unsteady, .weakRadio])
  func `records may be cut anywhere`(conditions: LinkConditions) async throws {
    let (answer, _) = try await World.simulate(World.Parts(), conditions: conditions) { world in
      try await world.client.request(World.echo, Array(repeating: 9, count: 20_000))
    }
    #expect(answer == Array(repeating: 9, count: 20_000))
  }
}
