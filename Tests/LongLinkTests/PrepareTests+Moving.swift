// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

/// Clients that move to a connection that is being prepared.
extension PrepareTests {
  @Test func `a client that is made of endpoints prepares its connections, too`() async throws {
    try await run { stage, server, _, seen, _ in
      let client = try LongLinkClient(to: server.endpoint, on: stage.clientLoop) { peer in
        _ = try await peer.request(.register, [0])
      }
      _ = try await client.request(.echo, [1])
      #expect(seen.types == [.register, .echo])
      await client.close()
    }
  }

  private struct NotNow: Error {}

  @Test(arguments: [true, false])
  func `pushes to a connection that cannot be used arrive once, and the old one stays`(
    isLate: Bool
  ) async throws {
    let pushes = Tally<[UInt8]>()
    try await run(
      client: { $0.timeouts.connect = .seconds(2) },
      prepare: { stage, peer, number in
        guard number == 2 else { return }
        _ = try await peer.request(.register, [])
        try await stage.clientLoop.sleep(for: .seconds(isLate ? 1_000 : 1))
        throw NotNow()
      }
    ) { stage, server, client, seen, calls in
      stage.simulation?.network.setConditions(
        LinkConditions(latency: .milliseconds(50) ... .milliseconds(50)), to: server.addresses[0])
      client.onPush(8) { pushes.add($0.body) }
      try await client.expectEcho([1])
      let sending = stage.spawn {
        for number in 0..<500 as Range<UInt16> {
          try await server.broadcast(8, [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)])
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
      }
      client.pathChanged()
      try await stage.until { await client.counters().failedAttempts == 1 }
      #expect(client.state.isConnected)
      try await client.expectEcho([2])
      try await sending.value
      try await stage.until { pushes.count >= 500 }
      let numbers = pushes.elements.map { Int($0[0]) << 8 | Int($0[1]) }
      #expect(numbers.sorted() == Array(0..<500))
      #expect(Set(seen.connections(of: .echo)).count == 1 && calls.count == 2)
      try await stage.until { await server.counters().openConnections == 1 }
    }
  }

  @Test(arguments: [true, false])
  func `a network that changes all the time does not keep a client offline`(isMoving: Bool)
    async throws
  {
    try await run(prepare: { stage, peer, number in
      if isMoving, number == 1 { return }
      _ = try await peer.request(.register, [])
      try await stage.clientLoop.sleep(for: .seconds(5))
    }) { stage, _, client, _, calls in
      let connecting = stage.spawn { try await client.connect() }
      if isMoving { try await connecting.value } else { await calls.reached(1) }
      let first = UInt64(isMoving ? 2 : 1)
      for _ in 0..<6 {
        client.pathChanged()
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      #expect(await client.counters().connects == first)
      // One more takes the path that is there now.
      try await stage.until { await client.counters().connects == first + 1 }
      try await stage.clientLoop.sleep(for: .seconds(60))
      #expect(await client.counters().connects == first + 1 && calls.count == Int(first) + 1)
    }
  }

  @Test func `a change of network finds a connection that died while it was prepared`()
    async throws
  {
    try await run(
      client: {
        $0.heartbeat.timeout = .seconds(2)
        $0.timeouts.connect = .seconds(100)
      },
      prepare: { stage, peer, number in
        if number == 1 { try await stage.clientLoop.sleep(for: .seconds(1_000)) }
      }
    ) { stage, server, client, _, calls in
      let failedRounds = Tally<Void>()
      client.observeLinks { _, event in if case .roundFailed = event { failedRounds.add(()) } }
      let connecting = stage.spawn { try await client.connect() }
      await calls.reached(1)
      for link in stage.simulation!.network.links(to: server.addresses[0]) { link.silence() }
      let start = stage.clientLoop.clock.now
      client.pathChanged()
      let options = RequestOptions(waitsForConnection: false)
      #expect(try await client.request(.echo, [1], options: options) == [1])
      #expect(start.duration(to: stage.clientLoop.clock.now) < .seconds(3))
      // The round has gone on over the new path.
      try await connecting.value
      #expect(calls.count == 2 && failedRounds.count == 0)
    }
  }

  // MARK: Beside short links

  /// A server whose long link was cut, and the next one of whose client stands a trial.
  private static func trial(
    prepare: @Sendable @escaping (Stage, Int) async throws -> Void,
    client: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    setUp: @Sendable @escaping (LongLinkClient) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.run(.bothWays) { stage in
      let (calls, server) = (Tally<Void>(), try await stage.serve())
      _ = try await stage.gateway(for: server)
      let client = try stage.client(of: server) {
        $0.ways = [.longLink, .short]
        $0.timeouts.connect = .seconds(20)
        $0.prepare = { [unowned stage] _ in
          calls.add(())
          try await prepare(stage, calls.count)
        }
        client(&$0)
      }
      setUp(client)
      try await stage.cut(server, client)
      try await stage.trial(of: server)
      try await body(stage, server, client)
    }
  }

  @Test(arguments: [true, false])
  func `an exchange that short links cannot carry waits for the connection that is prepared`(
    isInTime: Bool
  ) async throws {
    try await Self.trial(prepare: { stage, number in
      if number > 1 { try await stage.clientLoop.sleep(for: .seconds(5)) }
    }) { stage, _, client in
      let options = StreamOptions(timeout: .seconds(isInTime ? 9 : 3))
      let exchange = stage.spawn {
        try await client.exchange(12, [], options: options) { items, writer in
          var iterator = items.makeAsyncIterator()
          try await writer.write([2])
          #expect(try await iterator.next() == [2])
        }
      }
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(!client.state.isConnected)
      // Others take short links meanwhile, of which no more are opened than are needed.
      for number in 1...5 as ClosedRange<UInt8> { try await client.expectEcho([number]) }
      let begun = stage.simulation!.network.links(to: Way.gatewayAddress).count
      #expect(await client.shortRequests() == 5 && begun <= 5, "\(begun)")
      if isInTime {
        _ = try await exchange.value
        #expect(client.state.isConnected)
      } else {
        let error = try await failure { try await exchange.value }
        #expect(error.code == .deadlineExceeded && error.delivery == .notSent, "\(error)")
      }
    }
  }

  @Test func `an exchange waits no longer than the preparation that it waits for`() async throws {
    try await Self.trial(prepare: { stage, number in
      guard number > 1 else { return }
      try await stage.clientLoop.sleep(for: .seconds(5))
      throw NotNow()
    }) { stage, _, client in
      let start = stage.clientLoop.clock.now
      let error = try await failure { try await client.exchange(12, []) { _, _ in } }
      #expect(error.code == .unsupported && error.delivery == .notSent, "\(error)")
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time >= .seconds(5) && time < .seconds(6), "\(time)")
    }
  }

  @Test func `a connection that the application closes in its trial says so`() async throws {
    let lines = LogLines()
    try await Self.trial(
      prepare: { _, _ in }, client: { $0.logger = lines.logger },
      setUp: { client in
        client.onRequest(9) { request in
          request.peer.close()
          return []
        }
      }
    ) { stage, server, client in
      _ = try? await server.peers()[0].request(9, [])
      try await stage.until { await client.counters().trialsFailed == 1 }
      let line = try #require(lines.all("Could not connect").first)
      #expect(line.metadata["reason"] == "closedHere", "\(line)")
      #expect(line.metadata["detail"] == "the application has closed the connection", "\(line)")
    }
  }
}
