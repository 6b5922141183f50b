// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// What comes of an exchange with items, whichever way it goes and ends.
@Suite struct StreamTests {
  @Test(arguments: Cutting.allCases)
  func `items of both sides arrive whole, in order, and before the response`(cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting, seed: 7)
    let up: [[UInt8]] = [[], [1], [UInt8](repeating: 2, count: 70_000)]
    let down: [[UInt8]] = [[UInt8](repeating: 3, count: 65_536), [], [4]]
    pair.client.takesItems = true
    pair.server.takesItems = true
    pair.client.stream(50, credit: 65_536, items: true, [9])
    pair.exchange()
    for item in up { write(item, pair.client, pair) }
    pair.client.endItems(50)
    for item in down { write(item, pair.server, pair) }
    pair.exchange()
    pair.server.respond(50, [5])
    pair.exchange()
    let request = Event.request(50, type: 1, metadata: [0x30, 0x80, 0x80, 4, 0x38, 1], body: [9])
    #expect(
      pair.server.takeEvents().filter { !$0.isItemSent }
        == [request] + up.map { .item(50, body: $0) } + [.end(50)])
    #expect(
      pair.client.takeEvents().filter { !$0.isItemSent }
        == down.map { .item(50, body: $0) } + [.response(50, code: 200, body: [5])])
    #expect(pair.client.isIdle && pair.server.isIdle)
    #expect(pair.server.connection.counters.itemsReceived == 3)
    #expect(pair.server.connection.counters.itemsSent == 3)
    #expect(pair.server.connection.held.used == 0 && pair.client.connection.held.used == 0)
  }

  private func write(_ item: [UInt8], _ side: Side, _ pair: ConnectionPair) {
    let placement = side.write(50, item)
    pair.exchange()
    #expect(placement != .ended && !side.sending.contains(50))
  }

  @Test func `the server opens streams as well`() {
    let pair = ConnectionPair()
    let serial: UInt32 = 0x8000_0032
    pair.server.stream(serial, credit: 4_096, items: true)
    pair.exchange()
    #expect(pair.client.connection.streams.shape(of: serial) == [.requestItems, .responseItems])
    pair.server.write(serial, [1])
    pair.client.write(serial, [2])
    pair.server.endItems(serial)
    pair.exchange()
    pair.client.respond(serial)
    pair.exchange()
    #expect(
      pair.client.takeEvents().dropFirst() == [.item(serial, body: [1]), .end(serial)])
    #expect(
      pair.server.takeEvents() == [
        .item(serial, body: [2]), .response(serial, code: 200, body: []),
      ])
  }

  @Test func `an early response stops the items, without an end or a cancel`() {
    // Timeline 1.
    let pair = ConnectionPair()
    pair.client.stream(50, items: true)
    pair.exchange()
    for number: UInt8 in 1...3 { #expect(pair.client.write(50, [number]) == .encoded) }
    let items = pair.client.takeFrames()
    pair.server.receive(items[0])
    pair.server.respond(50)
    pair.server.receive(items[1], items[2])
    #expect(
      pair.server.takeEvents().dropFirst() == [
        .item(50, body: [1]), .dropped(.lateItem), .dropped(.lateItem),
      ])
    pair.exchange()
    #expect(pair.client.takeEvents() == [.response(50, code: 200, body: [])])
    #expect(pair.client.write(50, [4]) == .ended)
    pair.client.endItems(50)
    #expect(pair.client.takeFrames() == [])
    #expect(pair.client.connection.counters.cancelsSent == 0)
  }

  @Test func `an early response also stops an item that has been begun`() {
    let side = opened(.client)
    side.stream(50, items: true)
    #expect(side.write(50, [UInt8](repeating: 1, count: 200_000)) == .waiting)
    #expect(side.takeFrames().map(\.body.count).dropFirst() == [65_520])
    side.receive(RawFrame(.response, tag: 1000, serial: 50))
    side.receive(credit(100_000, 50))
    #expect(
      side.takeEvents() == [.response(50, code: 1000, body: []), .dropped(.lateCredit)])
    #expect(side.takeFrames() == [] && side.isIdle)
    #expect(side.connection.held.used == 0)
  }

  @Test func `an early response in fragments stops the items with its first one`() {
    let side = opened(.client)
    side.stream(50, credit: 4_096, items: true)
    side.write(50, [UInt8](repeating: 1, count: 200_000))
    _ = side.takeFrames()
    side.receive(RawFrame(.response, flags: .more, tag: 200, serial: 50, body: [1]))
    #expect(side.write(50, [2]) == .ended)
    side.receive(
      credit(100_000, 50), RawFrame(.item, serial: 50),
      RawFrame(.response, tag: 200, serial: 50, body: [2]))
    #expect(
      side.takeEvents() == [
        .dropped(.lateItem), .dropped(.lateCredit), .response(50, code: 200, body: [1, 2]),
      ])
    #expect(side.takeFrames() == [])
  }

  @Test func `a request that is answered before it was sent whole is cancelled, and has no items`()
  {
    let side = opened(.client)
    side.room = 100_000
    side.stream(50, items: true, [UInt8](repeating: 1, count: 300_000))
    #expect(side.write(50, [2]) == .waiting)
    side.endItems(50)
    side.flush()
    side.receive(RawFrame(.response, tag: 0x80_0000 | 413, serial: 50))
    side.room = .max
    let frames = side.takeFrames()
    #expect(frames.last?.kind == FrameKind.cancel.rawValue)
    #expect(frames.dropLast().allSatisfy { $0.kind == FrameKind.request.rawValue })
    #expect(side.takeFrames() == [])
  }

  @Test func `what crosses a cancel is dropped on both sides`() {
    // Timeline 2.
    let pair = ConnectionPair()
    pair.client.stream(50, credit: 4_096, items: true)
    pair.client.write(50, [UInt8](repeating: 1, count: 65_000))
    pair.exchange()
    pair.server.write(50, [2])
    pair.server.take(50)
    #expect(pair.client.cancel(50) == false)
    pair.server.respond(50)
    pair.exchange()
    #expect(pair.client.connection.counters.lateItems == 1)
    #expect(pair.client.connection.counters.lateCredits == 1)
    #expect(pair.client.takeEvents().last == .response(50, code: 200, body: []))
    #expect(pair.client.awaited.isEmpty, "nobody waits for that response")
    #expect(pair.server.connection.counters.droppedUnknownSerials == 1)
    #expect(pair.client.connection.isOpen == true && pair.server.connection.isOpen == true)
  }

  @Test func `credit that crosses an end is dropped`() {
    // Timeline 3.
    let side = opened(.client)
    side.stream(50, items: true)
    side.endItems(50)
    side.receive(credit(1_000, 50))
    #expect(side.takeEvents() == [.dropped(.lateCredit)])
    side.endItems(50)
    #expect(side.takeFrames().map(\.kind) == [0, 3], "one end")
    #expect(side.write(50, [1]) == .ended)
  }

  @Test func `the end follows an item that had to wait`() {
    let side = opened(.client)
    side.stream(50, items: true)
    side.write(50, [UInt8](repeating: 1, count: 65_537))
    side.endItems(50)
    #expect(side.takeFrames().map(\.kind) == [0, 2])
    side.receive(credit(1_000, 50))
    #expect(side.takeFrames().map(\.kind) == [2, 3])
    #expect(side.takeEvents() == [.itemSent(50)])
  }

  @Test func `nothing of a stream is sent before its request is whole`() {
    let pair = ConnectionPair()
    pair.client.room = 50_000
    pair.client.stream(50, credit: 4_096, items: true, [UInt8](repeating: 1, count: 500_000))
    #expect(pair.client.write(50, [2]) == .waiting)
    pair.client.endItems(50)
    pair.exchange()
    let events = pair.server.takeEvents()
    #expect(events.count == 3 && Array(events.suffix(2)) == [.item(50, body: [2]), .end(50)])
  }

  @Test(arguments: [FrameKind.item, .credit])
  func `a responder that does not wait for the whole request breaks a rule`(kind: FrameKind) {
    let side = opened(.client)
    side.isStalled = true
    side.stream(50, credit: 4_096, items: true, [UInt8](repeating: 1, count: 500_000))
    side.receive(kind == .item ? RawFrame(.item, serial: 50) : credit(1_000, 50))
    #expect(side.takeEvents().compactMap(\.violated) == [.itemNotExpected])
  }

  @Test func `an error in band comes behind the items, and what is incomplete is discarded`() {
    let pair = ConnectionPair()
    pair.client.stream(50, credit: 65_536)
    pair.exchange()
    _ = pair.server.takeEvents()
    pair.server.write(50, [1])
    #expect(pair.server.write(50, [UInt8](repeating: 2, count: 100_000)) == .waiting)
    pair.exchange()
    pair.server.respond(50, code: 1_000, [3])
    pair.exchange()
    #expect(
      pair.client.takeEvents() == [
        .item(50, body: [1]), .response(50, code: 1_000, body: [3]),
      ])
    #expect(pair.client.connection.held.used == 0 && pair.server.connection.held.used == 0)
  }

  @Test func `a connection that ends without a response ends no stream well`() {
    let client = opened(.client)
    client.stream(50, credit: 65_536)
    let server = opened(.server)
    for frame in client.takeFrames() { server.receive(frame) }
    server.write(50, [1, 2, 3])
    server.write(50, [UInt8](repeating: 4, count: 3_000))
    server.respond(50)
    server.flush()
    let bytes = server.takeWire()
    for count in 0..<bytes.count {
      let side = opened(.client)
      side.stream(50, credit: 65_536)
      side.receive(Array(bytes.prefix(count)))
      side.receiveEnd()
      #expect(!side.takeEvents().contains(.response(50, code: 200, body: [])))
    }
  }

  @Test func `a stream whose terms are not agreed is a plain request`() {
    let side = opened(.server, features: [.metadata, .fragments])
    side.receive(
      RawFrame(.request, flags: .metadata, tag: 1, serial: 50, body: [0, 4, 0x30, 9, 0x38, 1]))
    #expect(side.connection.streams.shape(of: 50) == [])
    #expect(side.write(50, [1]) == .ended)
    #expect(side.respond(50))
  }

  @Test func `a refusal behind credit of its own has no mark`() {
    // Credit for the rest of a large item is granted before anybody reads the stream.
    let side = opened(.server)
    side.receive(streamRequest(50), streamRequest(51))
    for _ in 0..<2 {
      let part = [UInt8](repeating: 1, count: 30_000)
      side.receive(RawFrame(.item, flags: .more, serial: 50, body: part))
    }
    #expect(side.takeFrames().map(\.kind) == [FrameKind.credit.rawValue])
    side.respond(50, code: .malformed, refused: true)
    side.respond(51, code: .malformed, refused: true)
    #expect(side.takeFrames().map(\.tag) == [400, 0x80_0000 | 400])
    #expect(side.connection.counters.refused == 1)
  }
}

/// A request that announces items, and a credit frame.
func streamRequest(_ serial: UInt32) -> RawFrame {
  RawFrame(.request, flags: .metadata, tag: 1, serial: serial, body: [0, 2, 0x38, 1])
}

func credit(_ count: UInt32, _ serial: UInt32) -> RawFrame {
  RawFrame(.credit, serial: serial, body: RawFrame.big(count))
}

extension Event {
  var isItemSent: Bool {
    if case .itemSent = self { true } else { false }
  }

  var violated: Violation.Rule? {
    if case .abandon(.violation(let violation)) = self { violation.rule } else { nil }
  }
}
