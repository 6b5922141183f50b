// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// Which way requests take: the long link, or short ones where it cannot be made.
@Suite struct WayTests {
  private static let secondAddress = SocketAddress.ipv4(10, 0, 0, 2, port: 8_080)

  private func block(_ server: LongLinkServer, _ stage: Stage, _ behavior: ConnectBehavior?) {
    stage.simulation?.network.setConnects(behavior, to: server.addresses[0])
  }

  @Test func `where the long link can be made, no short one is`() async throws {
    try await Stage.pair(in: .bothWays) { _, _, client in
      try await client.expectEcho([1])
      #expect(await client.counters().shortLinksBegun[Way.gatewayName] == 0)
      #expect(client.state.isConnected)
    }
  }

  @Test(arguments: [ConnectBehavior.ignored, .refused, .unreachable])
  func `a blocked long port costs the first request the connect bound and a round trip`(
    _ behavior: ConnectBehavior
  ) async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, behavior)
      let start = stage.clientLoop.clock.now
      try await client.expectEcho([1])
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time <= .seconds(3) + .milliseconds(10))
      let next = stage.clientLoop.clock.now
      try await client.expectEcho([2])
      #expect(next.duration(to: stage.clientLoop.clock.now) < .milliseconds(10))
      #expect(client.state == .short(Way.gatewayName) && !client.state.isConnected)
    }
  }

  @Test func `connect returns once requests take short links`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .refused)
      try await client.connect()
      try await client.expectEcho([1])
    }
    try await Stage.pair { stage, server, client in
      block(server, stage, .refused)
      let error = try await failure { try await client.connect() }
      #expect(error.code == .connectFailed)
    }
  }

  @Test func `a request that waited too long says for what`() async throws {
    try await Stage.pair { stage, server, client in
      block(server, stage, .refused)
      let options = RequestOptions(timeout: .seconds(2))
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(error.code == .deadlineExceeded && error.delivery == .notSent)
      #expect(error.detail.contains("ECONNREFUSED") && error.systemError != nil, "\(error)")
    }
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .refused)
      let long = (0..<8).map { _ in client.submit(.hang, [], options: RequestOptions()) }
      try await stage.until { await server.counters().requestsRunning == 8 }
      let options = RequestOptions(timeout: .seconds(2))
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(error.detail.contains("one of the 8 short links"), "\(error)")
      for task in long { task.cancel() }
    }
  }

  @Test func `requests that do not wait take the short way too`() async throws {
    try await Stage.pair(in: .bothWays, client: { $0.waitsForConnection = false }) {
      stage, server, client in
      block(server, stage, .refused)
      try await client.expectEcho([1])
      try await client.expectEcho([2])
    }
  }

  @Test func `the long link is tried meanwhile, and then takes the requests`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .ignored)
      _ = try await client.request(.echo, [1])
      let attempts = await client.counters().failedAttempts
      try await stage.clientLoop.sleep(for: .seconds(100))
      #expect(await client.counters().failedAttempts > attempts)
      block(server, stage, nil)
      let start = stage.clientLoop.clock.now
      try await stage.until { client.state.isConnected }
      #expect(start.duration(to: stage.clientLoop.clock.now) < .seconds(60))
      let short = await client.shortRequests()
      try await client.expectEcho([2])
      #expect(await client.shortRequests() == short)
    }
  }

  @Test func `an exchange under way ends where it is when the long link comes`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .refused)
      let slow = client.submit(10, [], options: RequestOptions())
      _ = try? await slow.value
      let goOn = try await stage.hang(client, on: server)
      block(server, stage, nil)
      try await stage.until { client.state.isConnected }
      #expect(await server.counters().requestsRunning == 1)
      goOn.cancel()
      _ = try? await goOn.value
      try await stage.until { await server.counters().requestsRunning == 0 }
    }
  }

  @Test func `after a lost link short ones are taken once connecting has failed`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      _ = try await client.request(.echo, [1])
      block(server, stage, .ignored)
      stage.simulation?.network.loseAllLinks()
      try await stage.until { !client.state.isConnected }
      let start = stage.clientLoop.clock.now
      try await client.expectEcho([2])
      #expect(start.duration(to: stage.clientLoop.clock.now) <= .seconds(3) + .milliseconds(10))
      #expect(await client.shortRequests() == 1)
    }
  }

  @Test func `a change of the network forgets the choice`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .ignored)
      _ = try await client.request(.echo, [1])
      #expect(client.state == .short(Way.gatewayName))
      block(server, stage, nil)
      client.pathChanged(network: "other")
      #expect(client.state != .short(Way.gatewayName))
      try await client.expectEcho([2])
      #expect(client.state.isConnected)
      #expect(await client.shortRequests() == 1)
    }
  }

  @Test func `on another network that blocks the long port, the bound counts again`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .ignored)
      _ = try await client.request(.echo, [1])
      client.pathChanged(network: "other")
      let start = stage.clientLoop.clock.now
      try await client.expectEcho([2])
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time > .seconds(2) && time <= .seconds(3) + .milliseconds(10))
    }
  }

  // MARK: Failures

  @Test func `the next short way is taken where the first fails before anything is sent`()
    async throws
  {
    try await Stage.pair(in: .short, client: { $0.ways = Self.twoWays }) { _, server, client in
      try await client.expectEcho([1])
      try await client.expectEcho([2])
      let counters = await client.counters()
      #expect(counters.shortLinksFailed["short://10.0.0.2:8080"] == 1)
      #expect(counters.shortLinkRequests[Way.gatewayName] == 2)
      #expect(await server.counters().connections.requestsReceived == 2)
    }
  }

  private static let twoWays: [Way] = [
    .simulatedShort(to: secondAddress), .short,
  ]

  @Test func `a way that lets only the greeting through is left after three requests`()
    async throws
  {
    try await Stage.pair(in: .short, client: { $0.ways = Self.twoWays }) { stage, server, client in
      let network = try #require(stage.simulation?.network)
      _ = try await stage.gateway(for: server, at: Self.secondAddress)
      for count in 1...3 as ClosedRange<UInt64> {
        let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(100)))
        try await stage.until { await client.counters().connections.framesReceived == count }
        for link in network.links(to: Self.secondAddress) { link.reset(.toClient) }
        let error = try await failure { try await hanging.value }
        #expect(error.code == .connectionLost && error.delivery == .sent)
      }
      try await client.expectEcho([1])
      let counters = await client.counters()
      #expect(counters.shortLinkRequestsUnanswered["short://10.0.0.2:8080"] == 3)
      #expect(counters.shortLinkRequests[Way.gatewayName] == 1)
    }
  }

  @Test func `a slow handler does not count against its way`() async throws {
    try await Stage.pair(in: .short, client: { $0.ways = Self.twoWays }) { stage, server, client in
      _ = try await stage.gateway(for: server, at: Self.secondAddress)
      for _ in 0..<4 {
        let options = RequestOptions(timeout: .seconds(10))
        let error = try await failure { try await client.request(.hang, [], options: options) }
        #expect(error.code == .deadlineExceeded)
      }
      try await client.expectEcho([1])
      #expect(await client.counters().shortLinkRequests["short://10.0.0.2:8080"] == 5)
    }
  }

  @Test func `where no way can be opened, errors name the last one`() async throws {
    try await Stage.pair(in: .bothWays) { stage, server, client in
      block(server, stage, .refused)
      stage.simulation?.network.setConnects(.refused, to: Way.gatewayAddress)
      let options = RequestOptions(waitsForConnection: false)
      let error = try await failure { try await client.request(.echo, [1], options: options) }
      #expect(error.code == .connectFailed && error.delivery == .notSent)
      #expect(error.detail.contains(Way.gatewayName), "\(error)")
      // Others wait, and go when a way opens.
      let waiting = client.submit(.echo, [2], options: RequestOptions(timeout: .seconds(200)))
      try await stage.clientLoop.sleep(for: .seconds(30))
      #expect(await client.counters().requestsWaiting == 1)
      #expect(await client.counters().shortLinksBegun[Way.gatewayName] ?? 0 < 20)
      stage.simulation?.network.setConnects(nil, to: Way.gatewayAddress)
      #expect(try await waiting.value == [2])
    }
  }

  @Test func `a suspended client opens no short link`() async throws {
    try await Stage.pair(in: .short) { stage, server, client in
      let hanging = try await stage.hang(client, on: server)
      await client.suspend(within: .seconds(1))
      let lost = try await failure { try await hanging.value }
      #expect(lost.delivery == .sent)
      let waiting = client.submit(.echo, [1], options: RequestOptions(timeout: .seconds(100)))
      try await stage.clientLoop.sleep(for: .seconds(10))
      #expect(await client.counters().requestsWaiting == 1)
      client.resume()
      #expect(try await waiting.value == [1])
    }
  }

  @Test func `closing waits for short links, within its bound`() async throws {
    try await Stage.pair(in: .short) { stage, server, client in
      let hanging = client.submit(.hang, [], options: RequestOptions(timeout: .seconds(100)))
      let echo = client.submit(.echo, [UInt8](repeating: 1, count: 100_000), options: .init())
      try await stage.until { await server.counters().requestsRunning == 1 }
      await client.close(within: .seconds(2))
      #expect(try await echo.value.count == 100_000)
      let lost = try await failure { try await hanging.value }
      #expect(lost.delivery == .sent)
    }
  }

  @Test func `a configuration of ways is checked`() throws {
    var configuration = ClientConfiguration(servers: [.host("localhost", port: 1)])
    configuration.ways = []
    #expect(throws: LongLinkError.self) { try configuration.validate() }
    configuration.ways = [.short, .longLink]
    #expect(throws: LongLinkError.self) { try configuration.validate() }
    configuration.ways = [.longLink, .longLink]
    #expect(throws: LongLinkError.self) { try configuration.validate() }
    configuration = ClientConfiguration(ways: [.short])
    try configuration.validate()
    configuration.ways = [.longLink]
    #expect(throws: LongLinkError.self) { try configuration.validate() }
  }
}
