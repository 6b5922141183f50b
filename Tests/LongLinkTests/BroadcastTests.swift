// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// What a server sends to all of its connections.
@Suite struct BroadcastTests {
  private static let count = 2_000

  /// A server with clients that note the pushes that they get.
  private func serve(
    _ count: Int, _ stage: Stage, _ received: Tally<(client: Int, number: UInt8)>
  ) async throws -> (LongLinkServer, [LongLinkClient]) {
    let server = try await stage.serve(configure: {
      $0.limits.maxHandshakes = count + 1
      $0.addresses.maxConnections = count + 1
      $0.addresses.maxConnectionRate = 1_000_000
    })
    var clients: [LongLinkClient] = []
    for index in 0..<count {
      let client = try stage.client(of: server)
      client.onPush(7) { received.add((index, $0.body[0])) }
      clients.append(client)
    }
    // More at once than the listener's queue holds would connect twice.
    for start in stride(from: 0, to: count, by: 500) {
      let some = clients[start..<min(count, start + 500)]
      let connecting = some.map { client in stage.spawn { try await client.connect() } }
      for task in connecting { try await task.value }
    }
    return (server, clients)
  }

  @Test func `others are served while a broadcast or a drain comes to thousands of connections`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let count = Self.count
      let received = Tally<(client: Int, number: UInt8)>()
      let (server, clients) = try await serve(count, stage, received)
      let machine = simulation.machine(of: stage.serverLoop)
      // The world goes on between the turns of the server's loop.
      func turn() async throws {
        machine.resume()
        await Task.detached(executorPreference: stage.serverLoop) {}.value
        machine.pause()
        try await simulation.sleep(for: .milliseconds(2))
      }
      let broadcasts = (1...3).map { number in
        stage.spawn { try await server.broadcast(7, [UInt8(number)]) }
      }
      try await turn()
      #expect(received.count > 0 && received.count < count / 2)
      let newcomer = try stage.client(of: server)
      newcomer.onPush(7) { received.add((count, $0.body[0])) }
      let connecting = stage.spawn { try await newcomer.connect() }
      let leaving = stage.spawn { await clients[count - 1].close() }
      let asking = clients[count - 2].submit(.echo, [5])
      for _ in 0..<3 { try await turn() }
      #expect(try await asking.value == [5])
      try await connecting.value
      try await leaving.value
      #expect(received.count < count)
      machine.resume()
      var reports: [Int] = []
      for task in broadcasts { reports.append(try await task.value.queued) }
      #expect(reports == [count - 1, count, count])
      try await stage.until { received.count == 3 * count - 1 }
      let numbers = Dictionary(grouping: received.elements, by: \.client)
        .mapValues { $0.map(\.number) }
      #expect((0..<count - 1).allSatisfy { numbers[$0] == [1, 2, 3] })
      #expect(numbers[count - 1] == nil && numbers[count] == [2, 3])

