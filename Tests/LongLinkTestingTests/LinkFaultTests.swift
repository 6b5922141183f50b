// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport
import Testing

@testable import LongLinkTesting

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What can be done to one link, and how its bytes travel.
@Suite struct LinkFaultTests {
  /// Writes single bytes into a link and returns how many milliseconds each was under way.
  private func latencies(_ conditions: LinkConditions, count: Int = 200) async throws -> [Double] {
    let simulation = Simulation(seed: 5)
    return try await simulation.run {
      let pair = try await simulation.connectedPair()
      let link = simulation.network.links[0]
      link.setConditions(conditions, .toServer)
      var times: [Double] = []
      for _ in 0..<count {
        let began = simulation.now
        try pair.client.write([1])
        // Longer than any latency, so that no byte waits for the one before it.
        pair.server.forgetReadiness()
        pair.server.stream.setInterest(.read)
        while pair.server.readiness.isEmpty { try await simulation.sleep(for: .milliseconds(5)) }
        pair.server.read()
        times.append(Double(simulation.now - began) / 1e6)
      }
      return times.sorted()
    }
  }

  @Test func `latencies spread over their range as asked`() async throws {
    let range = Duration.milliseconds(100) ... .milliseconds(1_100)
    let even = try await latencies(LinkConditions(latency: range))
    let bell = try await latencies(LinkConditions(latency: range, spread: .bell))
    let tail = try await latencies(LinkConditions(latency: range, spread: .longTail))
    for times in [even, bell, tail] {
      #expect(times.first! >= 100 && times.last! <= 1_107)
    }
    #expect(even[50] > 250 && even[50] < 450 && even[150] > 750 && even[150] < 950)
    #expect(bell[50] > 420 && bell[150] < 780)
    #expect(tail[100] < 106 && tail[140] < 115 && tail[199] > 700)
  }

