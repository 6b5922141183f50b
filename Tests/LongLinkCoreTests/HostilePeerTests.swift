// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// What a peer may try in order to take memory or time that is not its own.
@Suite struct HostilePeerTests {
  @Test func `refused messages that are never ended are bounded in number`() {
    let side = opened(.server) { $0.maxInFlight = 20 }
    side.connection.goAway(
      code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    _ = side.takeFrames()
    _ = side.takeEvents()
    var begun = 0
    while side.connection.isOpen, begun < 1000 {
      side.receive(RawFrame(.request, flags: .more, tag: 1, serial: UInt32(50 + begun), body: [1]))
      begun += 1
    }
    #expect(begun == 21)
    guard case .abandon(.violation(let violation)) = side.takeEvents().last else {
      Issue.record("no violation")
      return
    }
    #expect(violation.rule == .lengthOverLimit)
  }

  @Test func `messages in fragments are bounded in number and in bytes`() {
    let side = opened(.server) {
      $0.maxInFlight = 30
      $0.maxRequestBytes = 1000
    }
    for serial: UInt32 in 50..<80 {
      side.receive(
        RawFrame(.request, flags: .more, serial: serial, body: [UInt8](repeating: 1, count: 30)))
    }
    #expect(side.connection.inbound.count == 30)
    side.receive(
      RawFrame(.request, flags: .more, serial: 50, body: [UInt8](repeating: 1, count: 101)))
    #expect(side.takeFrames().map(\.tag) == [0x80_0000 | 429])
    // The place and the memory of the refused one are free again.
    side.receive(
      RawFrame(.request, flags: .more, serial: 51, body: [UInt8](repeating: 1, count: 100)))
    #expect(side.takeFrames() == [])
    side.receive(RawFrame(.push, flags: .more, serial: 1, body: [UInt8](repeating: 1, count: 100)))
    #expect(side.connection.isOpen == false)
  }

  @Test func `a peer that sends, but answers no ping, makes nothing grow`() {
    let side = opened(.client) { $0.heartbeatInterval = 200_000_000 }
    var now: Int64 = 0
    for _ in 0..<2000 {
      now += 10_000
      side.pass(to: .ms(now))
      side.receive(RawFrame(wire: 0x30))
    }
    #expect(side.connection.counters.pingsSent == 2000)
    #expect(side.connection.liveness.pingsUnanswered <= 100)
    #expect(side.connection.isOpen == true)
  }

  @Test func `a body that never arrives takes no memory`() {
    let side = opened(.server)
    side.receive(RawFrame(.request, tag: 1, serial: 50).headerBytes(length: 16_777_216))
    side.receive([1, 2, 3])
    #expect(side.connection.inbox.input.capacity < 4096)
    #expect(side.connection.isOpen == true)
  }

  @Test func `responses to unknown serials are passed on and change nothing`() {
    let side = opened(.client)
    for serial: UInt32 in 50..<60 { side.receive(RawFrame(.response, tag: 200, serial: serial)) }
    #expect(side.takeEvents().count == 10)
    #expect(side.isIdle)
  }

  @Test func `an answer to a request that waits to be sent takes it out`() {
    let side = opened(.client) { $0.encodeLimit = 1000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 2000))
    side.request(51, [1])
    side.receive(RawFrame(.response, tag: 200, serial: 51))
    side.isStalled = false
    #expect(side.takeFrames().map(\.serial) == [50])
  }

  @Test func `colliding serials work like others`() {
    let side = opened(.server)
    for index: UInt32 in 0..<1000 {
      side.receive(RawFrame(.request, tag: 1, serial: 64 + index << 20))
    }
    #expect(side.connection.inbound.count == 1000)
    for index: UInt32 in 0..<1000 { #expect(side.respond(64 + index << 20)) }
    #expect(side.connection.inbound.count == 0)
  }

  @Test func `garbage of any kind ends in a violation, an end or nothing`() {
    for seed: UInt64 in 0..<400 {
      var dice = Seeded(seed)
      let side = dice.below(2) == 0 ? opened(.server) : Side(ConnectionSettings(.client))
      for _ in 0..<20 {
        var frame = RawFrame(
          wire: UInt8(dice.below(dice.below(3) == 0 ? 64 : 13)), flags: UInt8(dice.below(4)),
          tag: UInt32(dice.below(3)),
          serial: [0, 1, 2, 3, 4, 50, 51, 0x8000_0032][dice.below(8)],
          body: dice.bytes(dice.below(40))
        ).bytes
        if dice.below(10) == 0 { frame[dice.below(frame.count)] ^= UInt8(1 << dice.below(8)) }
        if dice.below(20) == 0 { frame.removeLast() }
        side.receive(frame)
        side.flush()
      }
      side.receiveEnd()
      let events = side.takeEvents()
      #expect(events.filter(\.isAbandon).count == 1)
      #expect(events.filter(\.isClose).count <= 1)
      side.pass(to: .ms(100_000))
      #expect((events + side.takeEvents()).filter(\.isClose).count == 1)
    }
  }
}

extension Event {
  var isAbandon: Bool {
    if case .abandon = self { true } else { false }
  }

  var isClose: Bool {
    if case .close = self { true } else { false }
  }
}
