// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Moving from one link to another: drains and changed networks.
@Suite struct MovingTests {
  // MARK: Drains

  @Test(arguments: TestEnvironment.withPorts)
  func `a client goes to the server that the draining one names`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.run(environment) { stage in
      let new = try await stage.serve(named: 2)
      let (old, client, slow, goOn) = try await stage.busy()
      let shutting = stage.spawn {
        await old.shutDown(within: .seconds(1_000), alternatives: new.endpoints)
      }
      try await stage.until { client.state == .connected(new.addresses[0]) }
      #expect(try await client.request(.echo, [1]) == [1, 2])
      goOn.open()
      #expect(try await slow.value == [0, 1])
      try await shutting.value
      let counters = await client.counters()
      #expect(counters.failovers == 1 && counters.migrations == 1)
      #expect(counters.requests.succeeded == 2)
    }
  }

  @Test func `an error names the server that the request was sent to`() async throws {
    try await Stage.simulate { stage, _ in
      let goOn = Latch()
      let (old, new) = (
        try await stage.serve(named: 1, until: goOn), try await stage.serve(named: 2)
      )
      let client = try stage.client(of: old)
      let slow = client.submit(.hang, [0], options: RequestOptions(timeout: .seconds(60)))
      let unwanted = client.submit(.hang, [0], options: .patient)
      try await stage.running(2, on: old)
      let shutting = stage.spawn {
        await old.shutDown(within: .seconds(1_000), alternatives: new.endpoints)
      }
      try await stage.until { client.state == .connected(new.addresses[0]) }
      unwanted.cancel()
      for task in [unwanted, slow] {
        let error = try await failure { try await task.value }
        #expect(error.delivery == .sent)
        #expect(error.peer == old.addresses[0], "\(error)")
      }
      goOn.open()
      try await shutting.value
    }
  }

  @Test func `one connection is drained, and the others stay`() async throws {
    try await Stage.simulate { stage, simulation in
      let goOn = Latch()
      let (old, new) = (
        try await stage.serve(named: 1, until: goOn), try await stage.serve(named: 2)
      )
      let (moved, stays) = (try stage.client(of: old), try stage.client(of: old))
      _ = try await moved.request(.echo, [0])
      let peer = await old.peers()[0]
      _ = try await stays.request(.echo, [0])
      let slow = try await stage.hang(moved, on: old, [3])
      let draining = stage.spawn {
        await old.drain(peer, within: .seconds(100), alternatives: new.endpoints)
      }
      try await stage.until { moved.state == .connected(new.addresses[0]) }
      #expect(try await moved.request(.echo, [1]) == [1, 2])
      #expect(try await stays.request(.echo, [1]) == [1, 1])
      goOn.open()
      #expect(try await slow.value == [3, 1])
      try await draining.value
      #expect(await old.counters().openConnections == 1)
      // It has ended: there is nothing to wait for.
      let now = simulation.now
      await old.drain(peer)
      #expect(simulation.now == now)
    }
  }

  @Test func `a drained connection ends within the bound`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client, slow, _) = try await stage.busy()
      let began = simulation.now
      await server.drain(await server.peers()[0], within: .seconds(7))
      let time = began.duration(to: simulation.now)
      #expect(time >= .seconds(7) && time <= .seconds(7) + .milliseconds(5))
      #expect(try await failure { try await slow.value }.delivery == .sent)
      #expect(try await client.request(.echo, [1]) == [1, 1])
    }
  }

  @Test func `servers that a goaway names wrongly are ignored and counted`() async throws {
    try await Stage.simulate { stage, simulation in
      let new = try await stage.serve(named: 2)
      let old = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 9, port: 80))
      let names =
        ["", "nowhere", "::1:80", "\(new.endpoint)"] + (1...8).map { "10.0.0.\($0):1" }
      old.on(1, .sequence([.reply([7]), .goAway(alternatives: names)]))
      let client = try stage.client(to: [.host("10.0.0.9", port: 80)])
      #expect(try await client.request(.echo, [0]) == [7])
      try await stage.until { client.state == .connected(new.addresses[0]) }
      // Three are no servers, and four are past the eighth.
      #expect(await client.counters().alternativesIgnored == 7)
      await client.close()
      await old.stop()
    }
  }

  @Test func `alternatives can be ignored`() async throws {
    try await Stage.simulate { stage, _ in
      let (old, new) = (try await stage.serve(named: 1), try await stage.serve(named: 2))
      let client = try stage.client(of: old) { $0.reconnect.followsAlternatives = false }
      _ = try await client.request(.echo, [0])
      await old.shutDown(alternatives: new.endpoints)
      try await stage.until { if case .waiting = client.state { true } else { false } }
      #expect(await client.counters().alternativesIgnored == 1)
      #expect(await new.counters().connectionsAccepted == 0)
    }
  }

  @Test func `an abandoned link does not linger for ever`() async throws {
    try await Stage.simulate { stage, simulation in
      let (old, new) = (try await stage.serve(named: 1), try await stage.serve(named: 2))
      let client = try stage.client(of: old, new) { $0.timeouts.lingering = .seconds(20) }
      let slow = try await stage.hang(client, on: old, [0])
      let began = simulation.now
      let shutting = stage.spawn { await old.shutDown(within: .seconds(1_000)) }
      let error = try await failure { try await slow.value }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(error.closeReason == .left)
      let time = began.duration(to: simulation.now)
      #expect(time >= .seconds(20) && time < .seconds(20) + .milliseconds(10), "\(time)")
      #expect(await client.counters().linksExpired == 1)
      #expect(client.state == .connected(new.addresses[0]))
      try await shutting.value
    }
  }

  // MARK: The network

  @Test(arguments: TestEnvironment.allCases)
  func `another network makes another link before the old one is let go`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let (server, client, slow, goOn) = try await stage.busy()
      client.pathChanged(network: "home")
      try await stage.until { await client.counters().connects == 2 }
      #expect(try await client.request(.echo, [1]) == [1, 1])
      #expect(await server.counters().openConnections == 2)
      goOn.open()
      #expect(try await slow.value == [0, 1])
      try await stage.until { await server.counters().openConnections == 1 }
      let counters = await client.counters()
      #expect(counters.migrations == 1 && counters.failovers == 0)
    }
  }

  @Test func `a link that is full does not fill the next one`() async throws {
    try await Stage.simulate { stage, _ in
      let goOn = Latch()
      let server = try await stage.serve(named: 1, until: goOn) { $0.limits.maxInFlight = 2 }
      let client = try stage.client(of: server)
      let slow = (0..<2).map { client.submit(.hang, [$0], options: .patient) }
      try await stage.running(2, on: server)
      client.pathChanged()
      #expect(try await client.request(.echo, [9], options: .patient) == [9, 1])
      goOn.open()
      for (index, task) in slow.enumerated() { #expect(try await task.value == [UInt8(index), 1]) }
    }
  }

  @Test func `requests sent over a path that is gone end within the heartbeat's timeout`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (_, client, slow, _) = try await stage.busy()
      simulation.network.links[0].silence()
      let changed = simulation.now
      client.pathChanged(network: "mobile")
      try await stage.until { await client.counters().connects == 2 }
      #expect(changed.duration(to: simulation.now) < .milliseconds(20))
      #expect(try await client.request(.echo, [1]) == [1, 1])
      let error = try await failure { try await slow.value }
      #expect(error.closeReason == .heartbeatLost && error.delivery == .sent)
      // 10 s, not the 40 s that an idle link may take.
      #expect(changed.duration(to: simulation.now) <= .seconds(10) + .milliseconds(10))
    }
  }

  @Test func `another network ends a pause at once`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(named: 1)
      simulation.network.connects = .unreachable
      let client = try stage.client(of: server)
      let task = client.submit(.echo, [1], options: .patient)
      try await stage.until {
        if case .waiting(let wait) = client.state { wait > .seconds(5) } else { false }
      }
      simulation.network.connects = .normal
      let changed = simulation.now
      client.pathChanged()
      #expect(try await task.value == [1, 1])
      #expect(changed.duration(to: simulation.now) < .milliseconds(10))
    }
  }

  @Test func `a changed network that leads nowhere does not affect the good link`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(named: 1)
      let client = try stage.client(of: server)
      _ = try await client.request(.echo, [1])
      simulation.network.connects = .unreachable
      client.pathChanged()
      try await stage.until { await client.counters().failedAttempts == 1 }
      #expect(client.state == .connected(server.addresses[0]))
      #expect(try await client.request(.echo, [1]) == [1, 1])
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `the state shows the link that is being made`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(named: 1)
      let client = try stage.client(of: server)
      try await client.connect()
      let states = client.states()
      client.pathChanged()
      try await stage.until { await client.counters().connects == 2 }
      await client.close()
      var seen: [ConnectionState] = []
      for await state in states { seen.append(state) }
      let (address, endpoint) = (server.addresses[0], server.endpoints[0])
      #expect(
        seen == [
          .connected(address), .migrating(address, to: endpoint), .connected(address), .closed,
        ])
      #expect(seen.map(\.isConnected) == [true, true, true, false])
    }
  }

  @Test func `what the server has sent over a connection that is left arrives`() async throws {
    try await Stage.simulate { stage, simulation in
      let latency = Duration.milliseconds(1)...Duration.milliseconds(40)
      simulation.network.conditions = LinkConditions(latency: latency)
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      try await client.connect()
      let pushes = Tally<[UInt8]>()
      client.onPush(9) { pushes.add($0.body) }
      var sent = 0
      for network in 1...20 {
        client.pathChanged(network: "\(network)")
        for _ in 0..<200 {
          sent += try await server.broadcast(9, [1]).queued
          try await simulation.sleep(for: .milliseconds(1))
        }
        try await simulation.sleep(for: .seconds(2))
      }
      #expect(sent == 4_000 && pushes.count == 4_000)
      #expect(await server.counters().openConnections == 1)
    }
  }

  @Test(arguments: [Duration.zero, .seconds(5)])
  func `a client that is drained gets each push once`(_ spread: Duration) async throws {
    try await Stage.simulate { stage, simulation in
      let latency = Duration.milliseconds(1)...Duration.milliseconds(40)
      simulation.network.conditions = LinkConditions(latency: latency)
      let prices = ItemBroadcast<[UInt8]>(.dropOldest(64))
      let server = try await stage.serve { server in
        server.routeBasics()
        server.routeStream(70, .responseItems) { request, _, writer in
          try await request.untilDraining { try await prices.send(to: writer) }
          return []
        }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      let pushes = Tally<[UInt8]>()
      client.onPush(9) { pushes.add($0.body) }
      var sent = 0
      for round in 1...4 {
        // Nothing runs in the first two rounds; then a stream does that ends when it is to.
        if round == 3 {
          stage.spawn {
            for try await _ in client.stream(70, resuming: { _ in [UInt8]() }) {}
          }
        }
        let peer = await server.peers()[0]
        let draining = stage.spawn { await server.drain(peer, spread: spread) }
        for _ in 0..<400 {
          sent += try await server.broadcast(9, [1]).queued
          try await simulation.sleep(for: .milliseconds(20))
        }
        try await draining.value
      }
      try await stage.until { pushes.count >= sent }
      #expect(sent == 1_600 && pushes.count == 1_600)
      #expect(await client.counters().connects == 5)
      #expect(await server.counters().openConnections == 1)
    }
  }

  @Test func `a client has its next server before it leaves the one that shuts down`() async throws
  {
    try await Stage.simulate { stage, simulation in
      let (old, new) = (try await stage.serve(named: 1), try await stage.serve(named: 2))
      let client = try stage.client(of: old)
      try await client.connect()
      let pushes = Tally<[UInt8]>()
      client.onPush(9) { pushes.add($0.body) }
      let shutting = stage.spawn {
        await old.shutDown(within: .seconds(60), alternatives: new.endpoints)
      }
      var (sent, missed) = (0, 0)
      for _ in 0..<1_000 {
        let queued = (
          try await old.broadcast(9, [1]).queued, try await new.broadcast(9, [2]).queued
        )
        if queued == (0, 0) { missed += 1 }
        sent += queued.0 + queued.1
        try await simulation.sleep(for: .milliseconds(10))
      }
      try await shutting.value
      try await stage.until { pushes.count >= sent }
      #expect(missed == 0 && pushes.count == sent)
      #expect(client.state == .connected(new.addresses[0]))
    }
  }

  @Test func `a connection to a server that does not close it is closed after ten seconds`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      let client = try stage.client(to: [server.endpoint])
      try await client.connect()
      client.pathChanged(network: "other")
      try await stage.until { await client.counters().connects == 2 }
      let begin = simulation.now
      try await stage.until { simulation.openStreams.count == 2 }
      let time = begin.duration(to: simulation.now)
      #expect(time >= .seconds(9) && time < .seconds(12), "\(time)")
      await client.close()
      await server.stop()
    }
  }
}
