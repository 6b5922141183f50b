// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting
import LongLinkTransport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What a stream of the simulation does, as the kernel's streams do it.
@Suite struct SimulatedTransportTests {
  @Test func `bytes arrive whole after the latency and in order`() async throws {
    let simulation = Simulation()
    simulation.network.conditions.latency = .milliseconds(10) ... .milliseconds(10)
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1, 2, 3])
      try pair.client.write([4])
      try await simulation.sleep(for: .milliseconds(8))
      #expect(pair.server.readiness.isEmpty)
      try await simulation.sleep(for: .milliseconds(4))
      #expect(pair.server.readiness == [.read])
      #expect(pair.server.read() == .bytes(4))
      #expect(pair.server.bytes == [1, 2, 3, 4])
      #expect(pair.server.read() == .wouldBlock)
    }
  }

  @Test func `a drawn latency never changes the order`() async throws {
    let simulation = Simulation(seed: 3)
    simulation.network.conditions = .unsteady
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.server.readsAlong = true
      pair.server.stream.setInterest(.read)
      let sent = (0..<200).map { UInt8($0) }
      for byte in sent {
        try pair.client.write([byte])
        try await simulation.sleep(for: .milliseconds(1))
      }
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.bytes == sent)
    }
  }

  @Test func `a read size of one gives byte by byte`() async throws {
    let simulation = Simulation()
    simulation.network.conditions = .byteByByte
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.server.readsAlong = true
      pair.server.stream.setInterest(.read)
      try pair.client.write([1, 2, 3])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.bytes == [1, 2, 3])
      #expect(pair.server.readSizes == [1, 1, 1])
    }
  }

  @Test func `a write takes at most what it may`() async throws {
    let simulation = Simulation()
    simulation.network.conditions.writeSize = 2...2
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      #expect(try pair.client.write([1, 2, 3]) == 2)
    }
  }

  @Test func `a full window holds the writer until the peer reads`() async throws {
    let simulation = Simulation()
    simulation.network.conditions.window = 4
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      #expect(try pair.client.write([1, 2, 3, 4, 5, 6]) == 4)
      #expect(try pair.client.write([5, 6]) == 0)
      pair.client.stream.setInterest(.write)
      try await simulation.sleep(for: .seconds(10))
      #expect(pair.client.readiness.isEmpty)
      pair.server.read(2)
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.client.readiness == [.write])
      #expect(try pair.client.write([5, 6, 7]) == 2)
    }
  }

  @Test func `a stream with room is ready for writing at once`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.client.stream.setInterest(.write)
      try await simulation.sleep(for: .zero)
      #expect(pair.client.readiness == [.write])
    }
  }

  @Test func `an end is read after the bytes before it, and writing goes on`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1])
      pair.client.stream.shutDownWriting()
      #expect(throws: SocketError.self) { try pair.client.write([2]) }
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(1))
      #expect(pair.server.read() == .end)
      #expect(pair.server.read() == .end)
      try pair.server.write([9])
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.client.read() == .bytes(1))
    }
  }

  @Test func `a close delivers what was written, then the end`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1, 2])
      pair.client.stream.close()
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.read() == .bytes(2))
      #expect(pair.server.read() == .end)
    }
  }

  @Test func `a close with unread bytes resets`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.server.write([1, 2])
      try await simulation.sleep(for: .seconds(1))
      pair.client.stream.close()
      try await simulation.sleep(for: .seconds(1))
      pair.server.read()
      #expect(pair.server.failure == ECONNRESET)
    }
  }

  @Test func `a reset drops bytes in flight and is reported once`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      try pair.client.write([1, 2])
      pair.client.stream.reset()
      try await simulation.sleep(for: .seconds(1))
      #expect(pair.server.readiness == [.read])
      pair.server.read()
      #expect(pair.server.bytes == [])
      #expect(pair.server.failure == ECONNRESET)
      let error = #expect(throws: SocketError.self) { try pair.server.write([1]) }
      #expect(error?.errno == EPIPE)
      #expect(pair.server.read() == .end)
    }
  }

  @Test func `writing to a peer that has closed breaks the pipe`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      pair.client.stream.close()
      try await simulation.sleep(for: .seconds(1))
      #expect(try pair.server.write([1]) == 1)
      try await simulation.sleep(for: .seconds(1))
      let error = #expect(throws: SocketError.self) { try pair.server.write([1]) }
      #expect(error?.errno == EPIPE)
    }
  }

  @Test func `a stream that is dropped closes`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let listener = try ListenerProbe(Simulation.freePort, on: simulation.mainLoop)
      var stream: (any Transport)? = try simulation.mainLoop.driver.connect(
        to: listener.address,
        options: SocketOptions()
      )
      try await simulation.sleep(for: .seconds(1))
      #expect(simulation.openStreams.count == 2)
      #expect(try stream?.finishConnecting() == true)
      stream = nil
      #expect(simulation.openStreams.count == 1)
      try await simulation.sleep(for: .seconds(1))
      #expect(listener.accepted[0].read() == .end)
      listener.accepted[0].stream.close()
      listener.listener.close()
      #expect(simulation.openStreams == [])
      #expect(simulation.openListeners == [])
    }
  }

  @Test func `addresses name both ends the same way`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let pair = try await simulation.connectedPair()
      #expect(pair.client.stream.peerAddress == pair.listener.address)
      #expect(pair.server.stream.localAddress == pair.listener.address)
      #expect(pair.server.stream.peerAddress == pair.client.stream.localAddress)
      #expect(pair.listener.address.port != 0)
    }
  }
}