      machine.pause()
      let shutting = stage.spawn { await server.shutDown(within: .seconds(60)) }
      for _ in 0..<3 { try await turn() }
      let connected = clients.count { if case .connected = $0.state { true } else { false } }
      #expect(connected > 0 && connected < count - 1)
      machine.resume()
      try await shutting.value
    }
  }

  @Test func `a broadcast to a few connections is over in one turn`() async throws {
    final class Turn: TurnHandler, Sendable {
      let ends = Tally<Void>()

      func turnEnds(token: UInt64) { ends.add(()) }
    }
    try await Stage.simulate { stage, _ in
      let received = Tally<(client: Int, number: UInt8)>()
      let (server, _) = try await serve(20, stage, received)
      let loop = stage.serverLoop
      let task = Task.detached(executorPreference: loop) {
        let turn = Turn()
        loop.atEndOfTurn(turn, token: 0)
        let report = try await server.broadcast(7, [1])
        return (report.queued, turn.ends.count)
      }
      #expect(try await task.value == (20, 0))
      await received.reached(20)
    }
  }

  @Test func `a push to a principal is sent at once on its loop, but after earlier broadcasts`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      })
      let received = Tally<UInt8>()
      let client = try stage.client(of: server) {
        $0.identity.credential = { Array("key-ann".utf8) }
        $0.identity.sendsCredentialUnencrypted = true
      }
      client.onPush(7) { received.add($0.body[0]) }
      try await client.connect()
      let loop = stage.serverLoop
      let task = Task.detached(executorPreference: loop) {
        let others = Tally<Void>()
        loop.execute { others.add(()) }
        let report = try await server.push(to: "ann", 7, [1])
        #expect(report.queued == 1 && others.count == 0)
        let broadcast = Task.immediate(executorPreference: loop) {
          try await server.broadcast(7, [2])
        }
        #expect(try await server.push(to: "ann", 7, [3]).queued == 1)
        #expect(try await broadcast.value.queued == 1)
      }
      try await task.value
      await received.reached(3)
      #expect(received.elements == [1, 2, 3])
    }
  }

  @Test func `a broadcast that begins while a connection opens comes to its client once`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let servers = Tally<LongLinkServer>()
      let reports = Tally<BroadcastReport>()
      let loop = stage.serverLoop
      let server = try await stage.serve(configure: {
        $0.identity.authenticate = { request in
          if let server = servers.elements.first {
            // It comes to the loop in the turn in which the connection opens.
            Task.immediate(executorPreference: loop) {
              reports.add(try await server.broadcast(7, [1]))
            }
          }
          return try AuthenticationTests.byKey(request)
        }
      })
      let received = Tally<String>()
      func client(named name: String) async throws -> LongLinkClient {
        let client = try stage.client(of: server) {
          $0.identity.credential = { Array("key-\(name)".utf8) }
          $0.identity.sendsCredentialUnencrypted = true
        }
        client.onPush(7) { _ in received.add(name) }
        try await client.connect()
        return client
      }
      let ann = try await client(named: "ann")
      servers.add(server)
      ann.pathChanged(network: "other")
      await reports.reached(1)
      try await stage.until { await server.counters().connectionsAccepted == 2 }
      try await stage.until { await server.counters().openConnections == 1 }
      #expect(try await ann.request(.echo, [5]) == [5])
      #expect(reports.elements[0].queued == 1 && received.elements == ["ann"])
      // A client's first connection is no different.
      let bob = try await client(named: "bob")
      #expect(try await bob.request(.echo, [5]) == [5])
      await received.reached(2)
      #expect(reports.elements[1].queued == 1 && received.elements == ["ann", "ann"])
    }
  }

  @Test func `a hook that a broadcast calls may end other connections`() async throws {
    try await Stage.simulate { stage, simulation in
      let ended = Tally<Int>()
      let names = ["slow", "quick", "other"]
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onDisconnect { [weak server] peer in
          guard peer.principal?.name == "slow" else { return }
          // It begins within the broadcast, not after it.
          Task.immediate(executorPreference: peer.loop) {
            ended.add(await server?.endConnections(of: "quick") ?? 0)
          }
        }
      } configure: {
        $0.limits.waterMarks = WaterMarks(high: 100_000, low: 40_000)
        $0.identity.authenticate = { try AuthenticationTests.byKey($0) }
      }
      var clients: [LongLinkClient] = []
      for name in names {
        let client = try stage.client(of: server) {
          $0.identity.credential = { Array("key-\(name)".utf8) }
          $0.identity.sendsCredentialUnencrypted = true
        }
        try await client.connect()
        clients.append(client)
      }
      simulation.network.links[0].silence(.toClient)
      let slow = try #require(await server.peers().first { $0.principal?.name == "slow" })
      while await server.counters().bytesUnwritten < 100_000 {
        try await slow.push(7, [UInt8](repeating: 1, count: 10_000))
        try await simulation.sleep(for: .milliseconds(1))
      }
      let report = try await server.broadcast(8, [1], closingSlow: true)
      #expect(report.dropped == 1 && report.queued == 2, "\(report)")
      await ended.reached(1)
      #expect(ended.elements == [1])
      #expect(try await server.broadcast(8, [2]).queued >= 1)
    }
  }
}
