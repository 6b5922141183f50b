// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Logging
import Testing

/// Connections behind a proxy that says whose they are.
@Suite struct ProxyTests {
  private static let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

  /// The header for a client with an IPv4 address.
  private static func header(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> [UInt8] {
    signature + [0x21, 0x11, 0, 15, a, b, c, d, 10, 0, 0, 1, 0x1F, 0x90, 0x23, 0x28, 4, 0, 0]
  }

  private static let check = signature + [0x20, 0, 0, 0]

  private static func all(_ configuration: inout ServerConfiguration) {
    configuration.addresses.proxies = [
      AddressRange("198.18.0.0/15")!, AddressRange("127.0.0.0/8")!,
    ]
  }

  private static func connect(
    _ stage: Stage, _ server: LongLinkServer, on loop: EventLoop? = nil
  ) async throws -> SimulatedClient {
    try await SimulatedClient.connect(
      to: server.addresses[0], on: loop ?? stage.clientLoop)
  }

  /// A server that tells each client its address.
  private static func serve(
    _ stage: Stage, on loops: [EventLoop]? = nil,
    configure: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LongLinkServer {
    try await stage.serve(on: loops) { server in
      server.route(7) { request in Array("\(request.peer.address!)".utf8) }
    } configure: {
      all(&$0)
      configure(&$0)
    }
  }

  @Test(arguments: TestEnvironment.withPorts)
  func `a client has the address that the proxy names, and its frames follow at once`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.run(environment) { stage in
      let server = try await Self.serve(stage)
      let client = try await Self.connect(stage, server)
      client.send(
        bytes: Self.header(203, 0, 113, 7) + WireFrame.hello().bytes
          + WireFrame.request(7, serial: 50).bytes)
      #expect(try await client.waitForResponse(to: 50).text == "203.0.113.7:8080")
      #expect(await server.peers().map(\.address?.host) == ["203.0.113.7"])
      // A check by the proxy itself is its own connection.
      let own = try await Self.connect(stage, server)
      own.send(bytes: Self.check)
      _ = try await own.sayHello()
      let text = try await own.request(7).text
      #expect(text.hasPrefix(environment == .loopback ? "127.0.0.1:" : "198.18."))
      let counters = await server.counters()
      #expect(counters.connectionsAccepted == 2 && counters.rejections.isEmpty)
    }
  }

  @Test(arguments: TestEnvironment.withPorts)
  func `a header may come byte by byte`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let server = try await Self.serve(stage)
      let client = try await Self.connect(stage, server)
      let bytes = Self.header(203, 0, 113, 7) + WireFrame.hello().bytes
      client.dribble(bytes, every: .milliseconds(environment == .simulated ? 20 : 1))
      try await client.waitForFrame(.welcome)
      #expect(try await client.request(7).text == "203.0.113.7:8080")
    }
  }

  @Test(arguments: [
    Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8), WireFrame.hello().bytes,
    [0x16, 3, 1, 0, 200, 1], signature + [0x21, 0x12, 0, 12], signature + [0x21, 0x11, 0xFF, 0xFF],
    [0],
  ])
  func `a proxy that sends no header, or a broken one, is turned away and counted`(
    _ bytes: [UInt8]
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let lines = LogLines()
      let server = try await Self.serve(stage) { $0.logger = lines.logger }
      for _ in 0..<20 {
        let client = try await Self.connect(stage, server)
        client.send(bytes: bytes)
        _ = try await client.waitForEnd()
        #expect(client.record.frames.isEmpty)
      }
      let counters = await server.counters()
      #expect(counters.rejections == ["addresses.proxies": 20])
      #expect(counters.openConnections == 0 && counters.handshakes == 0)
      let told = lines.all("Rejected a connection of a proxy")
      #expect((1...10).contains(told.count))
      #expect(told.first?.metadata["reason"] == "addresses.proxies")
    }
  }

  @Test func `a header has to come in time, together with the first frame`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await Self.serve(stage) { $0.timeouts.firstFrame = .seconds(4) }
      let began = stage.clientLoop.clock.now
      func passed() -> Duration { began.duration(to: stage.clientLoop.clock.now) }
      let silent = try await Self.connect(stage, server)
      let slow = try await Self.connect(stage, server)
      let bytes = Self.header(203, 0, 113, 7)
      slow.send(bytes: Array(bytes.dropLast()))
      let late = try await Self.connect(stage, server)
      late.dribble(bytes, every: .milliseconds(100))
      _ = try await silent.waitForEnd()
      _ = try await slow.waitForEnd()
      #expect(await server.counters().rejections == ["addresses.proxies": 2])
      #expect(passed() > .seconds(3.9) && passed() < .seconds(4.5))
      // Its header has come after 3.1 s, and the rest of the 4 s was for its first frame.
      _ = try await late.waitForEnd()
      #expect(passed() < .seconds(5.5))
      #expect(await server.counters().violations == ["firstFrameTimeout": 1])
    }
  }

  @Test func `a connection that ends without a byte is no rejection, and one within a header is`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await Self.serve(stage)
      for bytes in [[], [13]] as [[UInt8]] {
        let client = try await Self.connect(stage, server)
        client.send(bytes: bytes)
        client.close()
        _ = try await client.waitForEnd()
      }
      let reset = try await Self.connect(stage, server)
      reset.reset()
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().rejections == ["addresses.proxies": 1])
      #expect(await server.counters().handshakes == 0)
    }
  }

  @Test func `the limits of each address are those of the clients, and none is the proxy's`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let asked = Tally<String?>()
      let server = try await stage.serve { server in
        server.routeBasics()
        server.onAccept { address in
          asked.add(address?.host)
          return address?.host != "203.0.113.66"
        }
      } configure: {
        Self.all(&$0)
        $0.addresses.maxConnections = 2
        $0.addresses.maxConnectionRate = 1
        $0.addresses.allowed = [AddressRange("203.0.113.0/24")!]
        $0.addresses.denied = [AddressRange("203.0.113.13")!]
      }
      func open(_ last: UInt8, in network: UInt8 = 113) async throws -> SimulatedClient {
        let client = try await Self.connect(stage, server)
        client.send(bytes: Self.header(203, 0, network, last) + WireFrame.hello().bytes)
        return client
      }
      // The proxy itself opens far more than two, and faster than one per second.
      var clients: [SimulatedClient] = []
      for last: UInt8 in 1...12 {
        clients.append(try await open(last))
        try await clients.last!.waitForFrame(.welcome)
      }
      #expect(asked.count == 12)
      for (last, network, reason): (UInt8, UInt8, ConnectionRejection) in [
        (13, 113, .denied), (1, 114, .notAllowed), (66, 113, .notWanted),
      ] {
        _ = try await open(last, in: network).waitForEnd()
        #expect(await server.counters().rejections[reason.rawValue] == 1)
      }
      let second = try await open(1)
      try await second.waitForFrame(.welcome)
      _ = try await open(1).waitForEnd()
      #expect(await server.counters().rejections["addresses.maxConnections"] == 1)
      _ = try await open(1).waitForEnd()
      _ = try await open(1).waitForEnd()
      #expect(await server.counters().rejections["addresses.maxConnectionRate"] == 1)
      // A place that a client had is free again when its connection has ended.
      second.close()
      try await stage.until { await server.counters().openConnections == 12 }
      try await stage.clientLoop.sleep(for: .seconds(2))
      try await open(1).waitForFrame(.welcome)
      let counters = await server.counters()
      #expect(counters.connectionsAccepted == 14)
      #expect(counters.connectionsTurnedAway == 6)
    }
  }

  @Test func `a peer that is no proxy is served without a header, and cannot claim an address`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await Self.serve(stage) {
        $0.addresses.proxies = [AddressRange("192.0.2.1")!]
      }
      let client = try await Self.connect(stage, server)
      _ = try await client.sayHello()
      let liar = try await Self.connect(stage, server)
      liar.send(bytes: Self.header(203, 0, 113, 7) + WireFrame.hello().bytes)
      _ = try await liar.waitForEnd()
      #expect(await server.counters().violations.values.reduce(0, +) == 1)
    }
  }

  @Test func `a proxy that is denied cannot connect`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await Self.serve(stage) {
        $0.addresses.denied = [AddressRange("198.18.0.0/15")!]
      }
      _ = try await Self.connect(stage, server).waitForEnd()
      #expect(await server.counters().rejections == ["addresses.denied": 1])
    }
  }

  @Test func `a proxy that names no client is judged by its own address`() async throws {
    try await Stage.simulate { stage, simulation in
      let asked = Tally<Bool>()
      let server = try await stage.serve(
        setUp: { server in
          server.onAccept { address in
            asked.add(address?.host?.hasPrefix("198.18.") ?? false)
            return false
          }
        }, configure: Self.all)
      // LOCAL, and PROXY with an unspecified family.
      for header in [Self.check, Self.signature + [0x21, 0, 0, 0]] {
        let client = try await Self.connect(stage, server)
        client.send(bytes: header)
        _ = try await client.waitForEnd()
      }
      #expect(asked.elements == [true, true])
      #expect(await server.counters().rejections == ["onAccept": 2])
      #expect(await server.counters().openConnections == 0)
    }
  }

  @Test func `connections whose proxies say nothing make room, and end with a drain`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let loops = (0..<2).map { simulation.eventLoop(named: "lane \($0)") }
      let server = try await Self.serve(stage, on: loops) { $0.limits.maxHandshakes = 4 }
      var silent: [SimulatedClient] = []
      for _ in 0..<10 { silent.append(try await Self.connect(stage, server)) }
      for client in silent.prefix(6) { _ = try await client.waitForEnd() }
      try await stage.until { await server.counters().openConnections == 4 }
      #expect(await server.counters().handshakesEvicted == 6)
      await server.shutDown(within: .seconds(60))
      for client in silent { _ = try await client.waitForEnd() }
      #expect(await server.counters().openConnections == 0)
      #expect(await server.counters().rejections.isEmpty)
    }
  }
}
