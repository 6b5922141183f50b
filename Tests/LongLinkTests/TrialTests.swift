// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

/// Networks that let a long link be made and cut it, and the trial that the next one stands.
@Suite struct TrialTests {
  private static let way = "short://10.0.0.1:8080"

  /// Runs a body with a server that has both ways, and a client that knows them.
  static func both(
    connectTimeout: Duration = .seconds(3),
    configure: @Sendable @escaping (inout ClientConfiguration) -> Void = { _ in },
    server: @Sendable @escaping (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Stage, LongLinkServer, LongLinkClient) async throws -> Void
  ) async throws {
    try await Stage.simulate { stage, _ in
      let made = try await stage.serve(setUp: routes, configure: server)
      _ = try await stage.gateway(for: made)
      let client = try stage.client(of: made) {
        $0.ways = [.longLink, .simulatedShort(to: ShortLinkTests.gatewayAddress)]
        $0.connectTimeout = connectTimeout
        configure(&$0)
      }
      try await body(stage, made, client)
    }
  }

  /// 20 sends each item back.
  private static func routes(_ server: LongLinkServer) {
    ShortLinkTests.routes(server)
    server.routeStream(20, [.requestItems, .responseItems]) { _, items, writer in
      for try await item in items { try await writer.write(item) }
      return []
    }
  }

  static func shortRequests(_ client: LongLinkClient) async -> UInt64 {
    await client.counters().shortLinkRequests.values.reduce(0, +)
  }

