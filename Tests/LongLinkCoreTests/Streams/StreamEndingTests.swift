// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Streams that end in the middle.
@Suite struct StreamEndingTests {
  /// The course of an exchange in both directions, step by step.
  private static let course: [@Sendable (ConnectionPair) -> Void] = [
    { $0.client.stream(50, credit: 65_536, items: true, [UInt8](repeating: 9, count: 100_000)) },
    { $0.client.flush() },
    { $0.exchange() },
    { $0.client.write(50, [1]) },
    { $0.server.write(50, [2]) },
    { $0.exchange() },
    { $0.client.write(50, [UInt8](repeating: 3, count: 150_000)) },
    { $0.client.flush() },
    { $0.server.write(50, [UInt8](repeating: 4, count: 150_000)) },
    { _ = $0.move() },
    { $0.server.take(50) },
    { _ = $0.move() },
    { $0.client.take(50) },
    { $0.exchange() },
    { $0.client.endItems(50) },
    { $0.server.take(50) },
    { $0.exchange() },
    { $0.client.take(50) },
    { $0.server.respond(50) },
    { $0.server.flush() },
    { $0.exchange() },
  ]

  private func run(
    _ cutting: Cutting, upTo step: Int, _ end: (ConnectionPair) -> Void
  ) -> ConnectionPair {
    let pair = ConnectionPair(cutting: cutting, seed: UInt64(step))
    pair.client.room = 80_000
    for step in Self.course.prefix(step) { step(pair) }
    end(pair)
    pair.exchange()
    return pair
  }

  private func check(_ pair: ConnectionPair, _ comment: Comment) {
    #expect(pair.client.connection.isOpen == true, comment)
    #expect(pair.server.connection.isOpen == true, comment)
    #expect(pair.client.isIdle && pair.server.isIdle, comment)
    #expect(pair.client.connection.streams.isEmpty == true, comment)
    #expect(pair.server.connection.streams.isEmpty == true, comment)
    #expect(pair.client.connection.held.used == 0, comment)
    #expect(pair.server.connection.held.used == 0, comment)
    // The serial of an exchange that has ended can be used again.
    pair.client.request(50, [1])
    pair.exchange()
    #expect(pair.server.respond(50), comment)
    pair.exchange()
    #expect(pair.client.takeEvents().last == .response(50, code: 200, body: []), comment)
  }

  @Test(arguments: [Cutting.whole, .random])
  func `the whole course works`(cutting: Cutting) {
    let pair = run(cutting, upTo: Self.course.count) { _ in }
    #expect(pair.client.takeEvents().last == .response(50, code: 200, body: []))
    check(pair, "")
  }

  @Test(arguments: 1..<21, [Cutting.whole, .random])
  func `a cancel at any point leaves nothing behind`(step: Int, cutting: Cutting) {
    var wasUnsent = false
    let pair = run(cutting, upTo: step) { pair in
      wasUnsent = pair.client.cancel(50, notifying: false)
    }
    let events = pair.server.takeEvents()
    if wasUnsent {
      #expect(events == [])
    } else {
      let counters = pair.server.connection.counters
      #expect(pair.client.connection.counters.cancelsSent == 1, "even without `notifying`")
      #expect(events.contains(.cancel(50)) || counters.droppedUnknownSerials == 1 || step < 3)
      #expect(pair.server.running.isEmpty)
    }
    check(pair, "step \(step)")
  }

  @Test(arguments: 3..<20, [Cutting.whole, .random])
  func `an error at any point leaves nothing behind`(step: Int, cutting: Cutting) {
    let pair = run(cutting, upTo: step) { pair in
      if pair.server.running[50] != nil { pair.server.respond(50, code: 1_000, [7]) }
    }
    #expect(!pair.client.awaited.contains(50))
    #expect(pair.client.connection.counters.cancelsSent == 0)
    check(pair, "step \(step)")
  }

  @Test(arguments: 1..<21)
  func `the loss of the connection at any point leaves nothing behind`(step: Int) {
    for isViolation in [false, true] {
      let pair = run(.whole, upTo: step) { pair in
        if isViolation {
          pair.server.receive(RawFrame(wire: 0x20))
          pair.exchange()
        } else {
          pair.server.receiveEnd()
          pair.client.receiveEnd()
        }
      }
      for side in [pair.client, pair.server] {
        #expect(side.connection.isOpen == false)
        #expect(side.connection.streams.isEmpty == true)
        #expect(side.connection.streams.heldBytes == 0)
        #expect(side.connection.streams.reserved == 0)
        #expect(side.write(50, [1]) == .ended)
        side.endItems(50)
        side.connection.tookItems(50, cost: 5, at: side.now)
      }
    }
  }

  @Test func `a stream that has not left is withdrawn with all its items`() {
    let side = opened(.client)
    side.isStalled = true
    side.request(49 + 1, [1])
    side.stream(51, credit: 4_096, items: true, [2])
    side.request(52, [3])
    for _ in 0..<3 { #expect(side.write(51, [4]) == .encoded) }
    side.request(53, [5])
    side.write(51, [UInt8](repeating: 6, count: 20_000))
    side.endItems(51)
    #expect(side.cancel(51, notifying: true))
    side.request(54, [7])
    side.isStalled = false
    let frames = side.takeFrames()
    #expect(frames.map(\.serial) == [50, 52, 53, 54])
    #expect(frames.allSatisfy { $0.kind == FrameKind.request.rawValue })
    #expect(side.connection.held.used == 0 && side.connection.counters.cancelsSent == 0)
  }

  @Test func `a stream that waits behind others is withdrawn with its item`() {
    let side = opened(.client) { $0.encodeLimit = 1_000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 2_000))
    side.stream(51, items: true, [2])
    #expect(side.write(51, [3]) == .waiting)
    side.endItems(51)
    #expect(side.cancel(51))
    side.isStalled = false
    #expect(side.takeFrames().map(\.serial) == [50])
    #expect(side.takeEvents() == [])
  }

  @Test func `a request that has left stays, and its items with it`() {
    let side = opened(.client)
    side.stream(50, items: true)
    side.flush()
    side.isStalled = true
    side.write(50, [1])
    #expect(side.cancel(50, notifying: false) == false)
    side.isStalled = false
    #expect(side.takeFrames().map(\.kind) == [0, 2, 4])
  }
}
