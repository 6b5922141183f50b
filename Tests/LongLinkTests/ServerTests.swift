// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// What a server does with connections and handlers.
@Suite struct ServerTests {
  @Test(arguments: TestEnvironment.allCases)
  func `a handler runs where its route says`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let (peer, other) = (stage.serverLoop, stage.clientLoop)
      let server = try await stage.serve { server in
        server.route(1) { _ in [peer.isCurrent ? 1 : 0] }
        server.route(2) { request in
          await Task.yield()
          return [peer.isCurrent ? 1 : 0]
        }
        server.route(3, on: .executor(other)) { request in
          await Task.yield()
          return [other.isCurrent ? 1 : 0]
        }
        server.route(4, on: .globalPool) { request in
          await Task.yield()
          return [peer.isCurrent || other.isCurrent ? 0 : 1]
        }
      }
      let client = try stage.client(of: server)
      // The pool's threads know nothing of virtual time.
      for type: MessageType in environment == .simulated ? [1, 2, 3] : [1, 2, 3, 4] {
        #expect(try await client.request(type, [UInt8]()) == [1], "\(type)")
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases, [true, false])
  func `handlers are cancelled when their client goes`(
    _ environment: TestEnvironment,
    _ aborts: Bool
  ) async throws {
    let (began, cancelled) = (Tally<Void>(), Tally<Void>())
    try await Stage.serving(in: environment) { server in
      server.route(.hang) { request in
        began.add(())
        do {
          try await request.clock.sleep(for: .seconds(1_000_000))
        } catch {
          cancelled.add(())
          throw error
        }
        return request.body
      }
    } _: { stage, server, client in
      for _ in 0..<3 {
        _ = client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(1_000)))
      }
      await began.reached(3)
      if let simulation = stage.simulation, !aborts {
        simulation.network.loseAllLinks()
      } else {
        await client.close()
      }
      await cancelled.reached(3)
      try await stage.until { await server.counters().connections.handlersAbandoned == 3 }
      #expect(await server.counters().requestsRunning == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `connections are spread over the loops`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let loops: [EventLoop] =
        if let simulation = stage.simulation {
          (0..<3).map { simulation.eventLoop(named: "lane \($0)") }
        } else {
          try (0..<3).map { try EventLoop(name: "lane \($0)") }
        }
      let server = try await stage.serve(on: loops, setUp: { $0.routeBasics() })
      let clients = try (0..<9).map { _ in try stage.client(of: server) }
      for client in clients { #expect(try await client.request(.echo, [1]) == [1]) }
      let peers = await server.peers()
      #expect(Set(peers.map(\.id)).count == 9)
      for loop in loops { #expect(peers.count { $0.loop === loop } == 3) }
      #expect(await server.counters().connections.requestsReceived == 9)
      #expect(await server.counters().connectionsAccepted == 9)
      for client in clients { await client.close() }
      await server.shutDown()
      #expect(await server.counters().connections.requestsReceived == 9)
      if stage.simulation == nil { for loop in loops { loop.shutDown() } }
    }
  }

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `a server makes its own loops`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve(
        on: [],
        setUp: { server in
          server.routeBasics()
          // A handler may end the server that it runs in.
          server.route(5) { [unowned server] _ in
            await server.shutDown(within: .milliseconds(1))
            return [UInt8]()
          }
        },
        configure: { $0.loops = 2 }
      )
      let client = try stage.client(of: server)
      #expect(try await client.request(.echo, [1]) == [1])
      let error = try await failure {
        try await client.request(5, [1], options: RequestOptions(waitsForConnection: false))
      }
      #expect(error.code == .connectionLost)
      await server.waitUntilShutDown()
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a connection too many is turned away`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve(configure: { $0.limits.maxConnections = 2 })
      let clients = try (0..<3).map { _ in
        try stage.client(of: server) {
          $0.reconnect.afterRefused = .milliseconds(1)
          $0.reconnect.cap = .milliseconds(1)
        }
      }
      try await clients[0].connect()
      try await clients[1].connect()
      let error = try await failure { try await clients[2].connect() }
      #expect(error.code == .connectFailed)
      #expect(await server.counters().connectionsTurnedAway >= 1)
      #expect(try await clients[0].request(.echo, [1]) == [1])
      await clients[1].close()
      #expect(try await clients[2].request(.echo, [1]) == [1])
      #expect(await server.counters().openConnections == 2)
    }
  }

  @Test func `a client that sends no first frame is disconnected`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(50) ... .milliseconds(50)
      )
      let server = try await stage.serve(configure: { $0.timeouts.firstFrame = .seconds(3) })
      let client = try stage.client(of: server)
      let connecting = stage.spawn { try await failure { try await client.connect() } }
      try await simulation.sleep(for: .milliseconds(20))
      simulation.network.links[0].silence(.toServer)
      simulation.network.connects = .ignored
      try await simulation.sleep(for: .seconds(2))
      #expect(await server.counters().openConnections == 1)
      try await simulation.sleep(for: .milliseconds(2_200))
      #expect(await server.counters().openConnections == 0)
      #expect(await server.counters().violations == ["firstFrameTimeout": 1])
      _ = try await connecting.value
    }
  }

  @Test func `a client that stops reading is not read and then dropped`() async throws {
    try await Stage.simulate { stage, simulation in
      let handled = Tally<Void>()
      let server = try await stage.serve(
        setUp: { server in
          server.route(.echo) { request in
            handled.add(())
            return [UInt8](repeating: 1, count: 50_000)
          }
        },
        configure: { $0.heartbeat = Heartbeat(interval: .seconds(5), timeout: .seconds(5)) }
      )
      let client = try stage.client(of: server) { $0.timeouts.request = .seconds(100) }
      let other = try stage.client(of: server)
      try await client.connect()
      simulation.network.links[0].silence(.toClient)
      let tasks = (0..<500).map { _ in client.submit(.echo, [1]) }
      try await simulation.sleep(for: .seconds(2))
      // 256 KiB are under way, and as many wait before reading stops: eleven answers, at most.
      #expect(handled.count <= 12)
      #expect(try await other.request(.echo, [1]).count == 50_000)
      try await simulation.sleep(for: .seconds(20))
      let endings = await server.counters().endings
      #expect(
        endings["stalledPeer", default: 0] + endings["transport", default: 0] == 1,
        "\(endings)"
      )
      for task in tasks { task.cancel() }
    }
  }

  @Test func `a client that leaves too much unread is dropped, and its connection states why`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(
        setUp: { server in
          server.route(.echo) { request in
            try await request.clock.sleep(for: .seconds(1))
            return [UInt8](repeating: 1, count: 90_000)
          }
        },
        configure: {
          $0.limits.maxBody = 100_000
          $0.limits.maxUnreadOutput = 1_000_000
          $0.limits.waterMarks = WaterMarks(high: 500_000, low: 100_000)
        }
      )
      let client = try stage.client(of: server)
      try await client.connect()
      let peer = await server.peers()[0]
      let handles = (0..<20).map { _ in client.submit(.echo, [1]) }
      try await stage.until { await server.counters().requestsRunning == 20 }
      simulation.network.links[0].silence(.toClient)
      try await simulation.sleep(for: .seconds(2))
      let error = try await failure { try await peer.push(7, [1]) }
      #expect(error.code == .closed && error.closeReason == .unreadOutput)
      #expect(await server.counters().endings["unreadOutput"] == 1)
      for handle in handles { handle.cancel() }
    }
  }

  @Test func `a handler that blocks its loop is reported`() async throws {
    let stalls = Tally<(loop: String, duration: Duration)>()
    let loop = try EventLoop(
      name: "blocked", stallThreshold: .milliseconds(20),
      onStall: { loop, duration, _ in stalls.add((loop, duration)) })
    try await Stage.run(.loopback) { stage in
      let server = try await stage.serve(
        on: [loop],
        setUp: { server in
          server.route(.echo) { request in
            let end = ContinuousClock.now + .milliseconds(60)
            while ContinuousClock.now < end {}
            return request.body
          }
        }
      )
      let client = try stage.client(of: server)
      #expect(try await client.request(.echo, [1]) == [1])
      await stalls.reached(1)
      #expect(stalls.elements.contains { $0.loop == "blocked" && $0.duration >= .milliseconds(50) })
    }
    loop.shutDown()
  }

  @Test(arguments: TestEnvironment.withPorts)
  func `an address in use is reported`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let error = try await failure {
        try await stage.serve(at: server.endpoints[0])
      }
      #expect(error.code == .connectFailed)
      #expect(error.peer == server.addresses[0])
      #expect(error.systemError != nil)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a server is started once`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let error = try await failure { try await server.start() }
      #expect(error.code == .closed)
      #expect(try await stage.client(of: server).request(.echo, [1]) == [1])
    }
  }
}