  /// Has the network cut the long link at a request, when it takes some.
  static func cut(
    _ stage: Stage, _ server: LongLinkServer, _ client: LongLinkClient
  ) async throws {
    try await client.connect()
    try await stage.until { client.state.isConnected }
    let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(1_000)))
    try await stage.until { await server.counters().requestsRunning == 1 }
    stage.simulation?.network.loseAllLinks()
    let error = try await failure { try await hanging.value }
    #expect(error.delivery == .sent)
    try await stage.until { await server.peers().isEmpty }
  }

  /// Waits until a long link stands a trial.
  static func held(_ stage: Stage, _ server: LongLinkServer) async throws {
    try await stage.until { await server.peers().count == 1 }
  }

  /// Waits for the next link, whose trial has to last for so many seconds.
  static func expectTrial(
    of seconds: Double, _ stage: Stage, _ server: LongLinkServer, _ client: LongLinkClient,
    _ location: SourceLocation = #_sourceLocation
  ) async throws {
    try await held(stage, server)
    #expect(!client.state.isConnected, sourceLocation: location)
    let start = stage.clientLoop.clock.now
    try await stage.until { client.state.isConnected }
    let time = start.duration(to: stage.clientLoop.clock.now) / .seconds(1)
    // The conditions are looked at every 0.2 s at least.
    #expect(abs(time - seconds) < 0.3, "\(time) s", sourceLocation: location)
  }
  /// What a network does to long links that it lets be made.
  enum Cut: CaseIterable {
    case afterTheHandshake
    case atTheFirstRequest
  }

  @Test(arguments: Cut.allCases)
  func `where the network cuts long links, few requests are lost, and others take short ones`(
    _ cut: Cut
  ) async throws {
    try await Self.both { stage, server, client in
      let network = try #require(stage.simulation?.network)
      let address = server.addresses[0]
      network.setConditions(
        LinkConditions(latency: .milliseconds(20) ... .milliseconds(20)), to: address)
      var lost = 0
      for _ in 0..<600 {
        let body = [UInt8](repeating: 1, count: 2_000)
        let task = client.submit(.echo, body, options: RequestOptions())
        let next = stage.clientLoop.clock.now.advanced(by: .seconds(1))
        while stage.clientLoop.clock.now < next {
          for link in network.links(to: address)
          where link.bytesWritten(.toServer) > 1_000
            || cut == .afterTheHandshake && client.state.isConnected
          {
            link.lose()
          }
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
        do { _ = try await task.value } catch { lost += 1 }
      }
      // Without trials, more than a hundred.
      #expect(lost < 10, "\(lost) were lost")
      #expect(await Self.shortRequests(client) > 580)
    }
  }

  @Test func `a long link that was cut takes the requests again after its trial`() async throws {
    try await Self.both { stage, server, client in
      let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(100)))
      try await stage.until { await server.counters().requestsRunning == 1 }
      stage.simulation?.network.loseAllLinks()
      let error = try await failure { try await hanging.value }
      #expect(error.delivery == .sent)
      let start = stage.clientLoop.clock.now
      try await client.expectEcho([1])
      #expect(start.duration(to: stage.clientLoop.clock.now) < .milliseconds(100))
      #expect(await Self.shortRequests(client) == 1)
      try await client.connect()
      #expect(client.state == .short(Self.way))
      try await stage.until { client.state.isConnected }
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time > .seconds(3) && time < .seconds(6))
      try await client.expectEcho([2])
      #expect(await Self.shortRequests(client) == 1)
      let counters = await client.counters()
      #expect(counters.connects == 2 && counters.trialsPassed == 1 && counters.trialsFailed == 0)
    }
  }

  @Test func `a network that swallows what comes after a while loses few rare requests`()
    async throws
  {
    try await Self.both(connectTimeout: .seconds(10)) { stage, server, client in
      let network = try #require(stage.simulation?.network)
      let address = server.addresses[0]
      network.setConditions(
        LinkConditions(latency: .milliseconds(20) ... .milliseconds(20)), to: address)
      var lost = 0
      for _ in 0..<120 {
        let body = [UInt8](repeating: 1, count: 2_000)
        let task = client.submit(.echo, body, options: RequestOptions())
        for _ in 0..<100 {
          for link in network.links(to: address) where link.bytesWritten(.toServer) > 1_000 {
            link.silence()
          }
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
        do { _ = try await task.value } catch { lost += 1 }
        try await stage.clientLoop.sleep(for: .seconds(59))
      }
      #expect(lost < 20, "\(lost) were lost")
    }
  }

  // MARK: What ends the suspicion

  @Test(arguments: [false, true])
  func `a link that has answered ends the suspicion, however it is left`(
    _ isLost: Bool
  ) async throws {
    try await Self.both { stage, server, client in
      try await Self.cut(stage, server, client)
      try await Self.expectTrial(of: 3, stage, server, client)
      try await client.expectEcho([1])
      if isLost {
        stage.simulation?.network.loseAllLinks()
        try await stage.until { !client.state.isConnected }
      } else {
        await client.suspend()
        client.resume()
      }
      try await Self.cut(stage, server, client)
      try await Self.expectTrial(of: 3, stage, server, client)
      try await Self.cut(stage, server, client)
      try await Self.expectTrial(of: 6, stage, server, client)
    }
  }

  @Test func `a link whose items arrive has answered`() async throws {
    try await Self.both { stage, server, client in
      let loses = Latch()
      let first = stage.spawn {
        try await client.exchange(20, []) { items, writer in
          var iterator = items.makeAsyncIterator()
          try await writer.write([1])
          #expect(try await iterator.next() == [1])
          loses.open()
          _ = try await iterator.next()
        }
      }
      await loses.wait()
      stage.simulation?.network.loseAllLinks()
      _ = try await failure { try await first.value }
      let second = try await client.exchange(20, []) { items, writer in
        var iterator = items.makeAsyncIterator()
        try await writer.write([2])
        #expect(try await iterator.next() == [2])
      }
      #expect(second == [])
      #expect(await Self.shortRequests(client) == 0)
    }
  }

  @Test func `a link over which the server took many items has answered`() async throws {
    try await Self.both { stage, server, client in
      let loses = Latch()
      let first = stage.spawn {
        try await client.sendItems(11, []) { writer in
          for _ in 0..<40 { try await writer.write([UInt8](repeating: 1, count: 100_000)) }
          loses.open()
          while true {
            try await writer.write([1])
            try await stage.clientLoop.sleep(for: .milliseconds(10))
          }
        }
      }
      await loses.wait()
      stage.simulation?.network.loseAllLinks()
      _ = try await failure { try await first.value }
      try await client.expectEcho([2])
      #expect(await Self.shortRequests(client) == 0)
    }
  }

  @Test func `the cuts of other servers' links say nothing about new ones`() async throws {
    try await Self.both { stage, server, client in
      try await Self.cut(stage, server, client)
      stage.simulation?.network.setConnects(.refused, to: server.addresses[0])
      let other = try await stage.serve(setUp: Self.routes)
      try client.switchServers(to: other.endpoints.map { ServerEntry($0) })
      try await stage.until { client.state.isConnected }
      #expect(await client.counters().trialsPassed == 0)
    }
  }

  @Test func `each server's links have a trial of their own length`() async throws {
    try await Stage.simulate { stage, simulation in
      let servers = [
        try await stage.serve(setUp: Self.routes), try await stage.serve(setUp: Self.routes),
      ]
      _ = try await stage.gateway(for: servers[0])
      let client = try stage.client(of: servers[0], servers[1]) {
        $0.ways = [.longLink, .simulatedShort(to: ShortLinkTests.gatewayAddress)]
        $0.connectTimeout = .seconds(3)
      }
      for (server, seconds) in [(0, 0.0), (1, 3), (0, 3), (0, 6), (1, 3)] {
        let addresses = servers.map { $0.addresses[0] }
        simulation.network.setConnects(nil, to: addresses[server])
        simulation.network.setConnects(.refused, to: addresses[1 - server])
        if seconds > 0 {
          try await Self.expectTrial(of: seconds, stage, servers[server], client)
        }
        try await Self.cut(stage, servers[server], client)
      }
    }
  }

  // MARK: During a trial

  @Test func `a link that does not answer when its time is over takes no requests`() async throws {
    let lines = LogLines()
    try await Self.both(configure: { $0.logger = lines.logger }) { stage, server, client in
      try await Self.cut(stage, server, client)
      try await Self.held(stage, server)
      for link in stage.simulation!.network.links(to: server.addresses[0]) { link.silence() }
      for _ in 0..<10 {
        try await client.expectEcho([1])
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      #expect(await client.counters().connects == 1)
      try await stage.until { await client.counters().trialsFailed == 1 }
      #expect(lines.all("The link ended in its trial").count == 1)
      #expect(await client.counters().failedAttempts == 0)
      try await client.expectEcho([1])
    }
  }

  @Test func `an exchange ends the trial, because no short link can carry it`() async throws {
    try await Self.both(connectTimeout: .seconds(30)) { stage, server, client in
      try await Self.cut(stage, server, client)
      try await Self.held(stage, server)
      try await client.expectEcho([1])
      #expect(!client.state.isConnected)
      let response = try await client.exchange(20, []) { items, writer in
        var iterator = items.makeAsyncIterator()
        try await writer.write([2])
        #expect(try await iterator.next() == [2])
      }
      #expect(response == [] && client.state.isConnected)
      #expect(await Self.shortRequests(client) == 1)
    }
  }

  @Test func `requests that get no answer over short links end the trial`() async throws {
    try await Self.both(connectTimeout: .seconds(30)) { stage, server, client in
      let network = try #require(stage.simulation?.network)
      let gateway = ShortLinkTests.gatewayAddress
      network.setConditions(
        LinkConditions(latency: .milliseconds(20) ... .milliseconds(20)), to: gateway)
      try await Self.cut(stage, server, client)
      try await Self.held(stage, server)
      for _ in 0..<3 {
        #expect(!client.state.isConnected)
        let body = [UInt8](repeating: 1, count: 2_000)
        let task = client.submit(.echo, body, options: RequestOptions())
        for _ in 0..<20 {
          for link in network.links(to: gateway) where link.bytesWritten(.toServer) > 1_000 {
            link.lose()
          }
          try await stage.clientLoop.sleep(for: .milliseconds(10))
        }
        let error = try await failure { try await task.value }
        #expect(error.delivery == .sent)
      }
      #expect(client.state.isConnected)
      try await client.expectEcho([1])
    }
  }
}
