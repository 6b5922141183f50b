// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Suspension, other servers, and all that moves a client, in any order.
@Suite struct SwitchingTests {
  @Test func `servers may be switched by the very request that a drain has ended`() async throws {
    try await Stage.simulate { stage, _ in
      let goOn = Latch()
      let old = try await stage.serve(named: 1, until: goOn) {
        $0.drain.spread = .zero
        $0.limits.maxInFlight = 1
      }
      let new = try await stage.serve(named: 2)
      let client = try stage.client(of: old, new)
      _ = try await client.request(.echo, [0])
      let slow = try await stage.hang(client, on: old, [0])
      // It waits for room, and not for another connection.
      let ended = Tally<LongLinkError.Code>()
      client.request(
        .echo, [0], options: RequestOptions(waitsForConnection: false), on: .connectionLoop
      ) {
        result in
        if case .failure(let error) = result { ended.add(error.code) }
        try? client.switchServers(to: new.endpoints.map { ServerEntry($0) })
      }
      try await stage.until { await client.counters().requestsWaiting == 1 }
      let shutting = stage.spawn { await old.shutDown(within: .seconds(100)) }
      #expect(try await client.request(.echo, [1]) == [1, 2])
      #expect(ended.elements == [.notConnected])
      goOn.open()
      #expect(try await slow.value == [0, 1])
      try await shutting.value
    }
  }

  // MARK: Suspension

