// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing
import LongLinkDialects

/// How both sides of a dialect find out whether the other one lives, and how they part.
@Suite struct DialectLivenessTests {
  /// Of the dialects' interval of 2 s and timeout of 1 s.
  private static let bound = Duration.seconds(3)

  @Test(arguments: Spoken.allCases)
  func `the side that pings does so, and the other one answers`(_ spoken: Spoken) async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await stage.pair(spoken) { _ in }
      try await client.connect()
      try await simulation.sleep(for: .seconds(21))
      let here = await client.counters()
      let there = await server.counters()
      #expect(here.connects == 1 && here.endings["heartbeatLost"] == nil)
      #expect(here.connections.pingsSent >= (spoken.clientPings ? 10 : 0))
      #expect(here.connections.pingsSent <= (spoken.clientPings ? 11 : 0))
      #expect(there.connections.pingsSent >= (spoken.serverPings ? 10 : 0))
      #expect(there.connections.pingsSent <= (spoken.serverPings ? 11 : 0))
      #expect(here.connections.pingsReceived == there.connections.pingsSent)
      #expect(there.connections.pingsReceived == here.connections.pingsSent)
      #expect(here.connections.droppedPongs + there.connections.droppedPongs == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `a ping of the caller's is timed, where there is one`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let (_, client) = try await stage.pair(spoken) { _ in }
      try await client.connect()
      if spoken.clientPings {
        #expect(try await client.ping() >= .zero)
        #expect(try await client.ping() >= .zero)
      } else {
        let error = try await failure { try await client.ping() }
        #expect(error.code == .unsupported)
      }
    }
  }

  @Test(arguments: Spoken.allCases, [false, true])
  func `a silent server is found within the bound`(
    _ spoken: Spoken, isBusy: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.hang) { request in
          try await request.clock.sleep(for: .seconds(1_000_000))
          return request.body
        }
      }
      try await client.connect()
      // Beyond a heartbeat or two.
      try await simulation.sleep(for: .milliseconds(4_500))
      let asked = client.submit(
        spoken.hang, [1], options: RequestOptions(timeout: .seconds(1_000)))
      try await stage.until { await server.counters().requestsRunning == 1 }
      let link = try #require(simulation.network.links.first)
      link.silence()
      let silenced = simulation.now
      let writing = stage.spawn {
        while isBusy, !Task.isCancelled {
          let more = client.submit(
            spoken.hang, [2], options: RequestOptions(timeout: .milliseconds(300)))
          _ = try? await more.value
        }
      }
      let error = try await failure { try await asked.value }
      #expect(error.closeReason == .heartbeatLost && error.delivery == .sent)
      #expect(silenced.duration(to: simulation.now) <= Self.bound + .milliseconds(130))
      writing.cancel()
      link.restore()
    }
  }

  @Test(arguments: Spoken.allCases)
  func `a silent client is found within the bound`(_ spoken: Spoken) async throws {
    try await Stage.simulate { stage, simulation in
      let (server, client) = try await stage.pair(spoken) { _ in }
      try await client.connect()
      try await simulation.sleep(for: .milliseconds(4_500))
      #expect(await server.counters().openConnections == 1)
      let link = try #require(simulation.network.links.first)
      link.silence()
      let silenced = simulation.now
      try await stage.until { await server.counters().endings["heartbeatLost"] == 1 }
      #expect(silenced.duration(to: simulation.now) <= Self.bound + .milliseconds(500))
      link.restore()
    }
  }

  @Test func `a client that hears pushes all the time still shows that it lives`() async throws {
    try await Stage.simulate { stage, simulation in
      // Only the client pings; the server has nothing else to go by.
      let (server, client) = try await stage.pair(.small) { _ in }
      try await client.connect()
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      for _ in 0..<100 {
        try await peer.push(0xF000, [1])
        try await simulation.sleep(for: .milliseconds(200))
      }
      #expect(await server.counters().endings["heartbeatLost"] == nil)
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `without heartbeats a silence proves nothing`() async throws {
    try await Stage.simulate { stage, simulation in
      let plain = try FrameDialect.small().with(heartbeat: FrameDialect.HeartbeatFrames())
      let server = try await stage.serve {
        $0.route(0x500) { request in request.body }
      } configure: {
        $0.dialect = .custom(plain)
      }
      let client = try stage.client(of: server) { $0.dialect = .custom(plain) }
      #expect(try await client.request(0x500, [1]) == [1])
      try await simulation.sleep(for: .seconds(3_000))
      #expect(try await client.request(0x500, [2]) == [2])
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.connections.suspicions == 0)
    }
  }

  @Test func `a dialect's ping without a pong is no reason to close a connection`() async throws {
    try await Stage.simulate { stage, simulation in
      let oneWay = try FrameDialect.small().with(
        heartbeat: FrameDialect.HeartbeatFrames(
          client: FrameDialect.Ping(type: 0xFF01, serials: 0...0, answer: nil),
          interval: .seconds(2), timeout: .seconds(1)))
      let server = try await stage.serve { _ in
      } configure: {
        $0.dialect = .custom(oneWay)
      }
      let client = try stage.client(of: server) { $0.dialect = .custom(oneWay) }
      try await client.connect()
      try await simulation.sleep(for: .seconds(21))
      let here = await client.counters()
      #expect(here.connects == 1 && here.connections.pingsSent == 10)
      // The server, however, hears them, and notices when they stop.
      let link = try #require(simulation.network.links.first)
      link.silence()
      let silenced = simulation.now
      try await stage.until { await server.counters().endings["heartbeatLost"] == 1 }
      #expect(silenced.duration(to: simulation.now) <= Self.bound + .milliseconds(500))
      link.restore()
    }
  }

  private static func isRejected(_ type: MessageType, _ client: LongLinkClient) async -> Bool {
    do throws(LongLinkError) {
      _ = try await client.request(type, [2])
      return false
    } catch {
      return error.code == .rejected && error.delivery == .answered
    }
  }

  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `a server that drains finishes what it has`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let began = Latch()
      let released = Latch()
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.echo) { request in
          began.open()
          await released.wait()
          return request.body
        }
        server.route(spoken.other) { request in request.body }
      }
      let running = client.submit(spoken.echo, [1])
      await began.wait()
      let draining = stage.spawn { await server.shutDown(within: .seconds(100)) }
      // Nothing new is taken, and a dialect has but a code to say so.
      try await stage.until {
        await Self.isRejected(spoken.other, client)
      }
      released.open()
      #expect(try await running.value == [1])
      _ = try await draining.value
      #expect(await server.counters().openConnections == 0)
      try await stage.until {
        await client.counters().endings["closedByPeer"] == 1
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases, Spoken.allCases)
  func `a client that closes waits for its answers`(
    _ environment: TestEnvironment, _ spoken: Spoken
  ) async throws {
    try await Stage.run(environment) { stage in
      let began = Latch()
      let released = Latch()
      let (server, client) = try await stage.pair(spoken) { server in
        server.route(spoken.echo) { request in
          began.open()
          await released.wait()
          return request.body
        }
      }
      let running = client.submit(spoken.echo, [1])
      await began.wait()
      let closing = stage.spawn { await client.close(within: .seconds(100)) }
      released.open()
      #expect(try await running.value == [1])
      _ = try await closing.value
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().endings == ["closedByPeer": 1])
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a lost request states whether it may have run`(_ environment: TestEnvironment) async throws
  {
    try await Stage.run(environment) { stage in
      let (server, client) = try await stage.scripted(.guarded)
      server.on(0x500, .never)
      server.on(0x501) { .reply($0.body) }
      let sent = client.submit(0x500, [1])
      try await server.waitForRequest(of: 0x500)
      server.closeConnections()
      let error = try await failure { try await sent.value }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      // What waits meanwhile is sent over the next connection.
      #expect(try await client.request(0x501, [2]) == [2])
      await server.stop()
      let unsent = try await failure {
        try await client.request(
          0x501, [3], options: RequestOptions(waitsForConnection: false))
      }
      #expect(unsent.delivery != .answered)
    }
  }
}
