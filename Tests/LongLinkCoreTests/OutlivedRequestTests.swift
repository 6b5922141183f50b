// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore

/// A request counts until it is answered and its handler has returned.
@Suite struct OutlivedRequestTests {
  @Test func `tables that many requests have made large are counted`() {
    let side = opened(.server)
    for serial: UInt32 in 50..<1_050 { side.receive(RawFrame(.request, serial: serial)) }
    for serial: UInt32 in 50..<1_050 { side.receive(RawFrame(.cancel, serial: serial)) }
    let held = side.connection.held
    #expect(held.open >= 50_000 && held.outlived == 0)
    HeldMemory.releaseRoom(of: &side.connection)
    #expect(side.connection.held.open == 0)
  }

  @Test func `a server keeps only those fields of a goaway that it uses`() {
    let side = opened(.server)
    side.connection.received(
      goaway: GoAway(
        code: 200, reason: String(repeating: "x", count: 60_000), requestsAccepted: 0,
        alternatives: Array(repeating: "", count: 30_000)))
    let kept = side.connection.goodbyes.ofPeer
    #expect(kept?.alternatives == [] && kept?.reason.utf8.count == 1_024)
  }

  private static func request(_ serial: UInt32, _ size: Int = 1) -> RawFrame {
    RawFrame(.request, tag: 1, serial: serial, body: [UInt8](repeating: 1, count: size))
  }

  private static func refused(_ side: Side) -> [UInt32] {
    side.takeFrames().filter { $0.kind == 1 && $0.tag == 0x80_0000 | 429 }.map(\.serial)
  }

  @Test func `a cancelled request counts until its handler has returned`() {
    let side = opened(.server) { $0.maxInFlight = 2 }
    side.isDeaf = true
    side.receive(Self.request(50), Self.request(51))
    side.receive(RawFrame(.cancel, serial: 50), RawFrame(.cancel, serial: 51))
    #expect(side.connection.inbound.count == 0)
    #expect(side.connection.inbound.outlived == 2)
    side.receive(Self.request(52))
    #expect(Self.refused(side) == [52])
    side.returnHandlers()
    side.receive(Self.request(53))
    #expect(Self.refused(side) == [])
    #expect(side.connection.inbound.count == 1)
  }

  @Test func `a handler that returns late does not answer the request that has its serial now`() {
    let side = opened(.server)
    side.isDeaf = true
    side.receive(Self.request(50, 100))
    let first = side.running[50]!
    side.receive(RawFrame(.cancel, serial: 50), Self.request(50, 10))
    let second = side.running[50]!
    #expect(second.number == first.number + 1)
    let isOwed = side.connection.respond(first, code: .ok, [1])
    #expect(!isOwed && side.takeFrames() == [])
    #expect(side.connection.inbound.outlived == 0 && side.connection.requestBytes == 10)
    let answers = (0..<2).map { side.connection.respond(second, code: .ok, [$0]) }
    #expect(answers == [true, false], "once")
    side.drain()
    #expect(side.takeFrames().map(\.body) == [[0]])
    #expect(side.connection.requestBytes == 0)
  }

  @Test(arguments: [InboundEnding.answered, .refused, .cancelled, .interrupted, .abandoned])
  func `the row of a request is there until it has ended and its handler has returned`(
    _ ending: InboundEnding
  ) {
    final class Work {}
    var table = InboundTable(serialMix: 1)
    table.begin(7)
    check(table, handled: 0, of: 1)
    table.complete(7, holding: 30)
    let id = InboundID(serial: 7, number: table.newest)
    let work = Work()
    let isKept = table.setPayload(work, of: id)
    let isMistaken = table.setPayload(Work(), of: InboundID(serial: 7, number: id.number + 1))
    let kept = table.payload(of: 7)
    #expect(isKept && !isMistaken && kept === work)
    check(table, handled: 1, of: 1)
    let numbers = (0..<2).map { _ in table.conclude(7, with: ending)?.number }
    #expect(numbers == [id.number, nil], "once")
    let isOutlived = ![.answered, .refused].contains(ending)
    check(table, handled: 0, of: 0, outlived: isOutlived ? 1 : 0)
    let left = [table.payload(ofOutlived: id), table.outlivedPayloads.first]
    #expect(left.allSatisfy { ($0 === work) == isOutlived })
    for _ in 0..<2 { table.handlerReturned(from: id) }
    check(table, handled: 0, of: 0)
  }

