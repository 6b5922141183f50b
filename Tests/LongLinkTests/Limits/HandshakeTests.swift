// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkServer

/// Connections that never open, beside those that do.
@Suite struct HandshakeTests {
  private static func connect(_ stage: Stage, _ server: LongLinkServer) async throws
    -> SimulatedClient
  {
    try await SimulatedClient.connect(to: server.addresses[0], on: stage.clientLoop)
  }

  private static func loose(_ configuration: inout ServerConfiguration) {
    configuration.addresses.maxConnectionRate = 1_000_000
    configuration.addresses.maxConnections = 1_000_000
  }

  @Test func `5000 connections that do not open keep no client away`() async throws {
    try await Stage.simulate { stage, simulation in
      let loops = (0..<2).map { simulation.eventLoop(named: "lane \($0)") }
      let server = try await stage.serve(on: loops, configure: Self.loose)
      let honestLoop = simulation.eventLoop(named: "honest")
      var half: [SimulatedClient] = []
      for index in 0..<5_000 {
        half.append(try await Self.connect(stage, server))
        // Some send a part of a frame.
        if index.isMultiple(of: 3) { half[index].send(bytes: [0x0A, 0, 0]) }
        guard index.isMultiple(of: 1_000) else { continue }
        let client = try stage.client(of: server, on: honestLoop)
        #expect(try await client.request(.echo, [1]) == [1])
      }
      let client = try stage.client(of: server, on: honestLoop)
      #expect(try await client.request(.echo, [2]) == [2])
      let counters = await server.counters()
      #expect(counters.handshakes <= 1_000)
      #expect(counters.rejections.isEmpty)
      // Those that were not evicted have run out of time.
      let late = counters.violations["firstFrameTimeout"] ?? 0
      #expect(counters.handshakesEvicted + late + UInt64(counters.handshakes) >= 5_000)
      #expect(counters.endings["handshakeEvicted"] ?? 0 == counters.handshakesEvicted)
      for client in half { client.close() }
    }
  }

