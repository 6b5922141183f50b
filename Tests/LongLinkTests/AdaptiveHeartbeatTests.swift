// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// A client that looks for the longest interval that its network allows.
@Suite struct AdaptiveHeartbeatTests {
  private final class Memory: Sendable {
    private let learned = Mutex<[String: String]>([:])

    func load(network: String) -> String? { learned.withLock { $0[network] } }

    func store(_ learned: String, network: String) {
      self.learned.withLock { $0[network] = learned }
    }
  }

  private static let heartbeat = Heartbeat(interval: .seconds(300), timeout: .seconds(10))
  private static let policy = AdaptiveHeartbeat(
    shortest: .seconds(30), step: .seconds(60), successes: 2, backOff: .seconds(60), failures: 2)

  /// A router on the way that forgets connections which say nothing for so long.
  private func router(
    in simulation: Simulation, forgettingAfter limit: Duration
  ) -> Task<Void, any Error> {
    simulation.spawn {
      var heard: [Int: (bytes: Int, at: LinkInstant)] = [:]
      while true {
        for link in simulation.network.links {
          let bytes = link.bytesWritten()
          if heard[link.number]?.bytes != bytes {
            heard[link.number] = (bytes, simulation.now)
          } else if heard[link.number]!.at.duration(to: simulation.now) >= limit {
            link.silence()
          }
        }
        try await simulation.sleep(for: .seconds(1))
      }
    }
  }

  /// Runs a body with a client on a network, of which it has learned 240 s with so many failures.
  private static func run(
    in environment: TestEnvironment = .simulated, knowing failures: Int? = nil,
    on network: String = "train", forgets: Bool = false, serverHeartbeat: Heartbeat = heartbeat,
    connectTimeout: Duration = .seconds(10),
    _ body:
      @escaping @Sendable (Stage, LongLinkServer, LongLinkClient, Memory) async throws -> Void
  ) async throws {
    let memory = Memory()
    if let failures {
      let learned = LearnedHeartbeat(interval: .seconds(240), failures: failures)
      memory.store(learned.text, network: network)
    }
    try await Stage.pair(in: environment) {
      $0.heartbeat = heartbeat
      $0.adaptiveHeartbeat = policy
      $0.timeouts.connect = connectTimeout
      guard !forgets else { return }
      $0.adaptiveHeartbeat?.load = { memory.load(network: $0) }
      $0.adaptiveHeartbeat?.store = { memory.store($0, network: $1) }
    } server: {
      $0.heartbeat = serverHeartbeat
    } _: { stage, server, client in
      if !forgets { client.pathChanged(network: network) }
      try await client.connect()
      try await body(stage, server, client, memory)
    }
  }

  /// How many pings leave in an hour.
  private func pings(_ client: LongLinkClient, _ simulation: Simulation) async throws -> UInt64 {
    let before = await client.counters().connections.pingsSent
    try await simulation.sleep(for: .seconds(3_600))
    return await client.counters().connections.pingsSent - before
  }

  @Test func `the search settles below the time after which the path forgets, and is remembered`()
    async throws
  {
    try await Self.run(on: "home") { stage, _, client, memory in
      let simulation = stage.simulation!
      let router = router(in: simulation, forgettingAfter: .seconds(200))
      // 30, 90 and 150 s hold, 210 s do not: it is tried twice.
      try await simulation.sleep(for: .seconds(7_200))
      let settled = LearnedHeartbeat(interval: .seconds(150), failures: 2).text
      #expect(memory.load(network: "home") == settled)
      let counters = await client.counters()
      #expect(counters.endings["heartbeatLost"] == 2)
      #expect(counters.connects == 3)
      #expect((23...24).contains(try await pings(client, simulation)))

      client.pathChanged(network: "elsewhere")
      try await simulation.sleep(for: .seconds(100))
      #expect(memory.load(network: "elsewhere") == nil)
      client.pathChanged(network: "home")
      #expect((23...24).contains(try await pings(client, simulation)))
      #expect(await client.counters().connects == 5)
      router.cancel()
      _ = await router.result
    }
  }

  @Test func `data lost on a path that has forgotten the connection counts as a loss`() async throws
  {
    try await Self.run(knowing: 0) { stage, _, client, memory in
      let simulation = stage.simulation!
      let router = router(in: simulation, forgettingAfter: .seconds(200))
      try await simulation.sleep(for: .seconds(230))
      let error = try await failure {
        try await client.request(.echo, [1], options: RequestOptions(timeout: .seconds(100)))
      }
      #expect(error.closeReason == .heartbeatLost)
      let learned = LearnedHeartbeat(interval: .seconds(180), failures: 1).text
      #expect(memory.load(network: "train") == learned)
      router.cancel()
      _ = await router.result
    }
  }

  @Test func `a link that is lost in its trial counts as a loss`() async throws {
    try await Self.run(in: .bothWays, knowing: 0, connectTimeout: .seconds(500)) {
      stage, server, client, memory in
      let simulation = stage.simulation!
      try await stage.cut(server, client)
      let before = memory.load(network: "train")
      try await stage.until { await server.peers().count == 1 }
      try await simulation.sleep(for: .seconds(200))
      for link in simulation.network.links(to: server.addresses[0]) { link.silence() }
      try await stage.until { await client.counters().trialsFailed == 1 }
      let learned = LearnedHeartbeat(interval: .seconds(180), failures: 1).text
      #expect(memory.load(network: "train") == learned && before != learned)
    }
  }

  @Test func `a client begins with the interval that was learned before`() async throws {
    try await Self.run(knowing: 2) { stage, _, client, _ in
      let pings = try await pings(client, stage.simulation!)
      #expect((14...15).contains(pings))
    }
  }

  @Test func `on a path that forgets nothing the interval grows to the heartbeat's own`()
    async throws
  {
    try await Self.run(forgets: true) { stage, _, client, _ in
      let simulation = stage.simulation!
      try await simulation.sleep(for: .seconds(3_600))
      // Now and then the server's ping comes first.
      #expect(try await pings(client, simulation) <= 12)
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `nothing longer than the server allows is tried`() async throws {
    try await Self.run(
      forgets: true,
      serverHeartbeat: Heartbeat(interval: .seconds(60), timeout: .seconds(10))
    ) { stage, _, client, _ in
      let simulation = stage.simulation!
      try await simulation.sleep(for: .seconds(3_600))
      simulation.network.links[0].silence()
      let silenced = simulation.now
      for await state in client.states() {
        if case .waiting = state { break }
      }
      #expect(silenced.duration(to: simulation.now) <= .seconds(70) + .milliseconds(5))
    }
  }
}
