// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// The bounds on frames, on the first of them, and on pings.
@Suite struct TimeoutTests {
  private let seconds: Int64 = 1_000_000_000

  private func rule(_ side: Side) -> Violation.Rule? {
    for case .abandon(.violation(let violation)) in side.takeEvents() { return violation.rule }
    return nil
  }

  @Test(arguments: 1..<40)
  func `a frame that stops anywhere is late at its bound and not before`(length: Int) {
    let side = opened(.server)
    let frame = RawFrame(.request, tag: 1, serial: 50, body: [UInt8](repeating: 1, count: 30))
    side.pass(to: .ms(500))
    side.receive(Array(frame.bytes.prefix(length)))
    side.pass(to: .start + (30 * seconds + 499_999_999))
    #expect(rule(side) == nil)
    side.pass(to: .ms(30_500))
    #expect(rule(side) == .frameTimeout)
  }

  @Test func `a frame that dribbles in is late all the same`() {
    let side = opened(.server)
    let bytes = RawFrame(.push, tag: 1, serial: 1, body: [UInt8](repeating: 1, count: 50)).bytes
    for (index, byte) in bytes.prefix(30).enumerated() {
      side.pass(to: .ms(Int64(index) * 1000))
      side.receive([byte])
    }
    side.pass(to: .ms(29_999))
    #expect(rule(side) == nil)
    side.pass(to: .ms(30_000))
    #expect(rule(side) == .frameTimeout)
  }

  @Test func `each frame has its own time`() {
    let side = opened(.server)
    let bytes = RawFrame(.push, tag: 1, serial: 1, body: [1]).bytes
    var now: Int64 = 0
    // Each read ends one frame and begins the next.
    side.receive(Array(bytes.prefix(5)))
    for _ in 0..<10 {
      now += 29_000
      side.pass(to: .ms(now))
      side.receive(Array(bytes.dropFirst(5) + bytes.prefix(5)))
    }
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(now + 29_999))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(now + 30_000))
    #expect(rule(side) == .frameTimeout)
  }

  @Test func `no time runs between two frames`() {
    let side = opened(.server) { $0.frameTimeout = 1_000_000_000 }
    side.receive(RawFrame(.push, tag: 1, serial: 1))
    side.pass(to: .ms(20_000))
    side.receive(RawFrame(.push, tag: 1, serial: 1))
    side.pass(to: .ms(22_000))
    #expect(side.connection.isOpen == true)
  }

  @Test func `a frame's time stands still while this side does not read`() {
    let side = opened(.server) {
      $0.encodeLimit = 10_000
      $0.frameTimeout = 1_000_000_000
    }
    side.isStalled = true
    side.receive(Array(RawFrame(.push, tag: 1, serial: 1).bytes.prefix(5)))
    side.push(1, [UInt8](repeating: 1, count: 20_000))
    side.pass(to: .ms(10_000))
    #expect(side.connection.isOpen == true)
    side.isStalled = false
    side.flush()
    side.pass(to: .ms(10_999))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(11_000))
    #expect(rule(side) == .frameTimeout)
  }

  @Test func `a silent client is sent away`() {
    let side = Side(ConnectionSettings(.server) { $0.handshakeTimeout = 10_000_000_000 })
    side.receive([0])
    side.pass(to: .ms(9999))
    #expect(rule(side) == nil)
    side.pass(to: .ms(10_000))
    #expect(rule(side) == .firstFrameTimeout)
    #expect(side.takeFrames().map(\.kind) == [FrameKind.goaway.rawValue])
  }

  @Test func `the connection to a server that does not greet is closed`() {
    let side = Side(ConnectionSettings(.client))
    side.flush()
    side.receive(RawFrame(.ping))
    side.pass(to: .ms(9999))
    #expect(side.connection.isClosed == false)
    side.pass(to: .ms(10_000))
    #expect(
      side.takeEvents().suffix(2) == [.abandon(.handshakeTimeout), .close(.handshakeTimeout)])
  }

  @Test func `a greeting in time stops the timer`() {
    let pair = ConnectionPair()
    pair.pass(25_000)
    #expect(pair.client.connection.isOpen && pair.server.connection.isOpen)
  }

  @Test func `a hundred pings in ten seconds are answered and no more`() {
    let side = opened(.client)
    for number in 0..<100 {
      side.pass(to: .ms(Int64(number) * 100))
      side.receive(RawFrame(.ping, body: [UInt8(number)]))
    }
    #expect(side.takeFrames().filter { $0.kind == 9 }.map(\.body) == (0..<100).map { [UInt8($0)] })
    // The first came exactly ten seconds ago and does not count any more; the second does.
    side.pass(to: .ms(10_000))
    side.receive(RawFrame(.ping))
    #expect(rule(side) == nil)
    side.receive(RawFrame(.ping))
    #expect(rule(side) == .tooManyPings)
  }
}
