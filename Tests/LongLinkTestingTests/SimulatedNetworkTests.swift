// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Connecting, names, and what can be done to the network.
@Suite struct SimulatedNetworkTests {
  private let nobody = SocketAddress.ipv4(10, 0, 0, 1, port: 9)

  /// Connects and returns when and how that came to its end.
  private func connect(
    _ simulation: Simulation,
    to address: SocketAddress,
    for time: Duration = .seconds(200)
  ) async throws -> CInt? {
    let stream = try simulation.mainLoop.driver.connect(to: address, options: SocketOptions())
    let probe = TransportProbe(stream, interest: .write)
    #expect(try stream.finishConnecting() == false)
    try await simulation.sleep(for: time)
    guard !probe.readiness.isEmpty else { return nil }
    do throws(SocketError) {
      return try stream.finishConnecting() ? 0 : nil
    } catch {
      return error.errno
    }
  }

  @Test func `a connect without a listener is refused`() async throws {
    let simulation = Simulation()
    let errno = try await simulation.run { try await connect(simulation, to: nobody) }
    #expect(errno == ECONNREFUSED)
  }

  @Test(arguments: [
    (ConnectBehavior.normal, CInt(0)), (.refused, ECONNREFUSED), (.unreachable, EHOSTUNREACH),
    (.ignored, ETIMEDOUT),
  ])
  func `a connect fails as specified`(behavior: ConnectBehavior, errno: CInt) async throws {
    let simulation = Simulation()
    let result = try await simulation.run {
      let listener = try ListenerProbe(Simulation.freePort, on: simulation.mainLoop)
      simulation.network.setConnects(behavior, to: listener.address)
      return try await connect(simulation, to: listener.address)
    }
    #expect(result == errno)
  }

  @Test func `a connect into a black hole has no result for two minutes`() async throws {
    let simulation = Simulation()
    simulation.network.connects = .ignored
    let errno = try await simulation.run {
      try await connect(simulation, to: nobody, for: .seconds(120))
    }
    #expect(errno == nil)
  }

