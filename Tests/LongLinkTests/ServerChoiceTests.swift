// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// A client of several servers: which one it uses, and what makes it leave one.
@Suite struct ServerChoiceTests {
  /// A server whose echo adds its name.
  private func serve(_ stage: Stage, _ name: UInt8) async throws -> LongLinkServer {
    try await stage.serve { server in
      server.route(.echo) { request in request.body + [name] }
      server.route(.fail) { _ in throw Rejection(1_234) }
      server.route(.hang) { request in
        try await request.clock.sleep(for: .seconds(1_000))
        return request.body
      }
    }
  }

  @Test func `a better server is used when it is available, and not before`() async throws {
    try await Stage.simulate { stage, simulation in
      let (best, other) = (try await serve(stage, 1), try await serve(stage, 2))
      simulation.network.setConnects(.refused, to: best.addresses[0])
      let client = try stage.client(of: best, other) {
        $0.reconnect.preferredRetry = .seconds(10)
        $0.reconnect.longestCoolDown = .seconds(5)
      }
      _ = try await failure { try await client.connect() }
      #expect(try await client.request(.echo, [0]) == [0, 2])
      // Many tries later the good link is still the same one.
      try await simulation.sleep(for: .seconds(100))
      #expect(client.state == .connected(other.addresses[0]))
      var counters = await client.counters()
      #expect(counters.connects == 1 && counters.failovers == 1 && counters.migrations == 0)
      #expect((8...12).contains(counters.failedAttempts), "\(counters.failedAttempts)")
      simulation.network.setConnects(.normal, to: best.addresses[0])
      try await stage.until { client.state == .connected(best.addresses[0]) }
      #expect(try await client.request(.echo, [0]) == [0, 1])
      counters = await client.counters()
      #expect(counters.connects == 2 && counters.migrations == 1)
      #expect(counters.requests.succeeded == counters.requests.submitted)
      try await stage.until { await other.counters().openConnections == 0 }
    }
  }

  @Test func `requests in flight when a better server is found are answered where they are`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let (began, goOn) = (Tally<Void>(), Latch())
      let best = try await serve(stage, 1)
      let other = try await stage.serve { server in
        server.route(.echo) { request in
          began.add(())
          await goOn.wait()
          return request.body + [2]
        }
      }
      simulation.network.setConnects(.refused, to: best.addresses[0])
      let client = try stage.client(of: best, other) {
        $0.reconnect.preferredRetry = .seconds(10)
        $0.reconnect.longestCoolDown = .seconds(5)
      }
      let slow = client.submit(.echo, [0], options: RequestOptions(timeout: .seconds(1_000)))
      await began.reached(1)
      simulation.network.setConnects(.normal, to: best.addresses[0])
      try await stage.until { client.state == .connected(best.addresses[0]) }
      #expect(try await client.request(.echo, [1]) == [1, 1])
      #expect(await other.counters().openConnections == 1)
      goOn.open()
      #expect(try await slow.value == [0, 2])
      try await stage.until { await other.counters().openConnections == 0 }
      #expect(await client.counters().linksExpired == 0)
    }
  }

  @Test(arguments: [true, false])
  func `a server that answers badly is left for another`(byDeadlines: Bool) async throws {
    try await Stage.simulate { stage, _ in
      let (bad, good) = (try await serve(stage, 1), try await serve(stage, 2))
      let client = try stage.client(of: bad, good) {
        $0.reconnect.leaveServer(
          atErrorRatio: 0.5, of: 5, codes: [1_234], countsDeadlines: byDeadlines)
      }
      for _ in 0..<5 {
        _ = try await failure {
          try await client.request(
            byDeadlines ? .hang : .fail, [1], options: RequestOptions(timeout: .seconds(1)))
        }
        #expect(client.state == .connected(bad.addresses[0]) || !client.state.isWhole)
      }
      try await stage.until { client.state == .connected(good.addresses[0]) }
      #expect(try await client.request(.echo, [0]) == [0, 2])
      let counters = await client.counters()
      #expect(counters.failovers == 1 && counters.migrations == 1 && counters.coolDowns == 1)
      #expect(counters.requests.lost == 0)
    }
  }

  @Test func `errors of the application do not count against the server`() async throws {
    try await Stage.simulate { stage, _ in
      let (only, other) = (try await serve(stage, 1), try await serve(stage, 2))
      let client = try stage.client(of: only, other) {
        $0.reconnect.leaveServer(atErrorRatio: 0.5, of: 5)
      }
      for _ in 0..<20 { _ = try await failure { try await client.request(.fail, [1]) } }
      #expect(client.state == .connected(only.addresses[0]))
    }
  }

  @Test func `clients spread over equal servers by weight`() async throws {
    let uses = Tally<Int>()
    for seed: UInt64 in 1...60 {
      try await Stage.simulate(seed: seed) { stage, _ in
        let (small, large) = (try await serve(stage, 1), try await serve(stage, 2))
        let client = try stage.client(of: small) {
          $0.servers = [
            ServerEntry(small.endpoints[0]), ServerEntry(large.endpoints[0], weight: 4),
          ]
        }
        uses.add(Int(try await client.request(.echo, [0])[1]))
      }
    }
    let small = uses.elements.count { $0 == 1 }
    // A fifth of 60 is 12, with a standard deviation of 3.
    #expect((3...22).contains(small), "\(small)")
  }

  @Test func `all events of a link arrive in order`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await serve(stage, 1)
      let client = try stage.client(to: [.host("10.0.0.77", port: 80)] + server.endpoints)
      let events = Tally<LinkEvent>()
      client.observeLinks { _, event in events.add(event) }
      _ = try await failure { try await client.connect() }
      _ = try await client.request(.echo, [1])
      await server.shutDown(spread: .seconds(3), retryAfter: .seconds(2))
      try await stage.until { !client.state.isConnected }
      let seen = events.elements
      guard seen.count >= 9 else {
        Issue.record("\(seen)")
        return
      }
      let (missing, there) = (Endpoint.host("10.0.0.77", port: 80), server.endpoints[0])
      #expect(
        seen[0]
          == .attempt(
            1, round: 1, server: missing, address: .ipv4(10, 0, 0, 77, port: 80), replaces: false))
      guard case .failed(1, .transport?) = seen[1] else {
        Issue.record("\(seen)")
        return
      }
      #expect(seen[2] == .roundFailed(server: missing, replaces: false))
      guard case .waiting(failures: 1, window: .seconds(1), let delay, .refused) = seen[3] else {
        Issue.record("\(seen)")
        return
      }
      #expect(delay <= .seconds(1))
      #expect(
        seen[4]
          == .attempt(2, round: 2, server: there, address: server.addresses[0], replaces: false))
      #expect(seen[5] == .established(2) && seen[6] == .worked(2))
      #expect(seen[7] == .goaway(2, .draining, retryAfter: .seconds(2), spread: .seconds(3)))
      // The other server did not ask to be left alone.
      guard case .waiting(failures: 0, window: .seconds(1), _, .closed) = seen[8] else {
        Issue.record("\(seen)")
        return
      }
      try await stage.until {
        events.elements.contains(.ended(2, .goneAway(.draining), worked: true))
      }
    }
  }
}

extension ConnectionState {
  /// Whether there is one connection, and no other is being made.
  fileprivate var isWhole: Bool {
    if case .connected = self { true } else { false }
  }
}
