// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Where senders begin to wait, and where they go on.
@Suite struct WaterMarkTests {
  private func marked(_ role: Role) -> Side {
    let side = opened(role) { $0.waterMarks = WaterMarks(high: 10_000, low: 4_000) }
    side.isStalled = true
    return side
  }

  private func write(_ side: Side, _ count: Int) {
    side.connection.wrote(count, at: side.now)
    side.drain()
  }

  private func body(_ count: Int) -> [UInt8] { [UInt8](repeating: 1, count: count) }

  @Test(arguments: [Role.client, .server])
  func `senders wait from the high mark on, down to the low one`(role: Role) {
    let side = marked(role)
    side.push(1, body(9_983))
    #expect(side.connection.marks.isAbove == false)
    side.push(1)
    #expect(side.connection.marks.isAbove == true)
    #expect(side.connection.outbox.totalBytes == 10_015)
    write(side, 6_014)
    #expect(side.connection.marks.isAbove && side.takeEvents() == [])
    write(side, 1)
    #expect(side.connection.marks.isAbove == false)
    #expect(side.takeEvents() == [.resumeSending])
    write(side, 4_000)
    #expect(side.takeEvents() == [])
    #expect(side.connection.counters.highWaterEvents == 1)
    side.push(1, body(10_000))
    #expect(side.connection.counters.highWaterEvents == 2)
  }

  @Test
  func `fragmented messages are counted separately, and half of their mark lets senders continue`()
  {
    let side = opened(.client) { $0.waterMarks = WaterMarks(large: 600_000) }
    side.isStalled = true
    side.request(50, body(500_000))
    #expect(side.connection.marks.admits(500_000) == true)
    side.request(51, body(500_000))
    #expect(side.connection.marks.admits(65_536) && !side.connection.marks.admits(65_537))
    #expect(side.connection.counters.highWaterEvents == 1)
    _ = side.takeEvents()
    while side.connection.outbox.largeBytes > 300_000 {
      #expect(side.connection.marks.isAboveLarge && !side.takeEvents().contains(.resumeSending))
      write(side, side.connection.outbox.chunk.count)
    }
    #expect(side.connection.marks.admits(65_537) == true)
    #expect(side.takeEvents().contains(.resumeSending))
  }

  @Test func `small ones have room while large ones wait`() {
    let side = opened(.client) { $0.waterMarks = WaterMarks(large: 300_000) }
    side.isStalled = true
    side.request(50, body(400_000))
    side.request(51, body(400_000))
    #expect(side.connection.marks.admits(65_536) && !side.connection.marks.admits(65_537))
    #expect(side.cancel(51) && side.cancel(50))
    #expect(side.connection.marks.admits(65_537) == true)
    #expect(side.takeEvents().filter { $0 == .resumeSending }.count == 1)
  }

  @Test func `without fragments a large body counts like any other`() {
    let side = opened(.client, features: []) {
      $0.waterMarks = WaterMarks(high: 100_000, low: 0, large: 100_000)
    }
    side.isStalled = true
    side.request(50, body(400_000))
    #expect(side.connection.marks.isAbove && !side.connection.marks.isAboveLarge)
  }

  @Test func `an answer that comes early makes room`() {
    let side = opened(.client) { $0.waterMarks = WaterMarks(large: 300_000) }
    side.isStalled = true
    side.request(50, body(500_000))
    write(side, side.connection.outbox.encodedBytes)
    #expect(side.connection.marks.isAboveLarge == true)
    _ = side.takeEvents()
    side.receive(RawFrame(.response, tag: 0x80_0000 | 413, serial: 50))
    #expect(side.takeEvents().contains(.resumeSending))
    #expect(side.connection.outbox.largeBytes == 0)
  }

  @Test func `answers are not held back, and a peer that leaves too many is dropped`() {
    let side = opened(.client) {
      $0.waterMarks = WaterMarks(high: 1_000, low: 0)
      $0.maxUnread = 10_000
    }
    side.isStalled = true
    for index: UInt32 in 0..<20 {
      side.receive(RawFrame(.request, tag: 1, serial: 0x8000_0032 + index))
    }
    var answered = 0
    for index: UInt32 in 0..<20 where side.respond(0x8000_0032 + index, body(2_000)) {
      answered += 1
    }
    // One may lead over the bound, the next one ends it.
    #expect(answered == 5)
    #expect(side.takeEvents().suffix(2) == [.abandon(.unreadOutput), .close(.unreadOutput)])
  }

  @Test func `one message larger than the bound is no reason to drop a peer`() {
    let side = opened(.server) { $0.maxUnread = 10_000 }
    side.isStalled = true
    side.receive(RawFrame(.request, tag: 1, serial: 50))
    #expect(side.respond(50, body(100_000)))
    #expect(side.connection.isOpen == true)
    side.isStalled = false
    side.flush()
    #expect(side.connection.outbox.isEmpty == true)
  }

  @Test func `a connection that ends asks for nothing to be sent`() {
    let side = marked(.client)
    side.push(1, body(20_000))
    side.connection.shutDown(at: side.now)
    side.drain()
    side.isStalled = false
    side.flush()
    #expect(!side.takeEvents().contains(.resumeSending))
  }
}