  @Test func `a number that begins anew is none that an older request has`() {
    final class Work {}
    var table = InboundTable(serialMix: 1)
    for serial: UInt32 in 7...9 { table.run(serial, holding: 30) }
    table.conclude(8, with: .answered)
    table.conclude(9, with: .cancelled)
    // As after 2³² requests, of which 1 runs, 2 was answered, and the handler of 3 runs.
    table.newest = .max
    let numbers = (10...12).map { (serial: UInt32) in
      table.run(serial, holding: 30)
      return table.newest
    }
    #expect(numbers == [2, 4, 5])
    check(table, handled: 4, of: 4, outlived: 1)
  }

  private func check(
    _ table: borrowing InboundTable, handled: Int, of count: Int, outlived: Int = 0
  ) {
    let found = (table.count, table.handled, table.outlived, table.bytes, table.outlivedBytes)
    #expect(found == (count, handled, outlived, 30 * (handled + outlived), 30 * outlived))
  }

  @Test func `however often requests are cancelled, handlers are never more than allowed`() {
    let side = opened(.server)
    side.isDeaf = true
    var handlers = 0
    for serial: UInt32 in 50..<20_050 {
      side.receive(Self.request(serial), RawFrame(.cancel, serial: serial))
      for case .request in side.takeEvents() { handlers += 1 }
      _ = side.takeFrames()
    }
    #expect(handlers == 1_024)
    #expect(side.connection.counters.refused == 20_000 - 1_024)
  }

  @Test func `a request answered at its deadline counts until its handler has returned`() {
    let side = opened(.server) { $0.maxInFlight = 1 }
    side.receive(Self.request(50, 700))
    side.outlive(50)
    #expect(side.respond(50, code: .deadlinePassed))
    _ = side.takeFrames()
    #expect(side.connection.held.used == 0)
    #expect(side.connection.held.outlived == 700 + HeldMemory.ofRequest)
    side.receive(Self.request(51))
    #expect(Self.refused(side) == [51])
    side.returnHandlers()
    #expect(side.connection.held.used == 0)
    #expect(side.connection.held.outlived == 0)
    side.receive(Self.request(52))
    #expect(Self.refused(side) == [])
  }

  @Test func `the handlers of a connection that has ended count until they return`() {
    let side = opened(.server)
    side.isDeaf = true
    side.receive(Self.request(50, 100), Self.request(51, 200))
    side.receiveEnd()
    #expect(side.connection.inbound.count == 0)
    #expect(side.connection.held.outlived == 300 + 2 * HeldMemory.ofRequest)
    side.returnHandlers()
    #expect(side.connection.held.outlived == 0)
  }

  @Test func `a peer that makes room by a cancel is not refused if the handler returns at once`() {
    let side = opened(.server) { $0.maxInFlight = 1 }
    side.receive(Self.request(50))
    _ = side.takeEvents()
    side.receive(RawFrame(.cancel, serial: 50), Self.request(51), RawFrame(.ping))
    #expect(
      side.takeEvents() == [.cancel(50), .request(51, type: 1, body: [1])])
    #expect(side.takeFrames().map(\.kind) == [9])
  }

  @Test func `a request that is not delivered does not count`() {
    let side = opened(.server)
    // Its metadata cannot be decoded, so that the connection ends in place of it.
    side.receive(RawFrame(.request, flags: .metadata, tag: 1, serial: 50, body: [0, 1, 0xFF, 9]))
    #expect(side.connection.isOpen == false)
    #expect(side.connection.inbound.outlived == 0)
    #expect(side.connection.held.outlived == 0)
  }
}

