// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Drains while requests of the server are under way.
@Suite struct ServerRequestDrainTests {
  @Test(arguments: TestEnvironment.allCases)
  func `a client that gets a goaway responds to the server's requests`(
    _ environment: TestEnvironment
  ) async throws {
    let (began, goOn) = (Tally<Void>(), Latch())
    try await Stage.pair(in: environment) { stage, server, client in
      client.onRequest(.echo) { request in
        began.add(())
        await goOn.wait()
        return request.body
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      let patient = RequestOptions(timeout: .seconds(3_600))
      let asked = stage.spawn { try await peer.request(.echo, [1], options: patient) }
      await began.reached(1)
      let states = client.states()
      let draining = stage.spawn { await server.drain(peer, within: .seconds(1_000)) }
      for await state in states { if case .waiting = state { break } }
      goOn.open()
      #expect(try await asked.value == [1])
      try await draining.value
      #expect(await client.counters().linksExpired == 0)
    }
  }

  @Test func `a link that the server drains is kept for a minute if there is no other server`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let began = Tally<Void>()
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 80))
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      client.onRequest(.hang) { request in
        began.add(())
        try await request.clock.sleep(for: .seconds(1_000))
        return request.body
      }
      try await client.connect()
      let asked = stage.spawn { try await server.ask(.hang) }
      await began.reached(1)
      server.goAway(retryAfter: .seconds(1_000))
      try await simulation.sleep(for: .seconds(1))
      #expect(server.record.endings.isEmpty)
      server.send(.cancel(0x8000_0032))
      // Nothing runs any more, but pushes may come as long as the client has no other link.
      try await simulation.sleep(for: .seconds(58))
      #expect(server.record.endings.isEmpty)
      try await simulation.sleep(for: .seconds(2))
      #expect(!server.record.endings.isEmpty)
      #expect(await client.counters().linksExpired == 0)
      _ = try? await asked.value
      await server.stop()
    }
  }

  @Test func `a connection that drains ends when its last request has passed its deadline`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let began = Tally<Void>()
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      client.onRequest(.hang) { request in
        began.add(())
        try await request.clock.sleep(for: .seconds(1_000))
        return request.body
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      let asked = stage.spawn {
        try await failure {
          try await peer.request(
            .hang, [1], options: RequestOptions(timeout: .seconds(3)))
        }
      }
      await began.reached(1)
      let start = simulation.now
      await server.drain(peer, within: .seconds(100))
      #expect(start.duration(to: simulation.now) < .seconds(4))
      #expect(try await asked.value.code == .deadlineExceeded)
    }
  }

  @Test func `a client that goes away gets no more requests`() async throws {
    try await Stage.simulate { stage, simulation in
      let (began, goOn) = (Tally<Void>(), Latch())
      let server = try await stage.serve { server in
        server.route(.echo) { request in
          began.add(())
          await goOn.wait()
          let error = try await failure { try await request.peer.request(.echo, [1]) }
          return [error.delivery == .notSent ? 1 : 0]
        }
      }
      let peer = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      try await peer.sayHello()
      let answer = stage.spawn { try await peer.request(.echo) }
      await began.reached(1)
      peer.send(.goAway())
      try await simulation.sleep(for: .seconds(1))
      goOn.open()
      #expect(try await answer.value.body == [1])
      #expect(peer.record.frames(of: .request).isEmpty)
      // Nothing is under way any more, so that the server has closed.
      _ = try await peer.waitForEnd()
      peer.close()
    }
  }

  @Test func `the connection in a handler closes its own connection, not the next one`()
    async throws
  {
    let (began, goOn) = (Tally<Void>(), Latch())
    try await Stage.pair { stage, server, client in
      client.onRequest(.echo) { request in
        began.add(())
        await goOn.wait()
        request.peer.close()
        return request.body
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      let asked = stage.spawn { try? await peer.request(.echo, [1]) }
      await began.reached(1)
      client.pathChanged()
      try await stage.until { await client.counters().connects == 2 }
      goOn.open()
      _ = try await asked.value
      try await stage.clientLoop.sleep(for: .seconds(10))
      #expect(await client.counters().connects == 2)
      #expect(await server.peers().map(\.connectionID) == [peer.connectionID + 1])
    }
  }

  @Test func `a server drains no connection of another one`() async throws {
    try await Stage.simulate { stage, _ in
      let (one, other) = (try await stage.serve(), try await stage.serve())
      let clients = (try stage.client(of: one), try stage.client(of: other))
      try await clients.0.connect()
      try await clients.1.connect()
      let peer = try #require(await other.peers().first)
      #expect(await one.peers().first?.id == peer.id)
      await one.drain(peer, within: .zero)
      #expect(await one.counters().openConnections == 1)
      #expect(await other.counters().openConnections == 1)
    }
  }

  @Test func `a refused request that does not wait is not kept for a link to come`() async throws {
    try await Stage.simulate { stage, _ in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 80))
      server.on(
        .echo,
        [.sequence([.goAway(retryAfter: .seconds(1)), .refuse(.overloaded, "no")]), .reply([2])])
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      try await client.connect()
      let error = try await failure {
        try await client.request(
          .echo, [1], options: RequestOptions(waitsForConnection: false))
      }
      #expect(error.response == .overloaded && error.delivery == .refused)
      await server.stop()
    }
  }
}
