// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Connecting, noticing that the connection is gone, and connecting again; in virtual time.
@Suite struct ConnectionTests {
  static let seeds: ClosedRange<UInt64> = 1...30

  /// The times that the client said it would wait, in order.
  private func waits(
    _ states: inout AsyncStream<ConnectionState>.Iterator,
    count: Int
  ) async -> [Duration] {
    var waits: [Duration] = []
    while waits.count < count, let state = await states.next(isolation: nil) {
      if case .waiting(let duration) = state { waits.append(duration) }
    }
    return waits
  }

  private func isConnected(_ client: LongLinkClient) -> Bool {
    if case .connected = client.state { true } else { false }
  }

  @Test func `a caller that learns of a connection, or of its failure, sees it in the state`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxBody = 1_000 })
      simulation.network.connects = .refused
      let client = try stage.client(of: server)
      let seen = Tally<ConnectionState>()
      func ask(_ count: Int, _ waits: Bool) {
        client.request(
          .echo, [UInt8](repeating: 0, count: count),
          options: RequestOptions(waitsForConnection: waits),
          on: .connectionLoop
        ) { _ in seen.add(client.state) }
      }
      ask(2_000, true)
      ask(1, false)
      await seen.reached(1)
      guard case .waiting = seen.elements[0] else {
        Issue.record("\(seen.elements)")
        return
      }
      simulation.network.connects = .normal
      await seen.reached(2)
      #expect(seen.elements[1] == .connected(server.addresses[0]))
    }
  }

  @Test func `the states come in their order`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      let states = client.states()
      try await client.connect()
      _ = try await client.request(.echo, [1])
      simulation.network.loseAllLinks()
      try await stage.until { !isConnected(client) }
      // Requests that come while the client waits do not make another state.
      let task = client.submit(.echo, [2])
      let other = client.submit(.echo, [3])
      #expect(try await task.value == [2])
      #expect(try await other.value == [3])
      await client.close()
      var seen: [ConnectionState] = []
      for await state in states { seen.append(state) }
      let endpoint = server.endpoints[0]
      let address = server.addresses[0]
      guard seen.count == 7, case .waiting(let wait) = seen[3] else {
        Issue.record("\(seen)")
        return
      }
      #expect(wait <= .seconds(1))
      let expected: [ConnectionState] = [
        .idle, .connecting(endpoint), .connected(address), .waiting(wait), .connecting(endpoint),
        .connected(address), .closed,
      ]
      #expect(seen == expected)
      var late: [ConnectionState] = []
      for await state in client.states() { late.append(state) }
      #expect(late == [.closed])
    }
  }

  @Test func `connecting returns at once if there is a connection`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve())
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<5 { group.addTask { try await client.connect() } }
        try await group.waitForAll()
      }
      let now = simulation.now
      try await client.connect()
      #expect(simulation.now == now)
      #expect(await client.counters().connects == 1)
    }
  }

  @Test func `a connect whose caller no longer waits`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.connects = .ignored
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      let task = stage.spawn { try await failure { try await client.connect() } }
      try await simulation.sleep(for: .milliseconds(5))
      task.cancel()
      #expect(try await task.value.code == .cancelled)
    }
  }

  @Test func `a round trip is measured`() async throws {
    try await Stage.simulate { stage, simulation in
      let client = try stage.client(of: try await stage.serve())
      let early = try await failure { try await client.ping() }
      #expect(early.code == .notConnected && early.detail == "no connection")
      try await client.connect()
      #expect(try await client.ping() == .milliseconds(1))
      simulation.network.links[0].silence()
      let task = stage.spawn { try await failure { try await client.ping() } }
      try await simulation.sleep(for: .seconds(1))
      await client.close()
      #expect(try await task.value.code == .closed)
    }
  }

  @Test(arguments: seeds)
  func `delays lie within their windows`(_ seed: UInt64) async throws {
    try await Stage.simulate(seed: seed) { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.heartbeat = Heartbeat(interval: .seconds(2), timeout: .seconds(1))
      }
      var states = client.states().makeAsyncIterator()
      _ = try await client.request(.echo, [1])
      await server.peers()[0].close()
      #expect(await waits(&states, count: 1)[0] <= .seconds(1))
      _ = try await client.request(.echo, [2])
      simulation.network.loseAllLinks()
      #expect(await waits(&states, count: 1)[0] <= .seconds(1))
      _ = try await client.request(.echo, [3])
      for link in simulation.network.links { link.silence() }
      let silenced = simulation.now
      let wait = await waits(&states, count: 1)[0]
      #expect(wait <= .seconds(5))
      let noticed = silenced.duration(to: simulation.now)
      #expect(noticed <= .seconds(3) + .milliseconds(5))
      #expect(try await client.request(.echo, [4]) == [4])
      #expect(await client.counters().endings["heartbeatLost"] == 1)
    }
  }

  @Test func `the delay after a lost heartbeat uses its whole window`() async throws {
    let longest = Tally<Duration>()
    for seed in Self.seeds {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let client = try stage.client(of: try await stage.serve()) {
          $0.heartbeat = Heartbeat(interval: .seconds(2), timeout: .seconds(1))
        }
        var states = client.states().makeAsyncIterator()
        _ = try await client.request(.echo, [1])
        simulation.network.links[0].silence()
        longest.add(await waits(&states, count: 1)[0])
      }
    }
    #expect(longest.elements.max()! > .seconds(4))
    #expect(longest.elements.min()! < .seconds(1))
  }

  @Test func `a dead server is found even while much is written`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server) {
        $0.heartbeat = Heartbeat(interval: .seconds(2), timeout: .seconds(1))
      }
      _ = try await client.request(.echo, [1])
      let silenced = simulation.now
      simulation.network.links[0].silence()
      let writing = stage.spawn {
        do {
          while true {
            try await client.push(7, [UInt8](repeating: 1, count: 1_000))
            try await simulation.sleep(for: .milliseconds(10))
          }
        } catch {}
      }
      let task = client.submit(.hang, [1], options: RequestOptions(timeout: .seconds(100)))
      let error = try await failure { try await task.value }
      #expect(error.code == .connectionLost)
      #expect(error.closeReason == .heartbeatLost)
      #expect(error.delivery == .sent)
      #expect(silenced.duration(to: simulation.now) <= .seconds(3) + .milliseconds(5))
      _ = await writing.result
      // The server finds its client gone within the same bound.
      try await simulation.sleep(for: .seconds(1))
      #expect(await server.counters().endings["heartbeatLost"] == 1)
    }
  }

  @Test func `an idle connection lives`() async throws {
    try await Stage.pair { stage, _, client in
      try await client.connect()
      try await stage.clientLoop.sleep(for: .seconds(36_000))
      let counters = await client.counters()
      #expect(counters.connects == 1)
      #expect(counters.connections.pingsSent <= 1_201)
      #expect(try await client.request(.echo, [1]) == [1])
    }
  }

  @Test func `back-off grows to its cap`() async throws {
    let runs = Tally<[Duration]>()
    for seed in Self.seeds {
      try await Stage.simulate(seed: seed) { stage, simulation in
        simulation.network.connects = .refused
        let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
        var states = client.states().makeAsyncIterator()
        _ = try await failure { try await client.connect() }
        runs.add(await waits(&states, count: 8))
      }
    }
    let bounds = [1, 2, 4, 8, 16, 30].map { Duration.seconds($0) }
    for (index, bound) in bounds.enumerated() {
      let drawn = runs.elements.map { $0[index] }
      #expect(drawn.allSatisfy { $0 <= bound })
      // Evenly drawn: of thirty some come close to each end.
      #expect(drawn.max()! > bound * 3 / 4)
      #expect(drawn.min()! < bound / 4)
    }
    // Once at the cap the spread that was drawn is kept.
    for run in runs.elements {
      for pause in run[6...] { #expect(pause >= .seconds(30) && pause <= .seconds(36)) }
    }
  }

  @Test func `a server that greets and closes does not reset the back-off`() async throws {
    let runs = Tally<[Duration]>()
    for seed in Self.seeds {
      try await Stage.simulate(seed: seed) { stage, simulation in
        let server = try await stage.serve { server in
          server.onConnect { $0.close() }
        }
        let client = try stage.client(of: server)
        var states = client.states().makeAsyncIterator()
        try await client.connect()
        runs.add(await waits(&states, count: 6))
      }
    }
    for (index, bound) in [1, 2, 4, 8, 16, 30].enumerated() {
      let drawn = runs.elements.map { $0[index] }
      #expect(drawn.allSatisfy { $0 <= .seconds(bound) })
      #expect(drawn.max()! > .seconds(bound) * 3 / 4)
    }
  }

  @Test(arguments: seeds, [true, false])
  func `an answer or a heartbeat interval resets the back-off`(
    _ seed: UInt64,
    _ answers: Bool
  ) async throws {
    try await Stage.simulate(seed: seed) { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(of: server)
      simulation.network.connects = .refused
      var states = client.states().makeAsyncIterator()
      _ = try await failure { try await client.connect() }
      _ = await waits(&states, count: 7)
      simulation.network.connects = .normal
      try await client.connect()
      if answers {
        _ = try await client.request(.echo, [1])
      } else {
        try await simulation.sleep(for: .seconds(31))
      }
      let rest = client.states()
      simulation.network.loseAllLinks()
      for await state in rest {
        guard case .waiting(let wait) = state else { continue }
        #expect(wait <= .seconds(1))
        break
      }
    }
  }

  @Test func `requests that wait go out in their order`() async throws {
    try await Stage.simulate { stage, simulation in
      let received = Tally<UInt8>()
      let server = try await stage.serve { server in
        server.route(.echo) { request in
          received.add(request.body[0])
          return request.body
        }
      }
      let client = try stage.client(of: server)
      _ = try await client.request(.echo, [255])
      simulation.network.connects = .refused
      simulation.network.loseAllLinks()
      try await stage.until { !isConnected(client) }
      let tasks = (0..<100).map { client.submit(.echo, [UInt8($0)]) }
      try await simulation.sleep(for: .seconds(5))
      tasks[50].cancel()
      simulation.network.connects = .normal
      for (index, task) in tasks.enumerated() where index != 50 {
        #expect(try await task.value == [UInt8(index)])
      }
      let expected: [UInt8] = [255] + Array(0..<50) + Array(51..<100)
      #expect(received.elements == expected)
    }
  }

  @Test func `another server is tried when one fails`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try stage.client(to: [.host("10.0.0.77", port: 80)] + server.endpoints)
      let error = try await failure { try await client.connect() }
      #expect(error.peer == .ipv4(10, 0, 0, 77, port: 80))
      #expect(try await client.request(.echo, [1]) == [1])
      #expect(client.state == .connected(server.addresses[0]))
    }
  }

  @Test func `addresses race and the first that answers wins`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(at: .host("10.0.0.3", port: 80))
      let (hole, slow) = (
        SocketAddress.ipv4(10, 0, 0, 1, port: 80), SocketAddress.ipv4(10, 0, 0, 2, port: 80)
      )
      simulation.network.setConnects(.ignored, to: hole)
      simulation.network.setConnects(.ignored, to: slow)
      simulation.network.host(
        "service.example",
        addresses: [hole, slow, server.addresses[0]],
        delay: .zero
      )
      let client = try stage.client(to: [.host("service.example", port: 80)])
      try await client.connect()
      let connected = simulation.now.nanoseconds
      #expect(connected >= 500_000_000 && connected < 510_000_000)
      #expect(client.state == .connected(server.addresses[0]))
      #expect(simulation.network.links.count == 1)
      #expect(try await client.request(.echo, [1]) == [1])
    }
  }

  @Test func `an address that refuses does not hold up the next`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(at: .host("10.0.0.3", port: 80))
      simulation.network.host(
        "service.example",
        addresses: [.ipv4(10, 0, 0, 1, port: 80), server.addresses[0]],
        delay: .zero
      )
      let client = try stage.client(to: [.host("service.example", port: 80)])
      try await client.connect()
      #expect(simulation.now.nanoseconds < 10_000_000)
      #expect(await client.counters().failedAttempts == 1)
    }
  }

  @Test func `the loser of a race is closed and not counted as a failure`() async throws {
    try await Stage.simulate { stage, simulation in
      let slow = try await stage.serve(at: .host("10.0.0.1", port: 80))
      let fast = try await stage.serve(at: .host("10.0.0.2", port: 80))
      simulation.network.setConditions(
        LinkConditions(latency: .milliseconds(400) ... .milliseconds(400)),
        to: slow.addresses[0]
      )
      simulation.network.host(
        "service.example",
        addresses: slow.addresses + fast.addresses,
        delay: .zero
      )
      let client = try stage.client(to: [.host("service.example", port: 80)])
      try await client.connect()
      #expect(client.state == .connected(fast.addresses[0]))
      try await simulation.sleep(for: .seconds(5))
      #expect(simulation.network.links.count == 1)
      #expect(client.state == .connected(fast.addresses[0]))
      let counters = await client.counters()
      #expect(counters.connects == 1 && counters.failedAttempts == 0)
      #expect(counters.abandonedAttempts == 1)
      #expect(await slow.counters().openConnections == 0)
    }
  }
}