/// What the peer's requests, and what comes of its other messages, may hold.
@Suite struct RequestBytesTests {
  private static func piece(
    _ kind: FrameKind, _ serial: UInt32, _ size: Int, last: Bool = false, tag: UInt32 = 1
  ) -> RawFrame {
    RawFrame(
      kind, flags: last ? [] : .more, tag: tag, serial: serial,
      body: [UInt8](repeating: 1, count: size))
  }

  @Test func `bodies count until their handlers have returned`() {
    let side = opened(.server) { $0.maxRequestBytes = 1_000 }
    side.receive(Self.piece(.request, 50, 400, last: true))
    side.receive(Self.piece(.request, 51, 400), Self.piece(.request, 51, 100, last: true))
    #expect(side.takeFrames() == [])
    side.receive(Self.piece(.request, 52, 101, last: true))
    #expect(side.takeFrames().map(\.tag) == [0x80_0000 | 429])
    side.receive(Self.piece(.request, 53, 100, last: true))
    #expect(side.takeFrames() == [])
    #expect(side.respond(51))
    side.receive(Self.piece(.request, 54, 500, last: true))
    #expect(side.takeFrames().map(\.tag) == [200])
    #expect(side.connection.requestBytes == 1_000)
  }

  @Test func `metadata count as well`() {
    let side = opened(.server) { $0.maxRequestBytes = 100 }
    let block = [UInt8](repeating: 0, count: 0)
    let key: [UInt8] = [0, 92, 0x1A, 90] + [UInt8](repeating: 7, count: 90)
    side.receive(
      RawFrame(.request, flags: .metadata, tag: 1, serial: 50, body: key + block),
      RawFrame(.request, tag: 1, serial: 51, body: [UInt8](repeating: 1, count: 20)))
    #expect(side.takeFrames().map(\.serial) == [51])
  }

  @Test func `a client collects what it waits for, and bounds all else`() {
    let side = opened(.client) { $0.maxRequestBytes = 1_000 }
    side.request(50)
    _ = side.takeFrames()
    let own = Wire.firstSerial | Wire.serverBit
    side.receive(Self.piece(.request, own, 900))
    // An answer of more than the bound comes beside it.
    for _ in 0..<40 { side.receive(Self.piece(.response, 50, 100, tag: 200)) }
    side.receive(Self.piece(.request, own + 1, 101))
    #expect(side.takeFrames().map(\.tag) == [0x80_0000 | 429])
    side.receive(Self.piece(.response, 50, 100, last: true, tag: 200))
    let answered = side.takeEvents().contains {
      $0 == .response(50, code: 200, body: [UInt8](repeating: 1, count: 4_100))
    }
    #expect(answered)
    side.receive(Self.piece(.push, 1, 101))
    #expect(side.connection.isOpen == false)
  }

  @Test func `an evicted connection sends a goaway and frees its memory`() {
    let side = opened(.server)
    side.isDeaf = true
    side.receive(Self.piece(.request, 50, 60_000), Self.piece(.request, 51, 500, last: true))
    _ = side.takeEvents()
    side.connection.evict(at: side.now)
    side.drain()
    #expect(side.connection.held.outlived == 500 + HeldMemory.ofRequest)
    let goaway = side.takeFrames().last
    #expect(goaway?.kind == FrameKind.goaway.rawValue)
    #expect(side.takeEvents().contains(.abandon(.memoryLimit)))
    side.pass(to: .ms(2_000))
    #expect(side.connection.held.used == 0)
    #expect(side.takeEvents().last == .close(.memoryLimit))
  }

  @Test func `an evicted connection does not wait for a peer that does not read`() {
    let side = opened(.server)
    side.isStalled = true
    side.push(1, [UInt8](repeating: 1, count: 200_000))
    side.connection.evict(at: side.now)
    side.drain()
    #expect(side.takeEvents().last == .close(.memoryLimit))
  }
}