  @Test func `a bandwidth makes bytes take time, and they come piece by piece`() async throws {
    let simulation = Simulation()
    simulation.network.conditions.bandwidth = 100_000
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.server.readsAlong = true
      pair.server.stream.setInterest(.read)
      try pair.client.write([UInt8](repeating: 7, count: 150_000))
      try await simulation.sleep(for: .milliseconds(500))
      #expect(pair.server.bytes.count > 45_000 && pair.server.bytes.count <= 50_000)
      // The other direction is free.
      try pair.server.write([1])
      try await simulation.sleep(for: .milliseconds(10))
      #expect(pair.client.read() == .bytes(1))
      // What is written later waits for what was written before.
      try pair.client.write([9])
      try await simulation.sleep(for: .milliseconds(980))
      #expect(pair.server.bytes.count < 150_000)
      try await simulation.sleep(for: .milliseconds(20))
      #expect(pair.server.bytes.count == 150_001)
      #expect(pair.server.bytes.last == 9)
    }
  }

  @Test func `a reset in the name of one side is seen only by the other`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.client.stream.setInterest(.read)
      simulation.network.links[0].reset(.toClient)
      try await simulation.sleep(for: .seconds(3_600))
      pair.client.read()
      #expect(pair.client.failure == ECONNRESET)
      #expect(pair.server.readiness.isEmpty)
      #expect(pair.server.read() == .wouldBlock)
      try pair.server.write([1])
      try await simulation.sleep(for: .seconds(1))
      pair.server.read()
      #expect(pair.server.failure == ECONNRESET)
    }
  }

  @Test func `only a link that its server has lost without a word is forgotten`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pairs = [
        try await simulation.connectedPair(), try await simulation.connectedPair(),
        try await simulation.connectedPair(),
      ]
      for pair in pairs { pair.client.stream.setInterest(.read) }
      let address = pairs[0].listener.address
      let loseForgotten = {
        simulation.networkState { $0.loseForgotten(to: pairs.map(\.listener.address)) }
      }
      // One whose client hears nothing, one that ends in good order, and one left alone.
      simulation.network.links[0].reset(.toServer)
      pairs[1].server.stream.close()
      loseForgotten()
      try await simulation.sleep(for: .seconds(1))
      #expect(pairs[1].client.read() == .end)
      #expect(pairs[2].client.read() == .wouldBlock)
      pairs[0].server.read()
      #expect(pairs[0].server.failure == ECONNRESET)
      #expect(pairs[0].client.read() == .wouldBlock)
      simulation.networkState { $0.loseForgotten(to: [address.withPort(1)]) }
      #expect(pairs[0].client.read() == .wouldBlock)
      loseForgotten()
      pairs[0].client.read()
      #expect(pairs[0].client.failure == ECONNRESET)
      #expect(pairs[2].client.read() == .wouldBlock)
    }
  }

  @Test func `a half-close ends one direction and leaves the other`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1])
      simulation.network.links[0].halfClose(.toServer)
      let error = #expect(throws: SocketError.self) { try pair.client.write([2]) }
      #expect(error?.errno == EPIPE)
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1))
      #expect(pair.server.read() == .end)
      try pair.server.write([3])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.client.read() == .bytes(1))
      #expect(pair.client.bytes == [3])
    }
  }

  @Test func `a clogged direction takes nothing until it is over`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1])
      simulation.network.links[0].clog(.toServer, for: .seconds(60))
      #expect(try pair.client.write([2]) == 0)
      #expect(try pair.server.write([3]) == 1)
      pair.client.stream.setInterest(.write)
      try await simulation.sleep(for: .seconds(59))
      #expect(pair.client.readiness.isEmpty)
      #expect(pair.server.read() == .bytes(1))
      try await simulation.sleep(for: .seconds(2))
      #expect(pair.client.readiness == [.write])
      #expect(try pair.client.write([2]) == 1)
    }
  }

  @Test func `a side that does not read fills the window, and catches up`() async throws {
    let simulation = Simulation()
    simulation.network.conditions.window = 4
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      let link = simulation.network.links[0]
      pair.server.readsAlong = true
      pair.server.stream.setInterest(.read)
      link.stopReading(.toServer)
      #expect(try pair.client.write([1, 2, 3, 4, 5]) == 4)
      pair.client.stream.shutDownWriting()
      try await simulation.sleep(for: .seconds(3_600))
      #expect(pair.server.readiness.isEmpty)
      #expect(pair.server.read() == .wouldBlock)
      link.resumeReading()
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.bytes == [1, 2, 3, 4])
      #expect(pair.server.hasEnded)
    }
  }

  @Test func `a side that does not read sees a reset`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      simulation.network.links[0].stopReading(.toServer)
      pair.client.stream.reset()
      try await simulation.sleep(for: .seconds(1))
      pair.server.read()
      #expect(pair.server.failure == ECONNRESET)
    }
  }

  @Test func `a silence of a given time is over after it`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      simulation.network.links[0].silence(.toServer, for: .seconds(10))
      try pair.client.write([1])
      try await simulation.sleep(for: .seconds(9))
      #expect(pair.server.read() == .wouldBlock)
      try await simulation.sleep(for: .seconds(2))
      #expect(pair.server.read() == .bytes(1))
    }
  }

  /// Connects to a new listener, and calls a body before the link has reached it.
  private func connectedPair(
    _ simulation: Simulation, within time: Duration = .milliseconds(50),
    _ body: (SimulatedLink) throws -> Void
  ) async throws -> ProbePair {
    let listener = try ListenerProbe(Simulation.freePort, on: simulation.mainLoop)
    let stream = try simulation.mainLoop.driver.connect(
      to: listener.address, options: SocketOptions())
    let client = TransportProbe(stream)
    let link = simulation.network.links[0]
    #expect(link.server == nil)
    try body(link)
    try await simulation.sleep(for: time)
    #expect(try stream.finishConnecting())
    return ProbePair(client: client, server: listener.accepted[0], listener: listener)
  }

  @Test func `a link that is still connecting can be silenced, both ways`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await connectedPair(simulation) { $0.silence(for: .seconds(10)) }
      try pair.client.write([1])
      try pair.server.write([2])
      try await simulation.sleep(for: .seconds(9))
      #expect(pair.server.read() == .wouldBlock && pair.client.read() == .wouldBlock)
      try await simulation.sleep(for: .seconds(2))
      #expect(pair.server.read() == .bytes(1) && pair.client.read() == .bytes(1))
    }
  }

  @Test func `what is done to a server's side before it exists is done to it later`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await connectedPair(simulation) { link in
        link.clog(.toClient)
        link.stopReading(.toServer)
        link.flipBit(0, ofByte: 0, .toClient)
        // These do nothing to a link that is connecting.
        link.reset(.both)
        link.halfClose(.both)
      }
      let link = simulation.network.links[0]
      #expect(try pair.server.write([2]) == 0)
      try pair.client.write([1])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .wouldBlock)
      link.unclog()
      link.resumeReading()
      try pair.server.write([2])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1) && pair.client.read() == .bytes(1))
      #expect(pair.client.bytes == [3])
    }
  }

  @Test func `the server's direction of a link that is connecting can be slow`() async throws {
    let simulation = Simulation()
    let slow = Duration.milliseconds(300)
    try await simulation.run {
      let pair = try await connectedPair(simulation, within: .seconds(1)) {
        $0.setConditions(LinkConditions(latency: slow...slow), .toClient)
      }
      try pair.server.write([1])
      try await simulation.sleep(for: .milliseconds(299))
      #expect(pair.client.read() == .wouldBlock)
      try await simulation.sleep(for: .milliseconds(2))
      #expect(pair.client.read() == .bytes(1))
    }
  }

  @Test func `a fault of a link that is connecting can end before it has begun`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await connectedPair(simulation) { link in
        link.silence()
        link.clog()
        link.stopReading()
        link.flipBit(0, ofByte: 0, .both)
        simulation.heal()
      }
      try pair.client.write([1])
      try pair.server.write([2])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1) && pair.client.read() == .bytes(1))
      #expect(pair.server.bytes == [1] && pair.client.bytes == [2])
    }
  }

  @Test func `one call ends every fault that lasts`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      let link = simulation.network.links[0]
      let other = simulation.machine(named: "other")
      link.silence(.toServer)
      link.clog(.toClient)
      link.stopReading(.toServer)
      link.flipBit(0, ofByte: 1, .both)
      simulation.network.isolate(other)
      simulation.network.connects = .refused
      other.pause()
      try pair.client.write([1])
      simulation.heal()
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1))
      #expect(try pair.server.write([1]) == 1)
      try pair.client.write([4])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1))
      #expect(pair.server.bytes == [1, 4])
      #expect(simulation.network.connects == .normal)
      #expect(!other.isPaused)
    }
  }
}
