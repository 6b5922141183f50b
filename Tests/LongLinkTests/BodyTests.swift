// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Bodies of every size.
@Suite struct BodyTests {
  private func body(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `bodies around the size of a fragment`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      for count in [0, 1, 65_534, 65_535, 65_536, 65_537, 131_072, 131_073, 1_000_000] {
        let body = body(count)
        let answer = try await client.request(.echo, body)
        #expect(answer == body, "\(count)")
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the largest body is carried and one byte more is not`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in [UInt8]("\(request.body.count)".utf8) }
      server.route(4) { _ in [UInt8](repeating: 9, count: 16_777_216) }
      server.route(5) { _ in [UInt8](repeating: 9, count: 16_777_217) }
    } client: {
      $0.timeouts.request = .seconds(600)
    } _: { _, _, client in
      // The metadata that tells the deadline is part of the body.
      let largest = [UInt8](repeating: 7, count: 16_777_216 - 64)
      #expect(try await client.request(.echo, largest) == Array("16777152".utf8))
      let error = try await failure {
        try await client.request(.echo, [UInt8](repeating: 7, count: 16_777_217))
      }
      #expect(error.code == .tooLarge && error.delivery == .notSent)
      #expect(try await client.request(4, [UInt8]()).count == 16_777_216)
      let answer = try await failure { try await client.request(5, [UInt8]()) }
      #expect(answer.response == .failed)
    }
  }

  @Test func `a large body holds up neither a ping nor small requests`() async throws {
    try await Stage.simulate { stage, simulation in
      // 64 KiB in 50 ms at most: 4,000,000 bytes take three seconds each way.
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(50) ... .milliseconds(50),
        window: 65_536
      )
      let server = try await stage.serve()
      let client = try stage.client(of: server) { $0.timeouts.request = .seconds(600) }
      try await client.connect()
      let began = simulation.now
      let body = body(4_000_000)
      let large = client.submit(.echo, body)
      try await simulation.sleep(for: .milliseconds(100))
      var slowest = Duration.zero
      while await large.state != .completed {
        let asked = simulation.now
        #expect(try await client.request(.echo, [1]) == [1])
        _ = try await client.ping()
        slowest = max(slowest, asked.duration(to: simulation.now))
        try await simulation.sleep(for: .milliseconds(100))
      }
      #expect(try await large.value == body)
      #expect(began.duration(to: simulation.now) > .seconds(6))
      // What stands before them in the outbox and on the way, twice, and no more.
      #expect(slowest < .seconds(1))
    }
  }

  @Test func `large bodies share a connection`() async throws {
    try await Stage.pair(client: { $0.timeouts.request = .seconds(600) }) { _, server, client in
      let bodies = (0..<6).map { body(200_000 + $0 * 50_001) }
      let tasks = bodies.map { client.submit(.echo, $0) }
      for (task, body) in zip(tasks, bodies) {
        let answer = try await task.value
        #expect(answer == body)
      }
      #expect(await server.counters().connections.requestsReceived == 6)
    }
  }
}
