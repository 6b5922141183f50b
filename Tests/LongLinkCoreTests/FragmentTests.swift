// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

@Suite struct FragmentTests {
  static let sizes = [0, 1, 65_535, 65_536, 65_537, 131_072, 131_073, 3_000_000]

  @Test(arguments: sizes, [Cutting.whole, .random])
  func `a body of any size arrives as it was sent, both ways`(size: Int, cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting, seed: UInt64(size))
    var dice = Seeded(UInt64(size))
    let (up, down) = (dice.bytes(size), dice.bytes(size))
    pair.client.request(50, type: 7, up)
    pair.server.request(0x8000_0032, type: 8, down)
    pair.exchange()
    #expect(requests(pair.server) == [.request(50, type: 7, body: up)])
    #expect(requests(pair.client) == [.request(0x8000_0032, type: 8, body: down)])
    pair.server.respond(50, down)
    pair.client.respond(0x8000_0032, up)
    pair.client.push(9, up)
    pair.server.push(10, down)
    pair.exchange()
    #expect(pair.client.takeEvents().contains(.response(50, code: 200, body: down)))
    #expect(pair.server.takeEvents().contains(.response(0x8000_0032, code: 200, body: up)))
    #expect(pair.client.isIdle && pair.server.isIdle)
    #expect(pair.client.connection.outbox.kept.bytes == 0)
  }

  @Test func `a payload of one fragment goes in one piece, whatever its metadata`() {
    let side = opened(.client)
    let body = [UInt8](repeating: 5, count: 65_536)
    side.request(50, metadata: [0x08, 1, 0x10, 2, 0x10, 2], body)
    let frames = side.takeFrames()
    #expect(frames.map(\.body.count) == [65_544] && frames.map(\.flags) == [2])
    let server = opened(.server)
    for frame in frames { server.receive(frame) }
    #expect(
      server.takeEvents() == [
        .request(50, type: 1, metadata: [0x08, 1, 0x10, 2, 0x10, 2], body: body)
      ])
  }

  @Test func `the metadata is in the first fragment only`() {
    let side = opened(.client)
    let body = [UInt8](repeating: 5, count: 65_537)
    side.request(50, metadata: [0x08, 1, 0x10, 2, 0x10, 2], body)
    let frames = side.takeFrames()
    #expect(frames.map(\.body.count) == [65_536, 9])
    #expect(frames.map(\.flags) == [3, 0])
    let server = opened(.server)
    for frame in frames { server.receive(frame) }
    #expect(
      server.takeEvents() == [
        .request(50, type: 1, metadata: [0x08, 1, 0x10, 2, 0x10, 2], body: body)
      ])
  }

  @Test func `without the feature a large body goes whole`() {
    let pair = ConnectionPair(client: ConnectionSettings(.client) { $0.features = [] })
    let body = [UInt8](repeating: 5, count: 1_000_000)
    pair.client.request(50, body)
    pair.client.flush()
    #expect(RawFrame.parse(pair.client.wire).frames.count == 1)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.request(50, type: 1, body: body)])
  }

  @Test func `small frames and pings pass a large body`() {
    let pair = ConnectionPair()
    let body = [UInt8](repeating: 5, count: 4_000_000)
    pair.client.request(50, body)
    pair.client.request(51, [1])
    _ = pair.client.connection.ping(at: pair.now)
    pair.client.push(3, [2])
    let frames = pair.client.takeFrames()
    let place = { (kind: FrameKind, serial: UInt32) in
      frames.firstIndex { $0.kind == kind.rawValue && $0.serial == serial }!
    }
    #expect(frames.count > 60)
    #expect(place(.request, 51) < 5)
    #expect(place(.ping, 0) < 5)
    #expect(place(.push, 1) < 5)
    #expect(frames.allSatisfy { $0.body.count <= 65_536 })
  }

  @Test func `large bodies take turns`() {
    let side = opened(.client)
    side.request(50, [UInt8](repeating: 1, count: 1_000_000))
    side.request(51, [UInt8](repeating: 2, count: 1_000_000))
    side.request(52, [UInt8](repeating: 3, count: 1_000_000))
    let serials = side.takeFrames().map(\.serial)
    // Whatever window of the stream is looked at, no message is more than a few fragments ahead.
    var counts: [UInt32: Int] = [:]
    for serial in serials.dropLast(10) {
      counts[serial, default: 0] += 1
      let (least, most) = (counts.values.min()!, counts.values.max()!)
      #expect(counts.count < 3 || most - least <= 3)
    }
  }

  @Test(arguments: [Cutting.whole, .random])
  func `pushes do not mix, whatever their sizes`(cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting, seed: 4)
    let sizes = [200_000, 10, 300_000, 70_000, 0, 5, 65_537, 1]
    var dice = Seeded(5)
    let bodies = sizes.map { dice.bytes($0) }
    for (index, body) in bodies.enumerated() {
      pair.client.push(UInt32(index), body)
      pair.server.push(UInt32(index), body)
    }
    pair.client.request(50, [UInt8](repeating: 9, count: 400_000))
    pair.exchange()
    let expected = bodies.enumerated().map { Event.push(type: UInt32($0), body: $1) }
    #expect(pair.server.takeEvents().filter(\.isPush) == expected)
    #expect(pair.client.takeEvents().filter(\.isPush) == expected)
    #expect(pair.client.isIdle && pair.server.connection.outbox.isEmpty)
  }

  @Test func `a broadcast waits for the push before it`() {
    let pair = ConnectionPair()
    pair.server.push(1, [UInt8](repeating: 1, count: 200_000))
    let frame = RawFrame(.push, tag: 2, serial: 1, body: [2]).bytes
    pair.server.connection.push(2, [2], encoded: frame)
    pair.server.connection.push(3, [UInt8](repeating: 3, count: 70_000), encoded: [])
    pair.exchange()
    pair.server.connection.push(2, [2], encoded: frame)
    pair.exchange()
    let events = pair.client.takeEvents()
    #expect(
      events == [
        .push(type: 1, body: [UInt8](repeating: 1, count: 200_000)), .push(type: 2, body: [2]),
        .push(type: 3, body: [UInt8](repeating: 3, count: 70_000)), .push(type: 2, body: [2]),
      ])
  }

  @Test func `a message too large for the limit is refused once and its rest dropped`() {
    let side = opened(.server) { $0.maxBody = 100 }
    let piece = [UInt8](repeating: 1, count: 60)
    let fragment = RawFrame(.request, flags: .more, tag: 1, serial: 50, body: piece)
    side.receive(fragment, fragment, fragment)
    side.receive(RawFrame(.request, tag: 1, serial: 50, body: [1]))
    let refusals = side.takeFrames()
    #expect(refusals.map(\.tag) == [0x80_0000 | 413])
    #expect(side.takeEvents() == [])
    #expect(side.connection.inbound.count == 0)
    side.receive(RawFrame(.request, tag: 1, serial: 50, body: [1]))
    #expect(side.takeEvents() == [.request(50, type: 1, body: [1])])
  }

  @Test func `a sender that is refused midway stops and cancels`() {
    let pair = ConnectionPair(server: ConnectionSettings(.server) { $0.maxRequestBytes = 100_000 })
    pair.client.room = 100_000
    pair.client.request(50, [UInt8](repeating: 1, count: 8_000_000))
    pair.exchange()
    let events = pair.client.takeEvents()
    guard case .response(50, code: 429, refused: true, _, _) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(pair.client.connection.counters.cancelsSent == 1)
    #expect(pair.server.isIdle, "nothing is left of the refused request")
    #expect(pair.server.connection.counters.droppedUnknownSerials == 0)
    pair.client.request(51, [1])
    pair.exchange()
    #expect(pair.server.takeEvents() == [.request(51, type: 1, body: [1])])
  }

  @Test func `an unexpected response is not collected`() {
    let side = opened(.client)
    side.request(50)
    _ = side.takeFrames()
    let piece = [UInt8](repeating: 1, count: 600)
    for serial: UInt32 in 60..<2000 {
      side.receive(RawFrame(.response, flags: .more, tag: 200, serial: serial, body: piece))
    }
    #expect(side.isIdle)
    side.receive(RawFrame(.response, flags: .more, tag: 200, serial: 50, body: [1]))
    #expect(!side.isIdle)
    // Given up in the middle: what still comes is nobody's.
    #expect(side.cancel(50) == false)
    #expect(side.isIdle)
    side.receive(RawFrame(.response, flags: .more, tag: 200, serial: 50, body: [2]))
    #expect(side.isIdle)
    side.receive(RawFrame(.response, tag: 200, serial: 50, body: [3]))
    #expect(side.takeEvents() == [.response(50, code: 200, body: [3])])
    #expect(side.connection.isOpen == true)
  }

  private func requests(_ side: Side) -> [Event] {
    side.takeEvents().filter { event in
      if case .request = event { true } else { false }
    }
  }
}

extension Event {
  var isPush: Bool {
    if case .push = self { true } else { false }
  }
}
