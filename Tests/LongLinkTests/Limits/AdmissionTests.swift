// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkCore
@testable import LongLinkServer

/// Which connections a server accepts, by their addresses.
@Suite struct AdmissionTests {
  // MARK: Connections per second

  @Test func `one address opens so many connections per second, after a burst`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.addresses.maxConnectionRate = 10
        $0.limits.maxHandshakes = 10_000
      })
      var clients: [SimulatedClient] = []
      func open(_ count: Int) async throws -> UInt64 {
        let before = await server.counters()
        for _ in 0..<count {
          clients.append(
            try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop))
        }
        func accepted(_ counters: ServerCounters) -> UInt64 {
          counters.connectionsAccepted - before.connectionsAccepted
        }
        try await stage.until {
          let counters = await server.counters()
          let rejected = counters.connectionsTurnedAway - before.connectionsTurnedAway
          return accepted(counters) + rejected == count
        }
        return accepted(await server.counters())
      }
      let began = stage.clientLoop.clock.now
      let first = try await open(100)
      let passed = began.duration(to: stage.clientLoop.clock.now)
      #expect((40...40 + UInt64(passed / .milliseconds(100))).contains(first))
      #expect(await server.counters().rejections == ["addresses.maxConnectionRate": 100 - first])
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect((10...13).contains(try await open(50)))
      // Another machine is not affected.
      let other = simulation.eventLoop(named: "other")
      let honest = try stage.client(of: server, on: other)
      #expect(try await honest.request(.echo, [1]) == [1])
      // And the limit passes.
      try await stage.clientLoop.sleep(for: .seconds(4))
      #expect(try await open(1) == 1)
    }
  }

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `connections of this machine may come as fast as they like`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await stage.serve(configure: {
        $0.addresses.maxConnectionRate = 1
        $0.addresses.denied = [AddressRange("198.18.0.0/15")!]
      })
      for _ in 0..<20 {
        let client = try await SimulatedClient.connect(
          to: server.addresses[0], on: stage.clientLoop)
        _ = try await client.sayHello()
        client.close()
      }
      #expect(await server.counters().connectionsTurnedAway == 0)
    }
  }

  @Test func `the rates of very many networks take bounded memory, and the stalest are forgotten`()
  {
    let most = AddressRates.mostOfGeneration
    var rates = AddressRates(TokenBucket.Rate(perSecond: 1, burst: 2))
    let now = LinkInstant(nanoseconds: 7)
    func take(_ network: UInt64) -> Bool { rates.take(.ipv6(network: network), at: now) }
    #expect([take(.max), take(.max), take(.max)] == [true, true, false])
    let last = UInt64(20 * most - 1)
    for network in 0...last {
      #expect(take(network))
      // One that is in use is remembered.
      if network.isMultiple(of: 5_000) { #expect(!take(.max)) }
    }
    #expect(rates.count <= 2 * most && rates.count >= most)
    // The first ones are forgotten, and the last ones are not.
    #expect([take(0), take(0), take(0)] == [true, true, false])
    #expect([take(last), take(last)] == [true, false])
  }

  // MARK: Lists

  @Test(arguments: [
    ([], ["198.18.0.0/15"], ConnectionRejection.denied),
    (["192.0.2.0/24", "::1"], [], .notAllowed),
    // Deny wins.
    (["0.0.0.0/0"], ["198.18.0.0/15"], .denied),
    (["198.18.0.0/15"], ["192.0.2.1"], nil),
    ([], ["192.0.2.0/24"], nil),
  ])
  func `addresses are allowed and denied before anything is read`(
    _ allowed: [String], _ denied: [String], _ rejection: ConnectionRejection?
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let asked = Tally<SocketAddress?>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onAccept { address in
          asked.add(address)
          return true
        }
      } configure: {
        $0.addresses.allowed = allowed.compactMap(AddressRange.init)
        $0.addresses.denied = denied.compactMap(AddressRange.init)
      }
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      client.send(.hello())
      if let rejection {
        _ = try await client.waitForEnd()
        #expect(await server.counters().rejections == [rejection.rawValue: 1])
        #expect(client.record.frames.isEmpty && asked.count == 0)
        #expect(await server.counters().connectionsAccepted == 0)
      } else {
        try await client.waitForFrame(.welcome)
        #expect(await server.counters().rejections.isEmpty && asked.count == 1)
      }
    }
  }

  @Test func `a peer of a Unix socket has no address, and passes every list`() async throws {
    try await Stage.pair(
      in: .unix,
      server: {
        $0.addresses.allowed = [AddressRange("192.0.2.1")!]
        $0.addresses.denied = [AddressRange("0.0.0.0/0")!, AddressRange("::/0")!]
        $0.addresses.proxies = [AddressRange("0.0.0.0/0")!, AddressRange("::/0")!]
      }
    ) { _, _, client in
      try await client.expectEcho([1])
    }
  }

  @Test func `short links are limited by their own rate, and by the lists`() async throws {
    try await Stage.pair(
      in: .short,
      server: {
        $0.addresses.maxConnectionRate = 1
        $0.addresses.maxShortLinkRate = 10
      }
    ) { stage, server, client in
      // More than connections may come, and fewer than short links.
      for _ in 0..<20 { try await client.expectEcho([1]) }
      #expect(await server.counters().connectionsTurnedAway == 0)
      let tasks = (0..<100).map { _ in client.submit(.echo, [1]) }
      for task in tasks { _ = try? await task.value }
      let rejections = await server.counters().rejections
      #expect(Array(rejections.keys) == ["addresses.maxShortLinkRate"])
      #expect(await server.counters().handshakes == 0)
    }
    let denied = [AddressRange("198.18.0.0/15")!]
    try await Stage.pair(in: .short, server: { $0.addresses.denied = denied }) {
      stage, server, client in
      _ = try await failure { try await client.request(.echo, [1]) }
      #expect(await server.counters().rejections["addresses.denied"] ?? 0 > 0)
      #expect(await server.counters().shortLinks == 0)
    }
  }

  // MARK: Configuration

  @Test(arguments: [
    ("addresses.maxConnectionRate", 0), ("addresses.maxConnectionRate", 1_000_001),
    ("addresses.maxShortLinkRate", 0), ("limits.maxHandshakes", 0),
    ("limits.maxCancelsPerSecond", 0),
    ("limits.maxBytesPerSecond", 16_383), ("limits.maxFramesPerSecond", 99),
  ])
  func `a limit out of range is refused by name`(_ field: String, _ value: Int) throws {
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    switch field {
    case "addresses.maxConnectionRate": configuration.addresses.maxConnectionRate = value
    case "addresses.maxShortLinkRate": configuration.addresses.maxShortLinkRate = value
    case "limits.maxHandshakes": configuration.limits.maxHandshakes = value
    case "limits.maxCancelsPerSecond": configuration.limits.maxCancelsPerSecond = value
    case "limits.maxBytesPerSecond": configuration.limits.maxBytesPerSecond = value
    default: configuration.limits.maxFramesPerSecond = value
    }
    do throws(LongLinkError) {
      try configuration.validate()
      Issue.record("\(field) was accepted")
    } catch {
      #expect(error.code == .invalidConfiguration)
      #expect("\(error)".contains(field))
    }
  }
}