  @Test func `one address has one listener, and is free again when that closes`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let loop = simulation.mainLoop
      let first = try ListenerProbe(Simulation.freePort, on: loop)
      let error = #expect(throws: SocketError.self) { try ListenerProbe(first.address, on: loop) }
      #expect(error?.errno == EADDRINUSE)
      let port = try #require(first.address.port)
      let everywhere = SocketAddress.ipv4(0, 0, 0, 0, port: port)
      #expect(throws: SocketError.self) { try ListenerProbe(everywhere, on: loop) }
      first.listener.close()
      #expect(try ListenerProbe(everywhere, on: loop).address == everywhere)
    }
  }

  @Test func `connections are accepted in their order, and wait when there is no room`()
    async throws
  {
    let simulation = Simulation()
    try await simulation.run {
      let loop = simulation.mainLoop
      let listener = try ListenerProbe(Simulation.freePort, on: loop, backlog: 1)
      listener.listener.setInterest([])
      var streams: [TransportProbe] = []
      for _ in 0..<3 {
        let stream = try loop.driver.connect(to: listener.address, options: SocketOptions())
        streams.append(TransportProbe(stream, interest: .write))
        try await simulation.sleep(for: .milliseconds(10))
      }
      #expect(streams.map(\.readiness.count) == [1, 0, 0])
      listener.listener.setInterest(.read)
      try await simulation.sleep(for: .seconds(5))
      #expect(streams.map(\.readiness.count) == [1, 1, 1])
      #expect(listener.accepted.map(\.stream.peerAddress) == streams.map(\.stream.localAddress))
    }
  }

  @Test func `connections that wait when a listener closes are reset`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let listener = try ListenerProbe(Simulation.freePort, on: simulation.mainLoop)
      listener.listener.setInterest([])
      let stream = try simulation.mainLoop.driver.connect(
        to: listener.address,
        options: SocketOptions()
      )
      let probe = TransportProbe(stream)
      try await simulation.sleep(for: .seconds(1))
      #expect(try stream.finishConnecting())
      listener.listener.close()
      try await simulation.sleep(for: .seconds(1))
      probe.read()
      #expect(probe.failure == ECONNRESET)
    }
  }

  @Test func `a Unix-domain path without a listener is not found`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let path = SocketAddress.unix(path: "/simulated/socket")
      let error = #expect(throws: SocketError.self) {
        try simulation.mainLoop.driver.connect(to: path, options: SocketOptions())
      }
      #expect(error?.errno == ENOENT)
      let listener = try ListenerProbe(path, on: simulation.mainLoop)
      let errno = try await connect(simulation, to: listener.address)
      #expect(errno == 0)
    }
  }

  @Test func `a lost link resets both ends`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      simulation.network.links[0].lose()
      pair.client.read()
      pair.server.read()
      #expect(pair.client.failure == ECONNRESET)
      #expect(pair.server.failure == ECONNRESET)
    }
  }

  @Test func `a silent direction delivers nothing until it is restored`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      let link = simulation.network.links[0]
      try pair.client.write([1])
      link.silence(.toServer)
      try pair.client.write([2])
      pair.client.stream.shutDownWriting()
      try pair.server.write([7])
      try await simulation.sleep(for: .seconds(3_600))
      #expect(pair.server.read() == .bytes(1))
      #expect(pair.server.read() == .wouldBlock)
      #expect(pair.client.read() == .bytes(1))
      link.restore()
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1))
      #expect(pair.server.read() == .end)
      #expect(pair.server.bytes == [1, 2])
    }
  }

  @Test func `a writer gives up what stays unacknowledged for its own bound`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair(
        options: SocketOptions(userTimeout: 20_000_000_000)
      )
      simulation.network.links[0].silence()
      pair.client.stream.setInterest(.read)
      try pair.client.write([1])
      try await simulation.sleep(for: .seconds(19))
      #expect(pair.client.readiness.isEmpty)
      try await simulation.sleep(for: .seconds(2))
      pair.client.read()
      #expect(pair.client.failure == ETIMEDOUT)
    }
  }

  @Test func `a writer's patience begins anew once it was acknowledged`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair(
        options: SocketOptions(userTimeout: 20_000_000_000)
      )
      let link = simulation.network.links[0]
      pair.client.stream.setInterest(.read)
      for _ in 0..<3 {
        link.silence(for: .seconds(15))
        try pair.client.write([1])
        try await simulation.sleep(for: .seconds(16))
      }
      #expect(pair.client.readiness.isEmpty)
      #expect(pair.server.read() == .bytes(3))
    }
  }

  @Test func `one bit of a chosen byte is flipped`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      simulation.network.links[0].flipBit(7, ofByte: 3, .toServer)
      try pair.client.write([0, 0])
      try pair.client.write([0, 0, 0])
      try await simulation.sleep(for: .seconds(1))
      pair.server.read()
      #expect(pair.server.bytes == [0, 0, 0, 0x80, 0])
    }
  }

  @Test func `names resolve, slowly or not at all`() async throws {
    let simulation = Simulation()
    simulation.network.host(
      "server",
      addresses: [.ipv4(10, 0, 0, 1, port: 0), .ipv4(10, 0, 0, 2, port: 0)],
      delay: .seconds(3)
    )
    simulation.network.failLookUps(of: "broken", with: "no answer", code: EAI_AGAIN)
    typealias Answer = (at: LinkInstant, result: Result<[SocketAddress], ResolveError>)
    let answers = Mutex<[String: Answer]>([:])
    try await simulation.run {
      for host in ["server", "broken", "nowhere", "10.9.8.7", "localhost"] {
        simulation.mainLoop.driver.resolve(host: host, port: 80, for: LookUpOwner()) { result in
          answers.withLock { $0[host] = (simulation.now, result) }
        }
      }
      try await simulation.sleep(for: .seconds(10))
    }
    let found = answers.withLock { $0 }
    #expect(
      try found["server"]?.result.get()
        == [.ipv4(10, 0, 0, 1, port: 80), .ipv4(10, 0, 0, 2, port: 80)]
    )
    #expect(found["server"]?.at.nanoseconds == 3_000_000_000)
    #expect(try found["10.9.8.7"]?.result.get() == [.ipv4(10, 9, 8, 7, port: 80)])
    #expect(found["10.9.8.7"]?.at.nanoseconds == 0)
    #expect(try found["localhost"]?.result.get() == [.ipv4(127, 0, 0, 1, port: 80)])
    let broken = #expect(throws: ResolveError.self) { try found["broken"]?.result.get() }
    #expect(broken?.code == EAI_AGAIN)
    let nowhere = #expect(throws: ResolveError.self) { try found["nowhere"]?.result.get() }
    #expect(nowhere?.code == EAI_NONAME)
  }
}
