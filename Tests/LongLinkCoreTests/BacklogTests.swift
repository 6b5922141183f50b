// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Whose turn it is among the messages that are kept back.
@Suite struct BacklogTests {
  private static let fragment = 65_552

  /// A side that keeps small frames back until `flush`.
  private func congested(_ role: Role = .client) -> Side {
    let side = opened(role) { $0.encodeLimit = 1_000 }
    side.isStalled = true
    side.push(99, [UInt8](repeating: 0, count: 2_000))
    return side
  }

  /// Some bytes leave, and no more.
  private func write(_ side: Side, _ count: Int) {
    side.isStalled = false
    side.room = side.wire.count + count
    side.flush()
    side.isStalled = true
  }

  private func leave(_ side: Side) -> [RawFrame] {
    side.isStalled = false
    side.room = .max
    return side.takeFrames()
  }

  private func large(_ size: Int = 300_000) -> [UInt8] { [UInt8](repeating: 1, count: size) }

  @Test func `the most urgent goes first, and equals in their order`() {
    let side = congested()
    for (serial, priority): (UInt32, UInt32) in [(50, 0), (51, 2), (52, 1), (53, 2), (54, 0)] {
      side.request(serial, priority: priority)
    }
    #expect(leave(side).map(\.serial) == [1, 51, 53, 52, 50, 54])
  }

  @Test func `a frame more urgent than all waiting ones is encoded at once`() {
    let side = opened(.client) { $0.encodeLimit = 2_000 }
    side.isStalled = true
    let begin = side.request(50, [UInt8](repeating: 1, count: 2_000)).begin!
    side.request(51)
    side.request(52)
    write(side, 900)
    // There is room again, though not enough to encode those that wait.
    #expect(side.request(53) == .keptBack)
    #expect(side.request(54, priority: 1).begin == begin + 2_016)
    #expect(leave(side).suffix(4).map(\.serial) == [54, 51, 52, 53])
  }

  @Test func `an urgent large body passes another that has begun`() {
    let side = opened(.client)
    side.isStalled = true
    side.request(50, large(1_000_000))
    side.request(51, priority: 1, large(1_000_000))
    let serials = leave(side).map(\.serial)
    let last = serials.lastIndex(of: 51)!
    // What was encoded before, and what may not wait any longer, is all that stands before its end.
    #expect(serials[...last].filter { $0 == 50 }.count <= 2 + 16 / 7)
    #expect(serials.filter { $0 == 50 }.count == 16)
  }

  @Test func `small messages pass large ones of the same priority`() {
    let side = congested()
    side.request(50, large())
    side.request(51, [1])
    side.request(52, [2])
    #expect(leave(side).prefix(3).map(\.serial) == [1, 51, 52])
  }

  @Test func `a response is as urgent as its request was`() {
    let side = opened(.server) { $0.encodeLimit = 1_000 }
    side.isStalled = true
    for serial: UInt32 in 50..<54 {
      side.receive(RawFrame(.request, tag: 1, serial: serial))
      side.connection.inbound.setPriority(serial - 50, of: serial)
    }
    // None of a request that is not there.
    side.connection.inbound.setPriority(9, of: 77)
    side.push(99, [UInt8](repeating: 0, count: 2_000))
    for serial: UInt32 in 50..<54 { side.respond(serial) }
    #expect(leave(side).map(\.serial) == [1, 53, 52, 51, 50])
  }

  @Test func `an urgent push passes others, but not one that has begun`() {
    let side = opened(.client)
    side.isStalled = true
    side.push(1, large())
    side.push(2, [2])
    side.push(3, large())
    side.connection.push(4, priority: 1, count: 0, at: side.now) { _ in }
    side.connection.push(5, priority: 2, count: 300_000, at: side.now) { span in
      large().encode(into: &span)
    }
    var tags = leave(side).map(\.tag)
    tags = tags.indices.filter { $0 == 0 || tags[$0 - 1] != tags[$0] }.map { tags[$0] }
    #expect(tags == [1, 5, 4, 2, 3])
  }

  @Test func `a push that has begun is as urgent as the one that waits for it`() {
    let side = opened(.client)
    side.isStalled = true
    side.push(1, large(1_000_000))
    side.request(50, priority: 1, large(1_000_000))
    side.connection.push(2, priority: 2, count: 0, at: side.now) { _ in }
    let frames = leave(side)
    let urgent = frames.firstIndex { $0.kind == 6 && $0.tag == 2 }!
    // Two pieces of the request may have been encoded before the urgent push came.
    #expect(frames[..<urgent].filter { $0.serial == 50 }.count <= 2 + 16 / 7)
  }

