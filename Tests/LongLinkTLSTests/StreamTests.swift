// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkTesting
import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// The promises of a stream of bytes that transforms them.
@Suite struct StreamTests {
  private final class Nobody: TransportHandler {
    func transportReady(_ readiness: Readiness, token: UInt64) {}
  }

  @Test func `what the stream below does not take waits, and keeps its order`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.room = 10
      #expect(try stage.write(Array(repeating: 1, count: 100)) == 100)
      #expect(try stage.write([2]) == 0)
      #expect((stage.stream.layer?.heldBytes ?? 0) > 90)
      #expect(stage.below.interest == [.read, .write])
      stage.stream.setInterest([.read, .write])
      stage.below.room = 50
      stage.below.deliver()
      #expect(!stage.readiness.contains { $0.contains(.write) })
      stage.below.room = .max
      stage.below.deliver()
      #expect(stage.readiness.last?.contains(.write) == true)
      #expect(stage.stream.layer?.heldBytes == 0)
      #expect(try stage.write([2, 3]) == 2)
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == Array(repeating: 1, count: 100) + [2, 3])
      stage.stream.close()
    }
  }

  @Test func `a large write holds one piece at most`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.room = 100_000
      #expect(try stage.write(Array(repeating: 1, count: 1_000_000)) == 131_072)
      #expect((stage.stream.layer?.heldBytes ?? 0) < 70_000)
      stage.stream.close()
    }
  }

  @Test func `each write is one write below`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      for size in [1, 100, 16_384, 40_000, 65_536] {
        let former = stage.below.outbox.count
        #expect(try stage.write(Array(repeating: 1, count: size)) == size)
        #expect(stage.below.outbox.count == former + 1)
      }
      stage.stream.close()
    }
  }

  @Test func `written minus unacknowledged bytes never decrease`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      _ = stage.below.takeOutput()
      var (written, acknowledged) = (0, 0)
      for round in 0..<200 {
        stage.below.room = round % 7 * 3_000
        written += try stage.write(Array(repeating: 1, count: round * 37 % 5_000))
        if round % 5 == 4 { stage.client.receive(stage.below.takeOutput()) }
        stage.below.deliver()
        let now = written - stage.stream.unacknowledgedBytes
        #expect(now >= acknowledged && now <= written)
        acknowledged = now
      }
      stage.below.room = .max
      stage.below.deliver()
      _ = try stage.write([1])
      #expect(stage.stream.unacknowledgedBytes > 0)
      _ = stage.below.takeOutput()
      #expect(stage.stream.unacknowledgedBytes == 0)
      stage.stream.close()
    }
  }

  @Test func `bytes that wait are reported in each turn`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.inbox += stage.client.write(Array(repeating: 1, count: 30_000))
      stage.below.deliver()
      var turns = 0
      while stage.bytes.count < 30_000, turns < 100 {
        let former = stage.readiness.count
        try stage.readOnce(1_000)
        stage.below.deliver()
        stage.endTurn()
        turns += 1
        if stage.bytes.count < 30_000 {
          #expect(stage.stream.hasUnreadBytes)
          #expect(stage.readiness.count > former)
        }
      }
      // A read ends with a record at most once more than the size asks for.
      #expect((30...34).contains(turns))
      #expect(stage.below.reads <= 6)
      #expect(!stage.stream.hasUnreadBytes)
      stage.stream.close()
    }
  }

  @Test func `the end is protected, and comes after what waits`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      _ = try stage.write([1, 2, 3])
      stage.stream.shutDownWriting()
      #expect(stage.below.hasShutDown)
      #expect(throws: SocketError.self) { try stage.write([4]) }
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == [1, 2, 3])
      #expect(stage.client.hasReceivedEnd)
      // The other direction goes on.
      stage.send(stage.client.write([9]))
      stage.readAll()
      #expect(stage.bytes == [9])
      stage.stream.close()
      #expect(stage.below.closings == ["close"])
    }
  }

  @Test func `a close waits until everything was taken`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      _ = stage.below.takeOutput()
      stage.below.room = 5
      _ = try stage.write([1, 2, 3])
      stage.stream.close()
      #expect(stage.below.closings == [])
      stage.below.room = .max
      stage.below.deliver()
      #expect(stage.below.closings == ["close"])
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == [1, 2, 3])
      #expect(stage.client.hasReceivedEnd)
    }
  }

  @Test func `a close does not wait forever, and is let go`() async throws {
    let simulation = Simulation()
    try await simulation.run {
      let loop = simulation.eventLoop(named: "stage")
      let below = try await loop.run { () -> Result<LoopBox, any Error> in
        Result {
          let stage = try Stage(on: loop)
          stage.shakeHands()
          stage.below.room = 5
          _ = try stage.write([1, 2, 3])
          stage.stream.close()
          return LoopBox(stage.below, stage.stream, on: loop)
        }
      }.get()
      try await simulation.sleep(for: .seconds(4))
      #expect(await below.closings == [])
      try await simulation.sleep(for: .seconds(2))
      #expect(await below.closings == ["reset"])
      #expect(await below.isReleased)
    }
    #expect(simulation.pendingTimers == [])
  }

  @Test(arguments: ["close", "reset", "linger", "failure"])
  func `a stream that has ended is released, with a handler that keeps it`(
    kind: String
  ) async throws {
    let simulation = Simulation()
    try await simulation.run {
      let loop = simulation.eventLoop(named: "stage")
      let below = try await loop.run { () -> Result<LoopBox, any Error> in
        Result {
          // As a link does, the stage keeps its stream, and is kept by it.
          let stage = try Stage(on: loop)
          stage.shakeHands()
          switch kind {
          case "close": stage.stream.close()
          case "reset": stage.stream.reset()
          case "linger":
            stage.below.room = 5
            _ = try stage.write([1, 2, 3])
            stage.stream.close()
          default:
            stage.send([0x17, 3, 3, 0, 0])
            stage.readAll()
            #expect(stage.ending == "damaged")
            stage.stream.close()
          }
          return LoopBox(stage.below, stage.stream, on: loop)
        }
      }.get()
      try await simulation.sleep(for: .seconds(6))
      #expect(await below.closings.count == 1)
      #expect(await below.isReleased)
    }
    #expect(simulation.pendingTimers == [])
  }

  @Test func `a stream that everybody drops, its handler too, is released`() async throws {
    try await Stage.run { loop in
      weak var stream: (any Transport)?
      weak var below: MemoryTransport?
      do {
        let stage = try Stage(on: loop)
        stage.shakeHands()
        // A stream keeps its handler, as a loop does; this one does not keep the stream.
        stage.stream.attach(Nobody(), token: 0)
        stream = stage.stream
        below = stage.below
      }
      // Not the streams themselves, which a failed expectation would reflect.
      let isReleased = stream == nil && below == nil
      #expect(isReleased)
    }
  }

  @Test func `an alert is found though writing has failed`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      // A record that cannot be decrypted stands for any failure that waits.
      stage.below.inbox = [0x17, 3, 3, 0, 30] + Array(repeating: 0, count: 30)
      stage.below.failure = SocketError(operation: "write", errno: 32)
      #expect(throws: SocketError.self) { try stage.write([1]) }
      #expect(stage.stream.layer?.securityFailure?.code == .damaged)
      stage.stream.close()
    }
  }

  @Test func `writing may fail while bytes wait and others come`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.room = 1_000
      _ = try stage.write(Array(repeating: 1, count: 5_000))
      // It has to be answered, with bytes behind those that wait.
      stage.below.inbox = stage.client.updateKeys()
      stage.below.failure = SocketError(operation: "write", errno: 32)
      stage.below.room = .max
      stage.below.deliver()
      #expect(throws: SocketError.self) { try stage.write([1]) }
      stage.stream.close()
    }
  }

  @Test func `a damaged record may wait behind a good one`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      let damaged = [0x17, 3, 3, 0, 30] + Array(repeating: UInt8(0), count: 30)
      stage.below.inbox += stage.client.write(Array(repeating: 1, count: 5_000)) + damaged
      // Each read has room for a part of the good one alone.
      for _ in 0..<10 where stage.ending == nil { stage.readAll(pieces: 1_000) }
      #expect(stage.bytes.count == 5_000)
      #expect(stage.ending != nil)
      #expect(stage.stream.layer?.securityFailure?.code == .damaged)
      stage.stream.close()
    }
  }

  @Test func `the last flight of a client goes with its first bytes`() async throws {
    let (_, simulation) = try await World.simulate(try World.Parts()) { world in
      try await world.client.request(World.echo, [1])
    }
    let writes = simulation.trace.filter { $0.contains("link 1") && $0.contains(" writes ") }
    // Hello of TLS; its answer; the end of the handshake with hello and request; the rest.
    #expect(writes.prefix(3).map { $0.contains("link 1 client: writes") } == [true, false, true])
    let flights = simulation.trace.filter { $0.contains("link 1 client: writes") }
    #expect(flights.count <= 4)
  }

  @Test func `a stream that is used keeps its buffers until it is released`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      func exchange() throws {
        stage.send(stage.client.write([1]))
        stage.readAll()
        _ = try stage.write([2])
        stage.client.receive(stage.below.takeOutput())
        #expect(stage.client.read() == [2])
      }
      // Heartbeats alone keep nothing.
      for _ in 0..<20 {
        for _ in 0..<4 { try exchange() }
        #expect(stage.stream.layer?.heldBytes == 0)
        stage.stream.layer?.releaseStorage()
      }
      for _ in 0..<20 { try exchange() }
      let buffers = try #require(stage.stream.layer?.heldBytes)
      #expect((32_768...36_864).contains(buffers))
      stage.stream.layer?.releaseStorage()
      #expect(stage.stream.layer?.heldBytes == 0)
      // With decrypted bytes that wait, they stay, and nothing is lost.
      for _ in 0..<20 { try exchange() }
      stage.send(stage.client.write([UInt8](repeating: 5, count: 10_000)))
      let former = stage.bytes.count
      try stage.readOnce(10)
      stage.stream.layer?.releaseStorage()
      #expect((stage.stream.layer?.heldBytes ?? 0) > 0)
      stage.readAll()
      #expect(stage.bytes.count == former + 10_000)
      #expect(stage.stream.layer?.heldBytes == 0)
      try exchange()
      stage.stream.close()
    }
  }

  @Test func `a stream whose peer has closed looks through a bounded number of bytes`() async throws
  {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      for _ in 0..<200 {
        stage.below.inbox += stage.client.write([UInt8](repeating: 5, count: 16_384))
      }
      let all = stage.below.inbox.count
      stage.below.failure = SocketError(operation: "write", errno: 32, address: nil)
      #expect(throws: SocketError.self) { try stage.write([1]) }
      #expect(all - stage.below.inbox.count < 1_100_000)
      stage.stream.close()
    }
  }
}
