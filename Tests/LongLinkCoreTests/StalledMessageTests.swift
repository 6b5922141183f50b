// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Messages in fragments whose next one does not come.
@Suite struct StalledMessageTests {
  private static func piece(
    _ kind: FrameKind, _ serial: UInt32, last: Bool = false, tag: UInt32 = 1
  ) -> RawFrame {
    RawFrame(kind, flags: last ? [] : .more, tag: tag, serial: serial, body: [1, 2, 3])
  }

  /// The peer shows life all the time.
  private static func pass(_ side: Side, to end: Int64) {
    while side.now < .ms(end) {
      side.pass(to: min(.ms(end), side.now + 5_000_000_000))
      side.receive(RawFrame(wire: 0x30))
    }
  }

  @Test func `a request is refused, and its rest is dropped`() {
    let side = opened(.server)
    side.receive(Self.piece(.request, 50), Self.piece(.request, 51))
    Self.pass(side, to: 40_000)
    side.receive(Self.piece(.request, 51))
    #expect(side.connection.inbound.count == 2)
    Self.pass(side, to: 75_000)
    #expect(
      side.takeFrames().filter { $0.kind == 1 }.map { [$0.serial, $0.tag] }
        == [[50, 0x80_0000 | 408]])
    #expect(side.connection.requestBytes == 6)
    #expect(side.connection.counters.stalledMessages == 1)
    side.receive(Self.piece(.request, 51, last: true))
    // What still comes of the first is no request of its own, however late.
    Self.pass(side, to: 300_000)
    side.receive(Self.piece(.request, 50), Self.piece(.request, 50, last: true))
    let requests = side.takeEvents().filter { if case .request = $0 { true } else { false } }
    #expect(requests == [.request(51, type: 1, body: [1, 2, 3, 1, 2, 3, 1, 2, 3])])
    // Then its serial may be used again.
    side.receive(Self.piece(.request, 50, last: true))
    #expect(side.connection.inbound.count == 2)
  }

  @Test func `a push ends the connection, since none can pass it`() {
    let side = opened(.client)
    side.receive(Self.piece(.push, 1))
    Self.pass(side, to: 75_000)
    guard case .abandon(.violation(let violation)) = side.takeEvents().last(where: \.isAbandon)
    else {
      Issue.record("nothing has ended it")
      return
    }
    #expect(violation.rule == .frameTimeout)
  }

  @Test func `a response waits for as long as its caller does`() {
    let side = opened(.client)
    side.request(50)
    side.receive(Self.piece(.response, 50, tag: 200))
    Self.pass(side, to: 600_000)
    side.receive(Self.piece(.response, 50, last: true, tag: 200))
    #expect(side.takeEvents().contains(.response(50, code: 200, body: [1, 2, 3, 1, 2, 3])))
  }

  @Test func `a peer whose bytes this side does not read is not blamed for them`() {
    let side = opened(.server) { $0.maxUnread = 600_000 }
    side.receive(Self.piece(.request, 50))
    for _ in 0..<40 { side.push(1, [UInt8](repeating: 7, count: 10_000)) }
    // The peer takes some of it now and then.
    for second: Int64 in 1...100 {
      side.room = side.wire.count + 500
      side.flush()
      side.elapse(to: .ms(second * 1_000))
    }
    let isHeld = side.connection.holdsReading
    #expect(isHeld)
    side.room = .max
    side.flush()
    Self.pass(side, to: 155_000)
    #expect(side.connection.counters.stalledMessages == 0)
    Self.pass(side, to: 175_000)
    #expect(side.connection.counters.stalledMessages == 1)
  }

  @Test func `refusals that end the connection leave no timer`() {
    let side = opened(.server) { $0.maxUnread = 10 }
    side.receive(Self.piece(.request, 50), Self.piece(.request, 51), Self.piece(.request, 52))
    Self.pass(side, to: 40_000)
    side.receive(Self.piece(.request, 53))
    side.isStalled = true
    Self.pass(side, to: 75_000)
    #expect(side.takeEvents().last == .close(.unreadOutput))
    #expect(side.connection.deadline == .distantFuture)
  }

  @Test func `an idle connection is not woken for messages`() {
    let side = opened(.server)
    side.receive(Self.piece(.request, 50))
    #expect(side.connection.timers[.message] == .ms(60_000))
    side.receive(Self.piece(.request, 50, last: true))
    #expect(side.connection.timers[.message] == .distantFuture)
  }
}