  @Test(arguments: [0, 1])
  func `nothing starves behind what is more urgent`(kind: Int) {
    let side = opened(.client) { $0.waterMarks = WaterMarks(high: .max, low: 0) }
    side.room = 150_000
    let old: UInt32 = 50
    side.request(old, kind == 0 ? large(1_000_000) : [UInt8](repeating: 2, count: 60_000))
    side.request(51, priority: 5, large(4_000_000))
    side.request(52, priority: 5, large(4_000_000))
    var serial: UInt32 = 100
    var passed = 0
    var most = 0
    var isThere = false
    while !isThere, serial < 2_000 {
      // More small ones come than leave.
      for _ in 0..<3 {
        side.request(serial, priority: 3, [UInt8](repeating: 3, count: 20_000))
        serial += 1
      }
      for frame in side.takeFrames() {
        if frame.serial == old {
          most = max(most, passed)
          passed = 0
          isThere = frame.flags & 1 == 0
        } else {
          passed += frame.body.count
        }
      }
    }
    #expect(isThere)
    // Seven fragments, what stands encoded at that time, and one piece more.
    #expect(most <= 7 * Self.fragment + 262_144 + 2 * Self.fragment)
  }

  @Test(arguments: 0..<20)
  func `a ping and an urgent request leave before much more of a large body`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    let side = opened(.client)
    side.isStalled = true
    side.request(50, large(16_777_216))
    if seed >= 10 { side.request(51, large(16_777_216)) }
    var rounds = 0
    while side.connection.outbox.holdsBack, rounds < 40 {
      rounds += 1
      // Some of it leaves, as over a thin path.
      for _ in 0..<dice.below(20) {
        let chunk = side.connection.outbox.chunk.count
        side.connection.wrote(min(chunk, 1 + dice.below(30_000)), at: side.now)
      }
      let before = side.connection.outbox.written
      let id = side.connection.ping(at: side.now)
      let urgent = side.request(UInt32(100 + rounds), priority: 3, [1])
      #expect(id > 0)
      let begin = try! #require(urgent.begin)
      #expect(begin - before <= UInt64(3 * Self.fragment) + 24)
      if seed < 10 { #expect(begin - before <= UInt64(2 * Self.fragment) + 24 + 17 * 40) }
    }
    #expect(rounds == 40)
  }

  @Test func `without fragments the largest body may stand before an urgent frame, and no other`() {
    let side = opened(.client, features: [])
    side.isStalled = true
    side.request(50, large(5_000_000))
    side.request(51, large(5_000_000))
    side.request(52, priority: 1, [1])
    #expect(leave(side).map(\.serial) == [50, 52, 51])
  }

  @Test func `ten thousand frames that are held back are withdrawn in any order`() {
    let side = congested()
    var dice = Seeded(3)
    let serials = (0..<10_000).map { UInt32(50 + $0) }
    for serial in serials {
      let size = dice.below(100) == 0 ? 70_000 : dice.below(10)
      side.request(serial, priority: UInt32(dice.below(4)), [UInt8](repeating: 1, count: size))
    }
    var left = Set(serials)
    for serial in serials.shuffled(using: &dice).dropLast(10) {
      #expect(side.cancel(serial))
      left.remove(serial)
    }
    #expect(side.connection.outbox.holdsBack == true)
    let sent = Set(leave(side).map(\.serial).filter { $0 >= 50 })
    #expect(sent == left)
    #expect(side.connection.outbox.isEmpty && side.connection.outbox.totalBytes == 0)
  }

  @Test func `ten thousand encoded frames are withdrawn in any order`() {
    let side = opened(.client)
    side.isStalled = true
    var dice = Seeded(4)
    let serials = (0..<10_000).map { UInt32(50 + $0) }
    for serial in serials { #expect(side.request(serial).begin != nil) }
    var left = Set(serials)
    for serial in serials.shuffled(using: &dice).dropLast(10) {
      #expect(side.cancel(serial))
      left.remove(serial)
    }
    #expect(Set(leave(side).map(\.serial)) == left)
    #expect(side.connection.outbox.isEmpty == true)
  }

  @Test func `a large request is withdrawn if fragments are encoded but none was sent`() {
    let side = opened(.client)
    side.isStalled = true
    side.request(50, large(1_000_000))
    side.request(51, [1])
    #expect(side.connection.outbox.encodedBytes > Self.fragment)
    #expect(side.cancel(50))
    #expect(leave(side).map(\.serial) == [51])
    #expect(side.connection.counters.cancelsSent == 0)
    #expect(side.connection.ordinals.ordinal(ofAccepted: 1) == 2)
  }
}