  @Test func `a suspended client does not connect, and sends waiting requests when it resumes`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(named: 1)
      let client = try stage.client(of: server)
      _ = try await client.request(.echo, [0])
      let slow = try await stage.hang(client, on: server, [0])
      await client.suspend()
      #expect(client.state == .suspended)
      let lost = try await failure { try await slow.value }
      #expect(lost.code == .connectionLost && lost.delivery == .sent && lost.closeReason == .left)
      for error in [
        try await failure { try await client.connect() },
        try await failure { try await client.ping() },
        try await failure {
          try await client.request(
            .echo, [1], options: RequestOptions(waitsForConnection: false))
        },
      ] {
        #expect(error.code == .notConnected && error.delivery == .notSent)
      }
      let waits = client.submit(.echo, [2], options: .patient)
      let expires = client.submit(.echo, [3], options: RequestOptions(timeout: .seconds(5)))
      try await simulation.sleep(for: .seconds(1_000))
      #expect(try await failure { try await expires.value }.code == .deadlineExceeded)
      #expect(client.state == .suspended && simulation.network.links.isEmpty)
      let resumed = simulation.now
      client.resume()
      #expect(try await waits.value == [2, 1])
      #expect(resumed.duration(to: simulation.now) < .milliseconds(10))
      #expect(await client.counters().connects == 2)
    }
  }

  @Test func `a suspended client has no timer`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(named: 1)
      let client = try stage.client(of: server)
      _ = try await client.request(.echo, [0])
      await client.suspend()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(simulation.pendingTimers == [])
      await client.suspend()
      await client.close()
      #expect(client.state == .closed)
      await client.suspend()
      client.resume()
      #expect(client.state == .closed)
    }
  }

  @Test func `what is in flight may be answered before the suspension`() async throws {
    try await Stage.simulate { stage, simulation in
      let (_, client, slow, goOn) = try await stage.busy()
      let suspending = stage.spawn { await client.suspend(within: .seconds(10)) }
      try await stage.until { client.state == .suspended }
      let waits = client.submit(.echo, [2], options: .patient)
      try await simulation.sleep(for: .seconds(1))
      goOn.open()
      #expect(try await slow.value == [0, 1])
      try await suspending.value
      #expect(simulation.network.links.isEmpty)
      client.resume()
      #expect(try await waits.value == [2, 1])
    }
  }

  @Test func `a client that was resumed before its links had ended is not held up by them`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (_, client, slow, goOn) = try await stage.busy()
      let suspending = stage.spawn { await client.suspend(within: .seconds(100)) }
      try await stage.until { client.state == .suspended }
      client.resume()
      try await suspending.value
      #expect(try await client.request(.echo, [1]) == [1, 1])
      goOn.open()
      #expect(try await slow.value == [0, 1])
    }
  }

  // MARK: Other servers

  @Test(arguments: TestEnvironment.allCases)
  func `after a switch nothing new goes to the old server`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let new = try await stage.serve(named: 2)
      let (old, client, slow, goOn) = try await stage.busy()
      try client.switchServers(to: [ServerEntry(new.endpoints[0])])
      let tasks = (1...5).map { client.submit(.echo, [$0], options: .patient) }
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index + 1), 2])
      }
      goOn.open()
      #expect(try await slow.value == [0, 1])
      try await stage.until { await old.counters().openConnections == 0 }
      #expect(await client.counters().requests.succeeded == 6)
    }
  }

  @Test func `environments are known by their names`() async throws {
    try await Stage.simulate { stage, _ in
      let (first, second) = (try await stage.serve(named: 1), try await stage.serve(named: 2))
      let environments = [
        "production": [ServerEntry(first.endpoints[0])],
        "staging": [ServerEntry(second.endpoints[0])],
      ]
      let client = try stage.client(of: first) { configuration in
        let logger = configuration.logger
        configuration = ClientConfiguration(environments: environments, initial: "production")
        configuration.logger = logger
      }
      #expect(try await client.request(.echo, [0]) == [0, 1])
      try client.switchEnvironment(to: "staging")
      #expect(try await client.request(.echo, [0]) == [0, 2])
      try client.switchEnvironment(to: "production")
      #expect(try await client.request(.echo, [0]) == [0, 1])
      let unknown = try await failure { try client.switchEnvironment(to: "local") }
      #expect(unknown.code == .invalidConfiguration && unknown.detail.contains("local"))
      let none = try await failure { try client.switchServers(to: []) }
      #expect(none.code == .invalidConfiguration && none.operation == "check `servers`")
      let nowhere = ClientConfiguration(environments: environments, initial: "local")
      #expect(throws: LongLinkError.self) { try nowhere.validate() }
    }
  }

  @Test func `a switch to a list with the same server keeps the link`() async throws {
    try await Stage.simulate { stage, _ in
      let (first, second) = (try await stage.serve(named: 1), try await stage.serve(named: 2))
      let client = try stage.client(of: first)
      _ = try await client.request(.echo, [0])
      try client.switchServers(to: [
        ServerEntry(first.endpoints[0]), ServerEntry(second.endpoints[0]),
      ])
      #expect(try await client.request(.echo, [0]) == [0, 1])
      #expect(await client.counters().connects == 1)
    }
  }

  // MARK: All of it, in any order

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `whatever moves, every request ends once and idempotent ones succeed`(
    _ seed: UInt64
  ) async throws {
    try await Stage.simulate(seed: seed) { stage, simulation in
      let servers = [try await stage.serve(named: 1), try await stage.serve(named: 2)]
      let client = try stage.client(of: servers[0], servers[1]) {
        $0.reconnect = ReconnectPolicy(
          afterClose: .milliseconds(100), afterLostHeartbeat: .milliseconds(200),
          afterRefused: .milliseconds(100), cap: .seconds(1))
        $0.reconnect.preferredRetry = .seconds(1)
        $0.reconnect.coolDown = .milliseconds(500)
        $0.reconnect.longestCoolDown = .seconds(1)
        $0.timeouts.lingering = .seconds(5)
      }
      let tasks = Tally<RequestTask<[UInt8]>>()
      var dice = SeededGenerator(seed: seed)
      for index in 0..<300 {
        tasks.add(client.submit(.echo, [UInt8(index % 256)], options: .patient))
        switch Int.random(in: 0..<12, using: &dice) {
        case 0: client.pathChanged()
        case 1: try client.switchServers(to: [ServerEntry(servers[index % 2].endpoints[0])])
        case 2: try client.switchServers(to: ServerEntry.both(servers))
        case 3:
          await client.suspend()
          client.resume()
        case 4:
          for peer in await servers[index % 2].peers() {
            stage.spawn { await servers[0].drain(peer, within: .seconds(1)) }
          }
        default:
          try await simulation.sleep(for: .milliseconds(Int.random(in: 0..<40, using: &dice)))
        }
      }
      var failed = 0
      for (index, task) in tasks.elements.enumerated() {
        do {
          #expect(try await task.value.first == UInt8(index % 256))
        } catch let error as LongLinkError {
          // A link that was given up at once may have carried it.
          #expect(error.code == .connectionLost && error.delivery == .sent, "\(error)")
          failed += 1
        }
      }
      #expect(failed < 60, "\(failed)")
      try await stage.until { await servers[0].counters().requestsRunning == 0 }
      let handled =
        await servers[0].counters().connections.handled
        + servers[1].counters().connections.handled
      #expect(handled <= 300 && handled >= UInt64(300 - failed))
    }
  }
}

extension ServerEntry {
  fileprivate static func both(_ servers: [LongLinkServer]) -> [ServerEntry] {
    servers.enumerated().map { ServerEntry($1.endpoints[0], priority: $0) }
  }
}
