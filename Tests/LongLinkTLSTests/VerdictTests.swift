// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// An end, or a failure, that comes behind bytes in the same read: nothing else follows that could
/// tell of it.
@Suite struct VerdictTests {
  private static let damaged = [0x17, 3, 3, 0, 30] + [UInt8](repeating: 0, count: 30)

  /// A stage whose peer has sent bytes and these, in one read.
  private static func stage(
    sending tail: (RawTLS) -> [UInt8], on loop: EventLoop
  ) throws -> Stage {
    let stage = try Stage(on: loop)
    stage.shakeHands()
    stage.readsWhenReady = true
    stage.send(stage.client.write([1]) + tail(stage.client))
    return stage
  }

  @Test func `the end of a peer that waits is told`() async throws {
    try await Stage.run { loop in
      let stage = try Self.stage(sending: { $0.close() }, on: loop)
      #expect(stage.bytes == [1])
      #expect(stage.below.inbox.isEmpty)
      for _ in 0..<2 { stage.endTurn() }
      #expect(stage.ending == "end")
      // The end is no byte.
      #expect(!stage.stream.hasUnreadBytes)
      stage.stream.close()
    }
  }

  @Test func `the end waits until somebody wants to read`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.send(stage.client.write([1]) + stage.client.close())
      try stage.readOnce(100)
      stage.stream.setInterest(.none)
      stage.endTurn()
      let former = stage.readiness.count
      stage.endTurn()
      #expect(stage.readiness.count == former)
      stage.readsWhenReady = true
      stage.stream.setInterest(.read)
      stage.endTurn()
      #expect(stage.ending == "end")
      stage.stream.close()
    }
  }

  @Test func `damage is told, and the peer too`() async throws {
    try await Stage.run { loop in
      let stage = try Self.stage(sending: { _ in Self.damaged }, on: loop)
      #expect(stage.bytes == [1])
      for _ in 0..<2 { stage.endTurn() }
      #expect(stage.ending == "damaged")
      #expect(stage.below.hasShutDown)
      stage.stream.close()
    }
  }

  @Test func `a write tells what the last read has found`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.inbox += stage.client.write([1]) + Self.damaged
      try stage.readOnce(100)
      #expect(stage.bytes == [1])
      #expect(throws: SocketError.self) { try stage.write([1]) }
      let failure = try #require(stage.stream.layer?.securityFailure)
      #expect(failure.detail.contains("broke a rule of TLS"), "\(failure.detail)")
      #expect(stage.below.hasShutDown)
      stage.stream.close()
    }
  }

  @Test func `a peer that has ended can still be written to`() async throws {
    try await Stage.run { loop in
      let stage = try Stage(on: loop)
      stage.shakeHands()
      stage.below.inbox += stage.client.write([1]) + stage.client.close()
      try stage.readOnce(100)
      #expect(try stage.write([2]) == 1)
      stage.client.receive(stage.below.takeOutput())
      #expect(stage.client.read() == [2])
      stage.stream.close()
    }
  }
}
