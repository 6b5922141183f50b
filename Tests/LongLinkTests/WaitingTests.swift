// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Requests that wait for a connection or for room: how many, and which goes first.
@Suite struct WaitingTests {
  /// A server that notes what arrives, in its order, and answers with it.
  private func serve(_ stage: Stage, maxInFlight: Int = 1_024) async throws -> (
    server: LongLinkServer, arrived: Tally<[UInt8]>
  ) {
    let arrived = Tally<[UInt8]>()
    let server = try await stage.serve { server in
      server.route(.echo) { request in
        arrived.add(request.body)
        return request.body
      }
      server.route(.hang) { request in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return request.body
      }
    } configure: {
      $0.limits.maxInFlight = maxInFlight
    }
    return (server, arrived)
  }

  private static let byUrgency: [(RequestOptions, UInt8)] = [
    (RequestOptions(), 6),
    (RequestOptions(timeout: .seconds(50)), 5),
    (RequestOptions(priority: 2), 3),
    (RequestOptions(timeout: .seconds(20)), 4),
    (RequestOptions(timeout: .seconds(90), priority: 2), 2),
    (RequestOptions(), 7),
    (RequestOptions(priority: .max), 1),
  ]

  @Test func `the most urgent requests are sent first when the connection is there`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, arrived) = try await serve(stage)
      simulation.network.connects = .refused
      let client = try stage.client(of: server) { $0.timeouts.request = .seconds(100) }
      let tasks = Self.byUrgency.map { client.submit(.echo, [$0.1], options: $0.0) }
      try await stage.until { await client.counters().requestsWaiting == 7 }
      #expect(await client.counters().bytesWaiting == 7)
      simulation.network.connects = .normal
      for task in tasks { _ = try await task.value }
      #expect(arrived.elements == (1...7).map { [UInt8($0)] })
      #expect(await client.counters().requests.retried == 0)
    }
  }

  @Test func `the most urgent requests are sent first when there is room`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, arrived) = try await serve(stage, maxInFlight: 1)
      let client = try stage.client(of: server) { $0.timeouts.request = .seconds(100) }
      let first = client.submit(.hang, [0])
      try await stage.until { await server.counters().requestsRunning == 1 }
      let tasks = Self.byUrgency.map { client.submit(.echo, [$0.1], options: $0.0) }
      try await stage.until { await client.counters().requestsWaiting == 7 }
      // One goes in the middle, and changes nothing for the others.
      tasks[3].cancel()
      _ = try await failure { try await tasks[3].value }
      first.cancel()
      for (index, task) in tasks.enumerated() where index != 3 { _ = try await task.value }
      #expect(arrived.elements == [1, 2, 3, 5, 6, 7].map { [$0] })
    }
  }

  @Test func `requests over the waiting limits are refused, and the error names the limit`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (server, _) = try await serve(stage)
      simulation.network.connects = .refused
      let client = try stage.client(of: server) {
        $0.limits.maxWaiting = 3
        $0.limits.maxWaitingBytes = 1_000
        $0.timeouts.request = .seconds(100)
      }
      let bodies = [600, 300, 101].map { [UInt8](repeating: 1, count: $0) }
      let tasks = bodies.prefix(2).map { client.submit(.echo, $0) }
      let bytes = try await failure { try await client.request(.echo, bodies[2]) }
      #expect(bytes.code == .overloaded && bytes.delivery == .notSent)
      #expect(
        bytes.detail
          == "limits.maxWaitingBytes is 1000 and this request has 101 bytes; "
          + "2 requests (900 bytes) wait"
      )
      let last = client.submit(.echo, [UInt8](repeating: 1, count: 100))
      let count = try await failure { try await client.request(.echo, EmptyBody()) }
      #expect(count.code == .overloaded)
      #expect(count.detail == "limits.maxWaiting is 3; 3 requests (1000 bytes) wait")
      #expect(await client.counters().requests.turnedAway == 2)
      #expect(await client.counters().requests.failedLocally == 2)
      #expect(await client.counters().bytesWaiting == 1_000)
      // What a cancel frees can be had again.
      tasks[0].cancel()
      _ = try await failure { try await tasks[0].value }
      let late = client.submit(.echo, bodies[0])
      try await stage.until { await client.counters().requestsWaiting == 3 }
      simulation.network.connects = .normal
      for task in [tasks[1], last, late] { _ = try await task.value }
      #expect(await client.counters().bytesWaiting == 0)
    }
  }

  @Test func `requests that come back from a lost connection are not refused`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, arrived) = try await serve(stage)
      let client = try stage.client(of: server) {
        $0.limits.maxWaiting = 1
        $0.limits.maxWaitingBytes = 1
      }
      try await client.connect()
      let tasks = await client.loop.run {
        defer { simulation.network.loseAllLinks() }
        return (0..<5).map { client.submit(.echo, [UInt8($0), 0]) }
      }
      try await stage.until { await client.counters().requestsWaiting == 5 }
      #expect(await client.counters().bytesWaiting == 10)
      for (index, task) in tasks.enumerated() {
        #expect(try await task.value == [UInt8(index), 0])
      }
      #expect(arrived.elements == (0..<5).map { [UInt8($0), 0] })
      #expect(await client.counters().requests.retriedNotSent == 5)
    }
  }

  @Test func `a request that cannot be encoded does not wait`() async throws {
    struct Wrong: BodyEncodable, Sendable {
      var encodedByteCount: Int { get throws(BodyError) { throw BodyError(.notRepresentable) } }
      func encode(into output: inout OutputRawSpan) throws(BodyError) {}
    }
    try await Stage.simulate { stage, simulation in
      simulation.network.connects = .refused
      let client = try stage.client(to: [.host("10.0.0.1", port: 80)])
      let error = try await failure { try await client.request(.echo, Wrong()) }
      #expect(error.code == .encodingFailed && error.delivery == .notSent)
      #expect(await client.counters().requestsWaiting == 0)
    }
  }

  @Test func `very many requests wait, time out and are sent`() async throws {
    try await Stage.simulate { stage, simulation in
      let (server, arrived) = try await serve(stage)
      simulation.network.connects = .refused
      let client = try stage.client(of: server) {
        $0.limits.maxWaiting = 20_000
        $0.timeouts.request = .seconds(1_000)
      }
      let ended = Tally<Bool>()
      for number in 0..<20_000 {
        let options = RequestOptions(
          timeout: number % 2 == 0 ? .seconds(20) : nil, priority: UInt32(number % 3))
        client.request(.echo, [1], options: options, on: .connectionLoop) { result in
          ended.add((try? result.get()) != nil)
        }
      }
      await ended.reached(10_000)
      #expect(ended.elements.allSatisfy { !$0 })
      #expect(await client.counters().requestsWaiting == 10_000)
      simulation.network.connects = .normal
      await ended.reached(20_000)
      #expect(arrived.count == 10_000)
    }
  }
}
