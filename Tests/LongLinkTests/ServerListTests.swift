// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Lists of servers in order, and balanced ones.
@Suite struct ServerListTests {
  /// How many of 1,000 clients of three servers use each, after all have connected.
  private func spread(
    seed: UInt64 = 1, _ list: @escaping @Sendable ([Endpoint]) -> [ServerEntry]
  ) async throws -> [Int] {
    let counts = Tally<Int>()
    try await Stage.simulate(seed: seed) { stage, _ in
      var servers: [LongLinkServer] = []
      for _ in 0..<3 {
        servers.append(
          try await stage.serve(configure: {
            $0.addresses.maxConnections = 10_000
            $0.addresses.maxConnectionRate = 1_000_000
          }))
      }
      let entries = list(servers.flatMap(\.endpoints))
      for _ in 0..<1_000 {
        let client = try stage.client(to: []) {
          $0.servers = entries
        }
        try await client.connect()
      }
      for server in servers { counts.add(await server.counters().openConnections) }
    }
    return counts.elements
  }

  @Test(arguments: 1...2 as ClosedRange<UInt64>)
  func `many clients of a balanced list spread`(_ seed: UInt64) async throws {
    let counts = try await spread(seed: seed) { .balanced($0) }
    // A third each, and five standard deviations, of 15, on either side.
    #expect(counts.allSatisfy { (333 - 75...333 + 75).contains($0) }, "\(counts)")
    #expect(counts.reduce(0, +) == 1_000)
  }

  @Test func `weights of entries are the chances`() async throws {
    let counts = try await spread {
      zip($0, [1, 1, 2]).map { ServerEntry($0, weight: $1) }
    }
    #expect((500 - 80...500 + 80).contains(counts[2]), "\(counts)")
  }

  @Test func `all clients of a list in order use the first server`() async throws {
    #expect(try await spread { .inOrder($0) } == [1_000, 0, 0])
  }

  @Test func `the next server in order takes over, and the first one is returned to`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let servers = [
        try await stage.serve(named: 1), try await stage.serve(named: 2),
        try await stage.serve(named: 3),
      ]
      simulation.network.setConnects(.refused, to: servers[0].addresses[0])
      let client = try stage.client(to: []) {
        $0.servers = .inOrder(servers.flatMap(\.endpoints))
        $0.reconnect.preferredRetry = .seconds(10)
      }
      #expect(try await client.request(.echo, [0]) == [0, 2])
      simulation.network.setConnects(.normal, to: servers[0].addresses[0])
      try await stage.until { client.state == .connected(servers[0].addresses[0]) }
      #expect(try await client.request(.echo, [0]) == [0, 1])
    }
  }

  @Test func `a balanced client follows a drain to the server that it names, and no other`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let servers = [try await stage.serve(named: 1), try await stage.serve(named: 2)]
      let other = try await stage.serve(named: 3)
      let client = try stage.client(to: []) {
        $0.servers = .balanced(servers.flatMap(\.endpoints))
      }
      let first = try await client.request(.echo, [])[0]
      await servers[Int(first) - 1].shutDown(
        within: .seconds(10), alternatives: other.endpoints)
      try await stage.until { client.state == .connected(other.addresses[0]) }
      #expect(try await client.request(.echo, []) == [3])
    }
  }

  @Test func `both lists say who comes before whom`() {
    let endpoints = (1...3).map { Endpoint.host("10.0.0.\($0)", port: 1) }
    let (ordered, balanced): ([ServerEntry], [ServerEntry]) = (
      .inOrder(endpoints), .balanced(endpoints)
    )
    #expect(ordered.map(\.priority) == [0, 1, 2] && ordered.map(\.endpoint) == endpoints)
    #expect(balanced.map(\.priority) == [0, 0, 0] && balanced.map(\.weight) == [1, 1, 1])
    #expect(ClientConfiguration(servers: endpoints).servers == ordered)
  }
}
