// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// How a client and a server find out whether the other one lives.
@Suite struct DeadPeerTests {
  /// Of an interval of 2 s and a timeout of 1 s.
  private static let bound = Duration.seconds(3)
  private static let heartbeat = Heartbeat(interval: .seconds(2), timeout: .seconds(1))

  @Test func `a slow path is no dead peer`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(bandwidth: 2_000, window: 65_536)
      let server = try await stage.serve()
      let client = try stage.client(of: server) { $0.heartbeat = Self.heartbeat }
      let body = [UInt8](repeating: 1, count: 60_000)
      let options = RequestOptions(timeout: .seconds(1_000))
      #expect(try await client.request(.echo, body, options: options) == body)
      let here = await client.counters()
      #expect(here.connects == 1)
      #expect(here.connections.suspicions > 0)
      #expect(await server.counters().connections.suspicions > 0)
    }
  }

  @Test func `a frame that cannot be split may hold up a ping`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(bandwidth: 20_000, window: 8_192)
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(10, 0, 0, 1, port: 0))
      server.handshake = .welcome(features: [.metadata])
      server.on(1, .reply([7]))
      let endpoint = server.endpoint
      let client = try stage.client(to: [endpoint]) { $0.heartbeat = Self.heartbeat }
      // 25 s of it stand before the ping.
      let reply = try await client.request(
        1, [UInt8](repeating: 1, count: 500_000),
        options: RequestOptions(timeout: .seconds(1_000)))
      #expect(reply == [7])
      #expect(server.connectionsAccepted == 1)
      #expect(await client.counters().connections.suspicions > 0)
      await server.stop()
    }
  }

  @Test func `a path that dies under a large body is found`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(bandwidth: 20_000, window: 8_192)
      let server = try await stage.serve()
      let client = try stage.client(of: server) { $0.heartbeat = Self.heartbeat }
      let task = client.submit(
        .echo, [UInt8](repeating: 1, count: 1 << 20),
        options: RequestOptions(timeout: .seconds(1_000)))
      try await simulation.sleep(for: .seconds(10))
      simulation.network.links[0].silence()
      let silenced = simulation.now
      let error = try await failure { try await task.value }
      #expect(error.closeReason == .heartbeatLost)
      // An eighth of the timeout is between two looks at what has left.
      #expect(silenced.duration(to: simulation.now) <= Self.bound + .milliseconds(130))
    }
  }

  @Test(arguments: [false, true])
  func `a frozen server is found, by an idle client and by one that writes`(
    isBusy: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) { $0.heartbeat = Self.heartbeat }
      try await client.connect()
      try await simulation.sleep(for: .milliseconds(500))
      let machine = simulation.machine(of: stage.serverLoop)
      machine.pause()
      let frozen = simulation.now
      let writing = stage.spawn {
        while isBusy {
          try await client.push(7, [UInt8](repeating: 1, count: 10_000))
          try await simulation.sleep(for: .milliseconds(10))
        }
      }
      for await state in client.states() {
        if case .waiting = state { break }
      }
      #expect(frozen.duration(to: simulation.now) <= Self.bound + .milliseconds(130))
      #expect(await client.counters().endings["heartbeatLost"] == 1)
      machine.resume()
      writing.cancel()
      _ = await writing.result
    }
  }

  @Test(arguments: [false, true], [false, true])
  func `time in which this side was paused is not held against the peer`(
    atServer: Bool, hasCome: Bool
  ) async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(100) ... .milliseconds(100))
      let server = try await stage.serve()
      let loop = simulation.eventLoop(named: "client")
      let client = try stage.client(of: server, on: loop) { $0.heartbeat = Self.heartbeat }
      try await client.connect()
      let pings = {
        atServer
          ? await server.counters().connections.pingsSent
          : await client.counters().connections.pingsSent
      }
      while await pings() == 0 { try await simulation.sleep(for: .milliseconds(10)) }
      // The pong is on its way, or waits to be read, when an hour has passed, as on a machine that
      // was suspended.
      let machine = simulation.machine(of: atServer ? stage.serverLoop : loop)
      if hasCome { machine.pause(for: .milliseconds(500)) }
      machine.moveClock(by: .seconds(3_600))
      try await simulation.sleep(for: .seconds(10))
      let (here, there) = (await client.counters(), await server.counters())
      #expect(here.connects == 1)
      #expect(here.endings == [:])
      #expect(there.endings == [:])
      if !hasCome { #expect((atServer ? there.connections : here.connections).pauses > 0) }
    }
  }

  @Test func `unanswered requests reveal a dead server early`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.heartbeat = Heartbeat(interval: .seconds(60), timeout: .seconds(2))
      }
      try await client.connect()
      simulation.network.links[0].silence()
      let silenced = simulation.now
      for _ in 0..<3 {
        let error = try await failure {
          try await client.request(.echo, [1], options: RequestOptions(timeout: .seconds(1)))
        }
        #expect(error.code == .deadlineExceeded)
      }
      for await state in client.states() {
        if case .waiting = state { break }
      }
      #expect(silenced.duration(to: simulation.now) <= .seconds(5) + .milliseconds(5))
      let counters = await client.counters()
      #expect(counters.connections.earlySuspicions == 1)
      #expect(counters.endings["heartbeatLost"] == 1)
    }
  }

  @Test func `a slow handler on a healthy link raises no suspicion`() async throws {
    try await Stage.pair { stage, _, client in
      for _ in 0..<3 {
        _ = try await failure {
          try await client.request(.hang, [1], options: RequestOptions(timeout: .seconds(1)))
        }
      }
      try await stage.clientLoop.sleep(for: .seconds(20))
      let counters = await client.counters()
      #expect(counters.connects == 1)
      #expect(counters.connections.earlySuspicions == 0)
      #expect(counters.endings == [:])
    }
  }

  @Test func `an idle connection wakes each loop once an interval`() async throws {
    try await Stage.simulate { stage, simulation in
      let heartbeat = Heartbeat(interval: .seconds(100), timeout: .seconds(10))
      let server = try await stage.serve(configure: { $0.heartbeat = heartbeat })
      let loop = simulation.eventLoop(named: "client")
      let client = try stage.client(of: server, on: loop) { $0.heartbeat = heartbeat }
      try await client.connect()
      try await simulation.sleep(for: .seconds(101))
      var deadlines: [String: Set<LinkInstant>] = [:]
      for _ in 0..<1_000 {
        for timer in simulation.earliestTimers where timer.loop != "main" {
          deadlines[timer.loop, default: []].insert(timer.deadline)
        }
        try await simulation.sleep(for: .seconds(1))
      }
      for loop in ["client", "server"] {
        #expect((10...11).contains(deadlines[loop]?.count ?? 0), "\(loop)")
      }
    }
  }
}
