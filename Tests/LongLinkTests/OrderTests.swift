// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Requests that keep the order in which they were submitted.
@Suite struct OrderTests {
  private static let ordered = RequestOptions(timeout: .seconds(100), isOrdered: true)

  private func ordered(
    priority: UInt32 = 0, timeout: Duration = .seconds(100), retry: RetryMode = .ifSafe
  ) -> RequestOptions {
    RequestOptions(
      timeout: timeout, priority: priority, retry: retry, isOrdered: true)
  }

  /// A server that notes the first byte of what arrives, in its order.
  private func serve(
    _ stage: Stage, _ arrived: Tally<UInt8>,
    configure: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkServer {
    try await stage.serve(
      setUp: { server in
        server.route(.echo) { request in
          arrived.add(request.body[0])
          return [request.body[0]]
        }
      }, configure: configure)
  }

  @Test func `priorities and deadlines change nothing among them`() async throws {
    try await Stage.simulate { stage, simulation in
      let arrived = Tally<UInt8>()
      let server = try await serve(stage, arrived)
      simulation.network.connects = .refused
      let client = try stage.client(of: server)
      let tasks = [
        client.submit(.echo, [1], options: ordered()),
        client.submit(.echo, [2], options: ordered(priority: 9)),
        client.submit(.echo, [3], options: ordered(priority: 5, timeout: .seconds(50))),
        client.submit(.echo, [10], options: RequestOptions(timeout: .seconds(90), priority: 1)),
        client.submit(.echo, [4], options: ordered(priority: 7)),
      ]
      try await stage.until { await client.counters().requestsWaiting == 5 }
      simulation.network.connects = .normal
      for task in tasks { _ = try await task.value }
      #expect(arrived.elements == [10, 1, 2, 3, 4])
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a small one does not pass a large one`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let arrived = Tally<UInt8>()
      let server = try await serve(stage, arrived)
      let client = try stage.client(of: server)
      try await client.connect()
      let large = (1...3).map { [UInt8](repeating: $0, count: 2_000_000) }
      let tasks = await client.loop.run {
        [
          client.submit(.echo, large[0], options: Self.ordered),
          client.submit(.echo, [2], options: Self.ordered),
          client.submit(.echo, large[2], options: Self.ordered),
          client.submit(.echo, [4], options: Self.ordered),
          // One that asks for no order does pass.
          client.submit(.echo, [10], options: RequestOptions(timeout: .seconds(100))),
        ]
      }
      for task in tasks { _ = try await task.value }
      #expect(arrived.elements == [10, 1, 2, 3, 4])
    }
  }

  @Test func `a large one that is cancelled lets the next one go`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(20) ... .milliseconds(20))
      let arrived = Tally<UInt8>()
      let server = try await serve(stage, arrived)
      let client = try stage.client(of: server)
      try await client.connect()
      let large = client.submit(
        .echo, [UInt8](repeating: 1, count: 8_000_000), options: Self.ordered)
      let small = client.submit(.echo, [2], options: Self.ordered)
      try await simulation.sleep(for: .milliseconds(5))
      #expect(await small.state == .created)
      large.cancel()
      #expect(try await small.value == [2])
      #expect(try await failure { try await large.value }.delivery == .sent)
      #expect(arrived.elements == [2])
    }
  }

  @Test func `nothing goes to the next server before what is under way has ended`() async throws {
    try await Stage.simulate { stage, simulation in
      let arrived = Tally<UInt8>()
      let goOn = Latch()
      let old = try await stage.serve { server in
        server.route(.echo) { request in
          arrived.add(request.body[0])
          await goOn.wait()
          return request.body
        }
      }
      let new = try await serve(stage, arrived)
      let client = try stage.client(of: old, new)
      let first = client.submit(.echo, [1], options: Self.ordered)
      await arrived.reached(1)
      let shutting = stage.spawn { await old.shutDown(within: .seconds(100)) }
      try await simulation.sleep(for: .milliseconds(50))
      let second = client.submit(.echo, [2], options: Self.ordered)
      let third = client.submit(.echo, [3], options: Self.ordered)
      #expect(try await client.request(.echo, [10]) == [10])
      try await simulation.sleep(for: .seconds(5))
      #expect(arrived.elements == [1, 10])
      goOn.open()
      #expect(try await first.value == [1])
      #expect(try await second.value == [2])
      #expect(try await third.value == [3])
      #expect(arrived.elements == [1, 10, 2, 3])
      try await shutting.value
    }
  }

  @Test func `those that a goaway did not count go to the next server in their order`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(
        latency: .milliseconds(20) ... .milliseconds(20))
      let arrived = Tally<UInt8>()
      let old = try await serve(stage, arrived)
      let new = try await serve(stage, arrived)
      let client = try stage.client(of: old, new) { $0.reconnect.afterClose = .milliseconds(50) }
      #expect(try await client.request(.echo, [0]) == [0])
      let shutting = stage.spawn { await old.shutDown(within: .seconds(100)) }
      try await simulation.sleep(for: .milliseconds(1))
      // The client does not know yet. Some of these leave, one in part, and some are kept back.
      let large = [UInt8](repeating: 3, count: 3_000_000)
      var tasks = [
        client.submit(.echo, [1], options: Self.ordered),
        client.submit(.echo, [2], options: ordered(priority: 5)),
        client.submit(.echo, large, options: Self.ordered),
      ]
      for number: UInt8 in 4...9 {
        tasks.append(client.submit(.echo, [number], options: ordered(priority: UInt32(number))))
      }
      let free = client.submit(.echo, [UInt8](repeating: 20, count: 3_000_000))
      for task in tasks { _ = try await task.value }
      #expect(try await free.value == [20])
      try await shutting.value
      #expect(arrived.elements.filter { $0 != 20 } == Array(0...9))
      let counters = await client.counters().requests
      #expect(counters.retriedRefused >= 3 && counters.lost == 0 && counters.rejected == 0)
      #expect(await old.counters().connections.handled == 1)
      #expect(await old.counters().violations.isEmpty)
    }
  }

  @Test func `a refused one is sent again before the later ones that wait`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
      let client = try stage.client(to: [server.endpoint])
      let hint = WireMetadata(retryAfter: .seconds(1))
      server.on(1, [.refuse(.overloaded, metadata: hint), .reply([1])])
      server.on(2, .reply([2]))
      try await client.connect()
      let first = client.submit(1, [1], options: Self.ordered)
      try await stage.until { await client.counters().requestsWaiting == 1 }
      let second = client.submit(2, [2], options: ordered(priority: 9))
      #expect(try await client.request(2, [3]) == [2])
      #expect(try await first.value == [1])
      #expect(try await second.value == [2])
      #expect(server.requests.map(\.body) == [[1], [3], [1], [2]])
      await server.stop()
    }
  }

  @Test func `one that a later one has passed is not sent again`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await SimulatedServer.start(
        on: stage.serverLoop, at: .ipv4(127, 0, 0, 1, port: 0))
      let client = try stage.client(to: [server.endpoint]) {
        $0.reconnect.afterClose = .milliseconds(5)
      }
      server.on(1, [.refuse(.overloaded), .reply([1])])
      server.on(2, [.refuse(.overloaded), .reply([2])])
      try await client.connect()
      let tasks = await client.loop.run {
        [
          client.submit(1, [1], options: Self.ordered),
          client.submit(2, [2], options: Self.ordered),
        ]
      }
      // The second is under way when the first is refused; behind it comes nothing.
      let error = try await failure { try await tasks[0].value }
      #expect(error.response == .overloaded && error.delivery == .refused)
      #expect(try await tasks[1].value == [2])
      #expect(server.requests.map(\.body[0]) == [1, 2, 2])
      await server.stop()
    }
  }

  @Test func `one that may still arrive is not sent again, idempotent or not`() async throws {
    try await Stage.simulate { stage, simulation in
      let arrived = Tally<UInt8>()
      // The next connection must not show that the first one is dead before this arrives.
      let heartbeat = Heartbeat(interval: .seconds(30), timeout: .seconds(60))
      let server = try await serve(stage, arrived) { $0.heartbeat = heartbeat }
      let client = try stage.client(of: server) { $0.heartbeat = heartbeat }
      try await client.connect()
      // What leaves here arrives when its connection has been given up for long.
      let link = try #require(simulation.network.links.last)
      link.setConditions(LinkConditions(latency: .seconds(20) ... .seconds(20)))
      let idempotent = ordered(retry: .idempotent)
      let late = client.submit(.echo, [1], options: idempotent)
      try await stage.until { await late.state == .waiting }
      await client.suspend()
      client.resume()
      #expect(try await failure { try await late.value }.delivery == .sent)
      #expect(try await client.request(.echo, [2], options: idempotent) == [2])
      await arrived.reached(2)
      #expect(arrived.elements == [2, 1])
      #expect(await client.counters().requests.retriedIdempotent == 0)
    }
  }

  @Test func `one that fails lets the later ones go on`() async throws {
    try await Stage.simulate { stage, simulation in
      let arrived = Tally<UInt8>()
      let server = try await serve(stage, arrived) { $0.limits.maxBody = 1_000 }
      simulation.network.connects = .refused
      let client = try stage.client(of: server)
      let tasks = [
        client.submit(.echo, [1], options: ordered(timeout: .seconds(1))),
        client.submit(.echo, [UInt8](repeating: 2, count: 2_000), options: Self.ordered),
        client.submit(.echo, [3], options: Self.ordered),
        client.submit(.echo, [4], options: Self.ordered),
      ]
      #expect(try await failure { try await tasks[0].value }.code == .deadlineExceeded)
      tasks[2].cancel()
      simulation.network.connects = .normal
      #expect(try await tasks[3].value == [4])
      #expect(try await failure { try await tasks[1].value }.code == .tooLarge)
      #expect(arrived.elements == [4])
    }
  }
}
