// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Testing

/// Servers that tell clients when to come again and where to go, with the worst in mind.
@Suite struct HintTests {
  private func serve(_ stage: Stage, host: UInt8) async throws -> SimulatedServer {
    let server = try await SimulatedServer.start(
      on: stage.serverLoop, at: .ipv4(10, 0, 0, host, port: 4000))
    server.on(.echo) { .reply($0.body + [host]) }
    return server
  }

  private func endpoint(_ host: UInt8) -> Endpoint { .host("10.0.0.\(host)", port: 4000) }

  private static let farAway = Duration.milliseconds(Int64(UInt32.max))

  /// What a server says that wants to be left alone for 99 days.
  private static func farewell(inPlaceOfWelcome: Bool) -> ServerHandshake {
    let goaway = WireFrame.goAway(code: .draining, spread: farAway, retryAfter: farAway)
    return inPlaceOfWelcome ? .frames([goaway]) : .frames([.welcome(), goaway])
  }

  @Test(arguments: [true, false])
  func `no server keeps its clients away for longer than they allow`(
    inPlaceOfWelcome: Bool
  ) async throws {
    for seed: UInt64 in 1...10 {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let server = try await serve(stage, host: 1)
        server.handshake = Self.farewell(inPlaceOfWelcome: inPlaceOfWelcome)
        let client = try stage.client(to: [endpoint(1)])
        let begin = simulation.now
        let task = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(1_000)))
        try await server.waitForConnections(1)
        server.handshake = .normal
        #expect(try await task.value == [1, 1])
        #expect(begin.duration(to: simulation.now) < .seconds(302))
        await server.stop()
      }
    }
  }

  @Test(arguments: [true, false])
  func `a server's hint keeps its clients away from that server alone`(
    inPlaceOfWelcome: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let first = try await serve(stage, host: 1)
      let second = try await serve(stage, host: 2)
      first.handshake = Self.farewell(inPlaceOfWelcome: inPlaceOfWelcome)
      let client = try stage.client(to: [endpoint(1), endpoint(2)]) {
        $0.reconnect.preferredRetry = .seconds(10)
        $0.reconnect.longestCoolDown = .seconds(5)
      }
      let begin = simulation.now
      #expect(try await client.request(.echo, [1]) == [1, 2])
      #expect(begin.duration(to: simulation.now) < .seconds(3))
      // Nor is the other one tried for as long as that takes.
      #expect(first.connectionsAccepted == 1)
      try await first.waitForConnections(2)
      #expect(begin.duration(to: simulation.now) < .seconds(315))
      await first.stop()
      await second.stop()
    }
  }

  @Test(arguments: [nil, Duration.milliseconds(1)], [1, 2])
  func `servers that drain again and again cannot make a client spin`(
    retryAfter: Duration?, servers: Int
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let all = [try await serve(stage, host: 1), try await serve(stage, host: 2)]
      // Each answers one request and names the other, or itself.
      for (index, server) in all.enumerated() {
        let next = UInt8((index + 1) % servers + 1)
        server.on(
          .echo,
          .sequence([
            .reply(),
            .goAway(retryAfter: retryAfter, alternatives: ["10.0.0.\(next):4000"]),
          ]))
      }
      let client = try stage.client(to: [endpoint(1)])
      let end = simulation.now.advanced(by: .seconds(3_600))
      while simulation.now < end {
        _ = try? await client.request(.echo, [1])
        try await simulation.sleep(for: .milliseconds(1))
      }
      let connects = all.reduce(0) { $0 + $1.connectionsAccepted }
      #expect(connects >= 100 && connects < 400, "\(connects)")
      for server in all { await server.stop() }
    }
  }

  @Test(arguments: [(Duration.milliseconds(1), 45...50), (farAway, 1...1)])
  func `no server makes a client ping incessantly, or not at all`(
    interval: Duration, pings: ClosedRange<Int>
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await serve(stage, host: 1)
      server.handshake = .frames([
        .welcome(heartbeatInterval: interval, heartbeatTimeout: Self.farAway)
      ])
      let client = try stage.client(to: [endpoint(1)]) {
        $0.heartbeat = Heartbeat(interval: .seconds(6), timeout: .seconds(2))
      }
      try await client.connect()
      try await simulation.sleep(for: .seconds(10))
      #expect(await pings.contains(Int(client.counters().connections.pingsSent)))
      server.answersPings = false
      let begin = simulation.now
      try await stage.until { await client.counters().endings["heartbeatLost"] == 1 }
      #expect(begin.duration(to: simulation.now) < .seconds(9))
      await server.stop()
    }
  }

  @Test func `a refused request waits for no longer than the client allows`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await serve(stage, host: 1)
      let refusal = ServerAction.refuse(
        .overloaded, metadata: WireMetadata(retryAfter: Self.farAway))
      server.on(.hang, [refusal, .reply([7])])
      let client = try stage.client(to: [endpoint(1)])
      let begin = simulation.now
      let options = RequestOptions(timeout: .seconds(10_000_000))
      #expect(try await client.request(.hang, [1], options: options) == [7])
      let pause = begin.duration(to: simulation.now)
      #expect(pause >= .seconds(300) && pause < .seconds(301), "\(pause)")
      // One whose deadline is before that fails at once, with what the server said.
      server.on(.hang, refusal)
      let error = try await failure { try await client.request(.hang, [1]) }
      #expect(error.code == .rejected && error.retryAfter == Self.farAway)
      #expect(begin.duration(to: simulation.now) < pause + .seconds(1))
      await server.stop()
    }
  }
}
