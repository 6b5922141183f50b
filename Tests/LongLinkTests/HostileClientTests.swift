// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// What clients that mean harm, or are broken, make of a server and of each other.
@Suite struct HostileClientTests {
  /// A client that says hello and sends what it is told.
  private static func raw(_ stage: Stage, _ server: LongLinkServer) async throws
    -> SimulatedClient
  {
    let client = try await SimulatedClient.connect(
      to: server.addresses[0], on: stage.clientLoop)
    _ = try await client.sayHello()
    return client
  }

  private static let large = [UInt8](repeating: 7, count: 90_000)

  // MARK: Requests and their handlers

  /// Requests of type 9 are counted, and wait.
  private static func holding(
    _ calls: Tally<UInt32>, until ends: Latch
  ) -> @Sendable (LongLinkServer) -> Void {
    { server in
      server.route(9) { request in
        calls.add(request.serial)
        await ends.wait()
        return request.body
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the handler of a request that was cancelled before is not called`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let calls = Tally<UInt32>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(9) { request in
          calls.add(request.serial)
          try await request.clock.sleep(for: .seconds(1_000_000))
          return request.body
        }
      }
      let client = try await Self.raw(stage, server)
      client.send(
        bytes: (50..<1_050).flatMap { serial in
          WireFrame.request(9, serial: serial).bytes + WireFrame.cancel(serial).bytes
        })
      client.send(.request(9, serial: 2_000))
      await calls.reached(1)
      #expect(calls.elements == [2_000])
      try await stage.until {
        await server.counters().connections.handlersSkipped == 1_000
      }
      #expect(await server.counters().requestsRunning == 1)
    }
  }

  @Test func `handlers that ignore their cancellation count until they return`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (calls, ends) = (Tally<UInt32>(), Latch())
      let server = try await stage.serve(setUp: Self.holding(calls, until: ends)) {
        $0.limits.maxInFlight = 4
      }
      let client = try await Self.raw(stage, server)
      for serial: UInt32 in 50..<60 {
        client.send(.request(9, serial: serial))
        try await stage.until {
          await server.counters().connections.requestsReceived == UInt64(serial - 49)
        }
        client.send(.cancel(serial))
      }
      try await client.wait { $0.responses.count == 6 }
      let refused = try await client.waitForResponse(to: 59)
      #expect(refused.code == .overloaded && refused.isRefused)
      #expect(calls.elements == [50, 51, 52, 53])
      ends.open()
      try await stage.until { await server.counters().bytesHeld == 0 }
      client.send(.request(9, serial: 70))
      #expect(try await client.waitForResponse(to: 70).code == .ok)
    }
  }

  @Test func `a handler that returns after its connection has ended is counted`() async throws {
    try await Stage.simulate { stage, simulation in
      let (calls, ends) = (Tally<UInt32>(), Latch())
      let server = try await stage.serve(setUp: Self.holding(calls, until: ends))
      let client = try await Self.raw(stage, server)
      client.send(.request(9, serial: 50))
      await calls.reached(1)
      client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().connections.droppedResponses == 0)
      ends.open()
      try await stage.until { await server.counters().connections.droppedResponses == 1 }
    }
  }

  @Test func `handlers that ignore the end of their connection are bounded for the whole server`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (calls, ends) = (Tally<UInt32>(), Latch())
      let server = try await stage.serve(setUp: Self.holding(calls, until: ends)) {
        $0.limits.maxBody = 1_000
        // Room for 20 of them, by what each counts besides its body.
        $0.limits.memoryLimit = 20 * 4_096
      }
      var refused = 0
      for round in 0..<10 {
        let client = try await Self.raw(stage, server)
        for serial: UInt32 in 50..<60 { client.send(.request(9, serial: serial)) }
        try await stage.until {
          await server.counters().connections.requestsReceived == UInt64(10 * (round + 1))
        }
        client.reset()
        refused += client.record.responses.count
        try await stage.until { await server.counters().openConnections == 0 }
      }
      let counters = await server.counters()
      // What one turn reads may lead past the limit.
      #expect(calls.count <= 30)
      #expect(
        counters.connections.refusedForMemory + counters.connections.handlersSkipped
          == 100 - UInt64(calls.count))
      #expect(counters.bytesHeld <= 30 * 4_096)
      ends.open()
      try await stage.until { await server.counters().bytesHeld == 0 }
      let client = try await Self.raw(stage, server)
      client.send(.request(9, serial: 50))
      #expect(try await client.waitForResponse(to: 50).code == .ok)
    }
  }

  @Test func `a client with few requests is served though others have left too many behind`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let ends = Latch()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.route(9) { request in
          await ends.wait()
          return request.body
        }
      } configure: {
        $0.limits.maxBody = 1_000
        $0.limits.memoryLimit = 100 * 4_096
      }
      for _ in 0..<12 {
        let client = try await Self.raw(stage, server)
        client.send(bytes: (50..<60).flatMap { WireFrame.request(9, serial: $0).bytes })
        try await stage.until {
          let isRunning = await server.counters().requestsRunning > 0
          return isRunning || !client.record.responses.isEmpty
        }
        client.reset()
        try await stage.until { await server.counters().openConnections == 0 }
      }
      let counters = await server.counters()
      #expect(counters.connections.refusedForMemory > 0)
      #expect(counters.bytesHeld > 100 * 4_096 && counters.bytesHeld <= 125 * 4_096)
      let honest = try stage.client(of: server)
      #expect(try await honest.request(.echo, [7]) == [7])
      ends.open()
      try await stage.until { await server.counters().bytesHeld == 0 }
    }
  }

  @Test func `a body that a typed route cannot decode is refused, and its handler not called`()
    async throws
  {
    try await Stage.serving { server in
      server.route(RPCMethod<EmptyBody, [UInt8]>(7)) { _, request in request.body }
      server.route(RPCMethod<EmptyBody, EmptyBody>(8)) { body, request async in body }
    } _: { _, server, client in
      for type: MessageType in [7, 8] {
        let error = try await failure { try await client.request(type, [1]) }
        #expect(error.response == .malformed)
        #expect(error.delivery == .refused)
      }
      #expect(await server.counters().connections.undecodable == 2)
    }
  }

  @Test func `a route that comes too late traps`() async {
    await #expect(processExitsWith: .failure) {
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
      try await server.start()
      server.route(1) { $0.body }
    }
  }

  // MARK: Memory

  @Test func `the connections that hold the most make room for the others`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.limits.maxBody = 100_000
        $0.limits.maxRequestBytes = 400_000
        $0.limits.memoryLimit = 1_000_000
      })
      let honest = try stage.client(of: server)
      try await honest.connect()
      var greedy: [SimulatedClient] = []
      for index in 0..<20 {
        let client = try await Self.raw(stage, server)
        for serial: UInt32 in 50..<54 {
          let request = WireFrame.request(.echo, serial: serial, Self.large)
          client.send(request.fragments(of: 45_000)[0])
        }
        greedy.append(client)
        #expect(try await honest.request(.echo, [UInt8(index)]) == [UInt8(index)])
        #expect(await server.counters().bytesHeld < 1_000_000)
      }
      let counters = await server.counters()
      #expect(counters.endings["memoryLimit"] ?? 0 >= 12)
      // They are told why.
      let goaways = greedy.flatMap { $0.record.frames(of: .goaway) }
      #expect(goaways.count >= 12)
      for client in greedy { client.close() }
      try await stage.until { await server.counters().bytesHeld == 0 }
    }
  }

  @Test func `no connection is ended if freeing empty buffers is enough`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.route(8) { request in
          try await request.clock.sleep(for: .milliseconds(1))
          return request.body
        }
      } configure: {
        $0.limits.maxBody = 1_000
        $0.limits.maxInFlight = 200
        // Above what 150 requests count while they run, and less than 60 of their tables.
        $0.limits.memoryLimit = 2_000_000
      }
      var clients: [SimulatedClient] = []
      for _ in 0..<60 {
        let client = try await Self.raw(stage, server)
        client.send(bytes: (50..<200).flatMap { WireFrame.request(8, serial: $0).bytes })
        try await client.wait { $0.responses.count == 150 }
        clients.append(client)
      }
      let counters = await server.counters()
      #expect(counters.openConnections == 60)
      #expect(counters.endings["memoryLimit"] == nil)
      for client in clients { client.close() }
    }
  }

  @Test func `output that clients do not read counts in the same budget`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.limits.maxBody = 100_000
        $0.limits.memoryLimit = 1_000_000
      })
      let honest = try stage.client(of: server)
      try await honest.connect()
      var greedy: [SimulatedClient] = []
      for _ in 0..<20 {
        let client = try await Self.raw(stage, server)
        client.stopReading()
        for serial: UInt32 in 50..<80 { client.send(.request(.echo, serial: serial, Self.large)) }
        greedy.append(client)
        #expect(try await honest.request(.echo, [1]) == [1])
        #expect(await server.counters().bytesHeld < 1_100_000)
      }
      #expect(await server.counters().endings["memoryLimit"] ?? 0 > 0)
      for client in greedy { client.close() }
    }
  }

  @Test func `connections that take their answers are slowed down rather than ended`() async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.limits.maxBody = 100_000
        // Less than what 30 connections hold at their usual pace.
        $0.limits.memoryLimit = 12_000_000
      })
      let body = [UInt8](repeating: 7, count: 65_536)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<30 {
          let client = try stage.client(of: server)
          for _ in 0..<16 {
            group.addTask {
              for _ in 0..<2 {
                let echoed = try await client.request(.echo, body)
                #expect(echoed == body)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let counters = await server.counters()
      #expect(counters.endings.isEmpty)
      #expect(counters.connections.refusedForMemory == 0)
    }
  }

  // MARK: Connections

  @Test func `the number of connections of one address is limited`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.addresses.maxConnections = 3 })
      var clients: [SimulatedClient] = []
      for _ in 0..<5 {
        clients.append(
          try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop))
      }
      _ = try await clients[3].waitForEnd()
      _ = try await clients[4].waitForEnd()
      #expect(await server.counters().openConnections == 3)
      #expect(await server.counters().connectionsTurnedAway == 2)
      clients[0].close()
      try await stage.until { await server.counters().openConnections == 2 }
      let client = try await Self.raw(stage, server)
      client.send(.request(.echo, serial: 50))
      #expect(try await client.waitForResponse(to: 50).code == .ok)
    }
  }

  @Test(arguments: [false, true])
  func `loopback is limited only if that is asked for`(_ limits: Bool) async throws {
    try await Stage.run(.loopback) { stage in
      let server = try await stage.serve(configure: {
        $0.addresses.maxConnections = 1
        $0.addresses.limitsLoopback = limits
      })
      let first = try await Self.raw(stage, server)
      let second = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      if limits {
        _ = try await second.waitForEnd()
      } else {
        _ = try await second.sayHello()
      }
      first.close()
      second.close()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().connectionsTurnedAway == (limits ? 1 : 0))
    }
  }

  @Test func `a connection that is not wanted is closed before anything is read`() async throws {
    try await Stage.simulate { stage, simulation in
      let seen = Tally<SocketAddress?>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onAccept { address in
          seen.add(address)
          return seen.count > 1
        }
      }
      let first = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      first.send(.hello())
      _ = try await first.waitForEnd()
      #expect(first.record.frames.isEmpty)
      _ = try await Self.raw(stage, server)
      #expect(seen.elements.allSatisfy { $0?.host != nil })
      #expect(await server.counters().connections.framesReceived == 1)
    }
  }
}
