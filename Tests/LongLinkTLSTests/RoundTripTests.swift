// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import LongLinkTransport
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

  @Test func `clients and servers of several loops share contexts and tickets`() async throws {
    var parts = try World.Parts()
    parts.server.loops = 2
    try await World.overLoopback(parts) { [parts] world in
      let loops = try (0..<2).map { try EventLoop(name: "clients-\($0)") }
      let sum = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<24 {
          group.addTask {
            let client = try LongLinkClient(
              parts.realClient(of: world.server.endpoint), on: loops[number % 2])
            let body = [UInt8](repeating: 1, count: number * 3_000)
            let answer = try await client.request(World.echo, body)
            await client.close()
            return answer.count
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(sum == (0..<24).reduce(0, +) * 3_000)
      for loop in loops { loop.shutDown() }
    }
  }

  @Test func `a Unix socket needs a name to verify`() async throws {
    let folder = try Folder()
    let endpoint = Endpoint.unix(path: "\(folder.path)/socket")
    for name in [nil, "server.test"] {
      var parts = try World.Parts(.trusting { $0.serverName = name })
      parts.server.listen = [endpoint]
      let server = try World.makeServer(parts, on: [])
      try await server.start()
      let client = try LongLinkClient(parts.realClient(of: endpoint))
      do throws(LongLinkError) {
        try await client.connect()
        #expect(try await client.request(World.echo, [1]) == [1])
        #expect(name != nil)
      } catch {
        #expect(name == nil)
        #expect(error.securityFailure?.code == .nameMismatch)
        #expect(error.detail.contains("serverName"))
      }
      await client.close()
      await server.shutDown(within: .zero)
    }
  }

  @Test(arguments: [LinkConditions.byteByByte, .unsteady, .weakRadio])
  func `records may be cut anywhere`(conditions: LinkConditions) async throws {
    let (answer, _) = try await World.simulate(World.Parts(), conditions: conditions) { world in
      try await world.client.request(World.echo, Array(repeating: 9, count: 20_000))
    }
    #expect(answer == Array(repeating: 9, count: 20_000))
  }
}
