// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// How fast a client may send, and cancel.
@Suite struct RateTests {
  private static func raw(
    _ stage: Stage, _ server: LongLinkServer, _ hello: WireFrame = .hello()
  ) async throws -> SimulatedClient {
    let client = try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
    _ = try await client.sayHello(hello)
    return client
  }

  // MARK: Bytes and frames

  @Test func `a client that sends too many bytes is read no faster than it may send`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxBytesPerSecond = 100_000 })
      let client = try await Self.raw(stage, server)
      let began = stage.clientLoop.clock.now
      let frame = WireFrame.push(9, [UInt8](repeating: 1, count: 984)).bytes
      for _ in 0..<100 { client.send(bytes: [[UInt8]](repeating: frame, count: 10).flatMap { $0 }) }
      client.send(.request(.echo, serial: 50, [1]))
      #expect(try await client.waitForResponse(to: 50).body == [1])
      // The first second's worth comes at once; 900,000 bytes remain.
      let passed = began.duration(to: stage.clientLoop.clock.now)
      #expect(passed > .seconds(8.8) && passed < .seconds(9.6), "\(passed)")
      let counters = await server.counters()
      #expect(counters.connections.pushesReceived == 1_000)
      #expect(counters.connections.rateHolds > 0)
      let held = counters.connections.rateHeldMilliseconds
      #expect((8_500...9_500).contains(held), "\(held)")
      #expect(counters.endings.isEmpty)
    }
  }

  @Test func `a client that sends too many frames is read no faster than it may send`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxFramesPerSecond = 1_000 })
      let client = try await Self.raw(stage, server)
      let began = stage.clientLoop.clock.now
      let frame = WireFrame.push(9).bytes
      client.send(bytes: [[UInt8]](repeating: frame, count: 6_000).flatMap { $0 })
      client.send(.request(.echo, serial: 50, [1]))
      #expect(try await client.waitForResponse(to: 50).body == [1])
      let passed = began.duration(to: stage.clientLoop.clock.now)
      #expect(passed > .seconds(4.6) && passed < .seconds(5.6), "\(passed)")
      #expect(await server.counters().connections.rateHolds > 0)
    }
  }

  @Test func `a client below the limit is never held`() async throws {
    try await Stage.pair(server: {
      $0.limits.maxBytesPerSecond = 100_000
      $0.limits.maxFramesPerSecond = 1_000
    }) { stage, server, client in
      for _ in 0..<200 {
        _ = try await client.request(.echo, [UInt8](repeating: 1, count: 8_000))
        try await stage.clientLoop.sleep(for: .milliseconds(100))
      }
      #expect(await server.counters().connections.rateHolds == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a client that is held is told of no error, and loses nothing`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve(configure: {
        $0.limits.maxBytesPerSecond = environment == .simulated ? 65_536 : 500_000
      })
      let client = try stage.client(of: server) { $0.timeouts.request = .seconds(3_600) }
      let body = [UInt8](repeating: 1, count: environment == .simulated ? 65_536 : 100_000)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<12 {
          group.addTask {
            let echoed = try await client.request(.echo, body)
            #expect(echoed == body)
          }
        }
        try await group.waitForAll()
      }
      #expect(await client.counters().connects == 1)
      let counters = await server.counters()
      #expect(counters.connections.rateHolds > 0 && counters.endings.isEmpty)
    }
  }

  @Test func `the heartbeat of a client that is held for minutes holds, on both sides`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxBytesPerSecond = 16_384 })
      // Its own pings wait behind 10 minutes of pushes, which nobody answers.
      let client = try stage.client(of: server) {
        $0.heartbeat.interval = .seconds(2)
        $0.heartbeat.timeout = .seconds(1)
        $0.timeouts.request = .seconds(3_600)
      }
      try await client.connect()
      let began = stage.clientLoop.clock.now
      let push = [UInt8](repeating: 1, count: 16_368)
      // Most of them wait for room.
      for _ in 0..<600 {
        try await client.push(9, push)
        guard case .connected = client.state else {
          Issue.record("\(client.state)")
          return
        }
      }
      try await stage.until { await server.counters().connections.pushesReceived == 600 }
      let passed = began.duration(to: stage.clientLoop.clock.now)
      #expect(passed > .seconds(590) && passed < .seconds(680), "\(passed)")
      #expect(await client.counters().connects == 1)
      #expect(await server.counters().endings.isEmpty)
      #expect(try await client.request(.echo, [1]) == [1])
    }
  }

  @Test func `a client that is dead is found although it was held`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxBytesPerSecond = 16_384 })
      let client = try await Self.raw(stage, server)
      client.answersPings = false
      client.send(bytes: WireFrame.push(9, [UInt8](repeating: 1, count: 100_000)).bytes)
      try await stage.until { await server.counters().connections.pushesReceived == 1 }
      let began = stage.clientLoop.clock.now
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(began.duration(to: stage.clientLoop.clock.now) < .seconds(60))
      #expect(await server.counters().endings == ["heartbeatLost": 1])
    }
  }

  @Test func `a connection that ends while it is held leaves nothing behind`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxBytesPerSecond = 16_384 })
      let client = try await Self.raw(stage, server)
      client.send(bytes: WireFrame.push(9, [UInt8](repeating: 1, count: 200_000)).bytes)
      try await stage.until { await server.counters().connections.rateHolds > 0 }
      await server.shutDown(within: .zero)
      #expect(await server.counters().openConnections == 0)
    }
  }

  // MARK: Cancels

  @Test func `an honest client that cancels all of its requests again and again is served`()
    async throws
  {
    try await Stage.pair { _, server, client in
      for _ in 0..<9 {
        let tasks = (0..<1_024).map { _ in client.submit(.hang, []) }
        _ = try await client.request(.echo, [1], options: RequestOptions(timeout: .seconds(60)))
        for task in tasks { task.cancel() }
        for task in tasks { _ = try? await task.value }
      }
      #expect(try await client.request(.echo, [1]) == [1])
      let counters = await server.counters()
      #expect(counters.connections.cancelsReceived > 8_000)
      #expect(counters.cancelsOverLimit == 0 && counters.endings.isEmpty)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a client that cancels without end is told why its connection is closed`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve()
      let client = try await Self.raw(stage, server)
      var serial: UInt32 = 50
      // More than the burst and what comes back meanwhile, and not much more.
      for _ in 0..<(environment == .simulated ? 12 : 24) {
        client.send(
          bytes: (serial..<serial + 1_000).flatMap {
            WireFrame.request(.echo, serial: $0).bytes + WireFrame.cancel($0).bytes
          })
        serial += 1_000
      }
      let goaway = try await client.waitForFrame(.goaway)
      #expect(goaway.goAwayFields?.code == .overloaded)
      #expect(goaway.goAwayFields?.reason.contains("cancel") == true)
      try await stage.until { await server.counters().openConnections == 0 }
      let counters = await server.counters()
      #expect(counters.cancelsOverLimit == 1 && counters.endings == ["cancelLimit": 1])
      // As many as the burst, and few more while it lasts.
      #expect(counters.connections.cancelsReceived >= 10_001)
      if environment == .simulated { #expect(counters.connections.cancelsReceived < 11_000) }
      let honest = try stage.client(of: server)
      #expect(try await honest.request(.echo, [1]) == [1])
    }
  }

  @Test func `without a limit, cancels are as many as they are`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxCancelsPerSecond = nil })
      let client = try await Self.raw(stage, server)
      for _ in 0..<30 {
        client.send(bytes: (50..<1_050).flatMap { WireFrame.cancel($0).bytes })
      }
      #expect(try await client.request(.echo, [1]).body == [1])
      #expect(await server.counters().connections.cancelsReceived == 30_000)
    }
  }
}
