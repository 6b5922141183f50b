// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Streams beside each other and beside everything else.
@Suite struct StreamFairnessTests {
  private func opened(_ streams: ClosedRange<UInt32>, priority: UInt32 = 0) -> Side {
    let side = LongLinkCoreTests.opened(.client)
    for serial in streams {
      side.stream(serial, items: true, priority: priority)
      side.receive(credit(100_000_000, serial))
    }
    side.flush()
    _ = side.takeFrames()
    side.isStalled = true
    return side
  }

  @Test func `large items take turns, and small ones pass them`() {
    let side = opened(50...52)
    side.write(50, [UInt8](repeating: 1, count: 1_000_000))
    side.write(51, [UInt8](repeating: 2, count: 1_000_000))
    #expect(side.write(52, [3]) != .ended)
    side.request(53, [4])
    _ = side.connection.ping(at: side.now)
    side.isStalled = false
    let frames = side.takeFrames()
    let place = { (serial: UInt32) in frames.firstIndex { $0.serial == serial }! }
    #expect(place(52) < 5 && place(53) < 5 && place(0) < 5)
    var ahead = 0
    for frame in frames where frame.serial == 50 || frame.serial == 51 {
      ahead += frame.serial == 50 ? 1 : -1
      #expect(abs(ahead) <= 2)
    }
    #expect(frames.filter { $0.serial == 50 }.map(\.body.count).reduce(0, +) == 1_000_000)
    #expect(side.takeEvents().filter(\.isItemSent).count == 2)
  }

  @Test func `a large request and a large item take turns`() {
    let side = opened(50...50)
    side.write(50, [UInt8](repeating: 1, count: 1_000_000))
    side.request(51, [UInt8](repeating: 2, count: 1_000_000))
    side.isStalled = false
    var ahead = 0
    for frame in side.takeFrames().dropFirst(2).dropLast(2) {
      ahead += frame.serial == 50 ? 1 : -1
      #expect(abs(ahead) <= 3)
    }
  }

  @Test func `a more urgent stream goes first`() {
    let side = opened(50...50)
    side.stream(51, items: true, priority: 5)
    side.receive(credit(100_000_000, 51))
    side.write(50, [UInt8](repeating: 1, count: 400_000))
    side.write(51, [UInt8](repeating: 2, count: 400_000))
    side.isStalled = false
    let serials = side.takeFrames().filter { $0.kind == FrameKind.item.rawValue }.map(\.serial)
    let (urgent, other) = (serials.lastIndex(of: 51)!, serials.lastIndex(of: 50)!)
    #expect(urgent < other && serials.prefix(4).filter { $0 == 51 }.count >= 3)
  }

  @Test func `items that wait for the peer do not keep a server from reading`() {
    let pair = ConnectionPair()
    for serial: UInt32 in 50..<70 { pair.client.stream(serial, credit: 1_000_000) }
    pair.exchange()
    pair.server.isStalled = true
    for serial: UInt32 in 50..<70 {
      while pair.server.write(serial, [UInt8](repeating: 1, count: 10_000)) == .encoded {}
    }
    #expect(pair.server.sending.count == 20)
    #expect(pair.server.connection.holdsReading == false)
    _ = pair.server.takeEvents()
    _ = pair.client.cancel(50)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.cancel(50)])
    pair.server.isStalled = false
    pair.exchange()
    #expect(pair.server.sending.isEmpty)
  }

  @Test func `an item that waits for credit keeps nothing else waiting`() {
    let side = LongLinkCoreTests.opened(.client)
    side.stream(50, items: true)
    #expect(side.write(50, [UInt8](repeating: 1, count: 300_000)) == .waiting)
    side.flush()
    _ = side.takeFrames()
    side.request(51, [UInt8](repeating: 1, count: 300_000))
    #expect(side.takeFrames().filter { $0.serial == 51 }.count == 5)
    #expect(side.connection.marks.isAbove == false && side.connection.marks.isAboveLarge == false)
  }
}