  @Test func `the oldest connection that is not open makes room, and no open one does`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxHandshakes = 3 })
      let open = try await Self.connect(stage, server)
      _ = try await open.sayHello()
      var half: [SimulatedClient] = []
      for _ in 0..<5 { half.append(try await Self.connect(stage, server)) }
      _ = try await half[0].waitForEnd()
      _ = try await half[1].waitForEnd()
      try await stage.until { await server.counters().openConnections == 4 }
      let counters = await server.counters()
      #expect(counters.handshakes == 3 && counters.handshakesEvicted == 2)
      #expect(counters.endings == ["handshakeEvicted": 2])
      // The younger ones open as if nothing had happened, which frees their places.
      for client in half[2...] { _ = try await client.sayHello() }
      #expect(await server.counters().handshakes == 0)
      #expect(try await open.request(.echo, [3]).body == [3])
      #expect(await server.counters().handshakesEvicted == 2)
    }
  }

  @Test func `if all places are taken, a connection that is not open makes room`() async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: { $0.limits.maxConnections = 2 })
      let (first, second) = (
        try await Self.connect(stage, server), try await Self.connect(stage, server)
      )
      _ = try await first.sayHello()
      let third = try await Self.connect(stage, server)
      _ = try await second.waitForEnd()
      _ = try await third.sayHello()
      // Now both are open, and nobody makes room.
      let fourth = try await Self.connect(stage, server)
      _ = try await fourth.waitForEnd()
      let counters = await server.counters()
      #expect(counters.rejections == ["limits.maxConnections": 1])
      #expect(counters.handshakesEvicted == 1 && counters.openConnections == 2)
    }
  }

  @Test func `a place is free again once its connection has ended or its time has passed`()
    async throws
  {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: {
        $0.limits.maxHandshakes = 2
        $0.timeouts.firstFrame = .seconds(3)
      })
      for round in 0..<20 {
        let client = try await Self.connect(stage, server)
        if round.isMultiple(of: 2) {
          client.close()
          _ = try await client.waitForEnd()
        } else {
          _ = try await client.waitForEnd()
        }
        try await stage.until { await server.counters().openConnections == 0 }
        #expect(await server.counters().handshakes == 0)
      }
      #expect(await server.counters().handshakesEvicted == 0)
      #expect(await server.counters().violations == ["firstFrameTimeout": 10])
    }
  }

  @Test func `half-open connections over real sockets keep no client away`() async throws {
    try await Stage.run(.loopback) { stage in
      let server = try await stage.serve(configure: {
        $0.limits.maxHandshakes = 16
        $0.timeouts.firstFrame = .seconds(3_600)
      })
      var half: [SimulatedClient] = []
      for _ in 0..<200 { half.append(try await Self.connect(stage, server)) }
      let client = try stage.client(of: server)
      #expect(try await client.request(.echo, [1]) == [1])
      try await stage.until { await server.counters().openConnections <= 17 }
      let counters = await server.counters()
      #expect(counters.handshakesEvicted >= 184 && counters.handshakes <= 16)
      #expect(counters.connectionsTurnedAway == 0)
      for client in half { client.close() }
    }
  }

  // MARK: What they hold

  /// All but the last byte of the largest hello.
  private static var unfinishedHello: [UInt8] {
    Array(WireFrame.hello(credential: [UInt8](repeating: 7, count: 65_500)).bytes.dropLast())
  }

  @Test func `what connections hold before they open is the documented number at most`()
    async throws
  {
    let plain = UnopenedConnection.input + UnopenedConnection.state
    #expect(plain <= UnopenedConnection.most)
    #expect(plain + UnopenedConnection.openSecurity <= UnopenedConnection.mostSecured)
    #expect(
      UnopenedConnection.state + UnopenedConnection.security <= UnopenedConnection.mostSecured)
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve(configure: Self.loose)
      // Large frames of an honest client leave a large buffer behind, which nobody may keep.
      let honest = try stage.client(of: server, on: simulation.eventLoop(named: "honest"))
      let body = [UInt8](repeating: 1, count: 1_000_000)
      _ = try await honest.request(.echo, body)
      let before = await server.counters().bytesHeld
      var half: [SimulatedClient] = []
      let hello = Self.unfinishedHello
      for count in 1...200 {
        let client = try await Self.connect(stage, server)
        half.append(client)
        // In pieces, so that buffers grow.
        for start in stride(from: 0, to: hello.count, by: 9_000) {
          client.send(bytes: Array(hello[start..<min(start + 9_000, hello.count)]))
        }
        try await stage.until {
          await server.counters().connections.bytesReceived >= UInt64(count * hello.count)
        }
        _ = try await honest.request(.echo, [UInt8](repeating: 1, count: 100_000))
        let held = await server.counters().bytesHeld - before
        #expect(held <= count * UnopenedConnection.input, "\(count) connections")
      }
      #expect(await server.counters().handshakes == 200)
      for client in half { client.close() }
    }
  }

  @Test(arguments: [WireFrame.Kind.request, .push, WireFrame.Kind(rawValue: 0x30)])
  func `a large first frame that is no hello is refused by its header`(
    _ kind: WireFrame.Kind
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve()
      let client = try await Self.connect(stage, server)
      var frame = WireFrame.request(.echo, serial: 50, [UInt8](repeating: 1, count: 65_537))
      frame.kind = kind
      client.send(bytes: Array(frame.bytes.prefix(16)))
      _ = try await client.waitForEnd()
      #expect(await server.counters().violations == ["lengthOverLimit": 1])
      let other = try await Self.connect(stage, server)
      other.send(.request(.echo, serial: 50, [UInt8](repeating: 1, count: 65_536)))
      #expect(try await other.waitForResponse(to: 50).body.count == 65_536)
    }
  }
}
