// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Connections that a client leaves before it has used them, or with output that is not written.
@Suite struct LeavingTests {
  /// Broadcasts a push every 10 ms while a body runs, and expects that all of them arrive that the
  /// server has had a connection for.
  private func expectPushes(
    from server: LongLinkServer, to client: LongLinkClient, _ stage: Stage,
    during body: () async throws -> Void
  ) async throws {
    let pushes = Tally<[UInt8]>()
    client.onPush(8) { pushes.add($0.body) }
    let end = Latch()
    let sending = stage.spawn {
      var sent: [[UInt8]] = []
      for number in 0..<1_000 as Range<UInt16> where !end.isOpen {
        let push = [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
        if try await server.broadcast(8, push).queued == 1 { sent.append(push) }
        try await stage.clientLoop.sleep(for: .milliseconds(10))
      }
      return sent
    }
    try await body()
    end.open()
    let sent = try await sending.value
    try await stage.clientLoop.sleep(for: .seconds(5))
    #expect(sent.count > 50 && pushes.count == sent.count, "\(sent.count), \(pushes.count)")
    let isEach = Set(pushes.elements) == Set(sent)
    #expect(isEach)
  }

  @Test(arguments: [true, false])
  func `pushes over a connection that is not needed after its trial began arrive`(_ moves: Bool)
    async throws
  {
    try await Stage.pair(in: .bothWays, client: { $0.timeouts.connect = .seconds(20) }) {
      stage, server, client in
      let other = try await stage.serve()
      let latency = Duration.milliseconds(100)
      stage.simulation?.network.setConditions(
        LinkConditions(latency: latency...latency), to: server.addresses[0])
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      try await expectPushes(from: server, to: client, stage) {
        try await stage.clientLoop.sleep(for: .seconds(1))
        #expect(!client.state.isConnected)
        if moves {
          client.pathChanged()
        } else {
          try client.switchServers(to: other.endpoints.map { ServerEntry($0) })
        }
        try await stage.until { client.state.isConnected }
        try await stage.clientLoop.sleep(for: .seconds(2))
      }
      #expect(await client.counters().abandonedAttempts == 1)
      #expect(await server.counters().openConnections == (moves ? 1 : 0))
    }
  }

  @Test func `pushes over a connection that was accepted and has lost the race arrive`()
    async throws
  {
    try await Stage.pair { stage, server, client in
      // The second attempt begins before the first can be answered.
      let latency = Duration.milliseconds(600)
      stage.simulation?.network.setConditions(
        LinkConditions(latency: latency...latency), to: server.addresses[0])
      try await expectPushes(from: server, to: client, stage) {
        try await client.connect()
        #expect(await client.counters().secondAttempts == 1)
        try await stage.clientLoop.sleep(for: .seconds(4))
      }
      #expect(await server.counters().connectionsAccepted == 2)
      #expect(await server.counters().openConnections == 1)
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.abandonedAttempts == 1)
      #expect(counters.failedAttempts == 0)
    }
  }

  @Test(arguments: [true, false])
  func `connections that are not needed, and not answered, do not pile up`(_ suspends: Bool)
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(on: stage.serverLoop)
      server.handshake = .silent
      let client = try stage.client(to: [server.endpoint])
      let connecting = stage.spawn { try await client.connect() }
      var most = 0
      for _ in 0..<20 {
        try await simulation.sleep(for: .milliseconds(100))
        client.pathChanged()
        most = max(most, simulation.network.links(to: server.address).count)
      }
      #expect(server.connectionsAccepted > 15)
      #expect(most > 2 && most <= 5, "\(most)")
      if suspends {
        let begin = simulation.now
        await client.suspend()
        #expect(begin.duration(to: simulation.now) < .seconds(2))
        try await stage.until { simulation.network.links(to: server.address).isEmpty }
        #expect(try await failure { try await connecting.value }.code == .notConnected)
      } else {
        server.handshake = .normal
        try await connecting.value
        try await simulation.sleep(for: .seconds(25))
        #expect(simulation.network.links(to: server.address).count == 1)
        #expect(await client.counters().failedAttempts <= 1)
      }
      await client.close()
      await server.stop()
    }
  }

  @Test func `responses that are being written arrive, however often the client moves`()
    async throws
  {
    try await Stage.pair { stage, server, client in
      let body = [UInt8](repeating: 1, count: 60_000)
      client.onRequest(9) { _ in body }
      // Each response takes six seconds.
      stage.simulation?.network.setConditions(
        LinkConditions(bandwidth: 10_000, window: 4_096), to: server.addresses[0])
      try await client.connect()
      let peer = await server.peers()[0]
      var asking: [Task<[UInt8], any Error>] = []
      for number in 2...7 as ClosedRange<UInt64> {
        asking.append(stage.spawn { try await peer.request(9, []) })
        try await stage.clientLoop.sleep(for: .milliseconds(100))
        client.pathChanged()
        try await stage.until { await client.counters().connects == number }
      }
      for task in asking { #expect(try await task.value == body) }
      try await stage.until { await server.counters().openConnections == 1 }
    }
  }
}
