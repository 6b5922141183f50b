// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

@Suite struct CancelTests {
  @Test func `a request that was not yet sent is withdrawn without a trace`() {
    let pair = ConnectionPair()
    pair.client.request(50, [1])
    pair.client.request(51, [2])
    pair.client.request(52, [3])
    #expect(pair.client.cancel(51))
    pair.exchange()
    #expect(
      pair.server.takeEvents() == [
        .request(50, type: 1, body: [1]), .request(52, type: 1, body: [3]),
      ])
    #expect(pair.client.connection.counters.cancelsSent == 0)
  }

  @Test func `requests after a withdrawn one have the ordinals that the peer counts`() {
    let pair = ConnectionPair()
    for serial: UInt32 in 50..<60 { pair.client.request(serial) }
    #expect(pair.client.cancel(50))
    #expect(pair.client.cancel(53))
    #expect(pair.client.cancel(59))
    pair.exchange()
    for serial: UInt32 in 60..<63 { pair.client.request(serial) }
    #expect(pair.client.cancel(61))
    pair.exchange()
    let sent = pair.server.takeEvents().map { event -> UInt32 in
      if case .request(let serial, _, _, _) = event { serial } else { 0 }
    }
    #expect(sent == [51, 52, 54, 55, 56, 57, 58, 60, 62])
    for accepted in 0...12 {
      let last = pair.client.connection.ordinals.ordinal(ofAccepted: UInt64(accepted))
      let known = sent.filter { pair.client.placements[$0]!.ordinal <= last }
      #expect(known == Array(sent.prefix(accepted)))
    }
    #expect(pair.client.connection.ordinals.ordinal(ofAccepted: .max) >= 13)
  }

  @Test func `very many withdrawn requests never make an accepted one look refused`() {
    let side = opened(.client)
    var dice = Seeded(11)
    var sent: [UInt32] = []
    for serial: UInt32 in 50..<8050 {
      side.request(serial)
      if dice.below(2) == 0 {
        #expect(side.cancel(serial))
      } else {
        sent.append(serial)
      }
      if dice.below(20) == 0 { _ = side.takeFrames() }
    }
    for accepted in stride(from: 0, through: sent.count, by: 37) {
      let last = side.connection.ordinals.ordinal(ofAccepted: UInt64(accepted))
      let known = sent.filter { side.placements[$0]!.ordinal <= last }
      #expect(known.starts(with: sent.prefix(accepted)))
      // The recent ones are told exactly.
      if accepted > sent.count - 400 { #expect(known.count == accepted) }
    }
  }

  @Test(arguments: [true, false])
  func `a cancel of a sent request is sent to the peer if that is asked for`(notifies: Bool) {
    let pair = ConnectionPair()
    pair.client.request(50)
    pair.exchange()
    _ = pair.server.takeEvents()
    #expect(!pair.client.cancel(50, notifying: notifies))
    pair.exchange()
    #expect(pair.server.takeEvents() == (notifies ? [.cancel(50)] : []))
    #expect(pair.server.respond(50) == !notifies)
    pair.exchange()
    #expect(pair.client.takeEvents() == (notifies ? [] : [.response(50, code: 200, body: [])]))
  }

  @Test(arguments: [true, false])
  func `a partly sent request is sent no further and a cancel is always sent`(
    notifies: Bool
  ) {
    let pair = ConnectionPair()
    pair.client.isStalled = true
    pair.client.request(50, [UInt8](repeating: 1, count: 8_000_000))
    pair.client.isStalled = false
    let first = pair.client.connection.outbox.nextBytes
    pair.client.connection.wrote(first.count, at: pair.now)
    pair.server.receive(first)
    #expect(!pair.server.isIdle)
    #expect(!pair.client.cancel(50, notifying: notifies))
    #expect(pair.client.connection.outbox.kept.bytes == 0)
    pair.exchange()
    #expect(pair.server.takeEvents() == [])
    #expect(pair.server.isIdle)
    #expect(pair.client.connection.counters.cancelsSent == 1)
  }

  @Test func `a request that is held back completely is withdrawn`() {
    let side = opened(.client) { $0.encodeLimit = 1000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 2000))
    #expect(side.request(51, [2]) == .keptBack)
    #expect(side.request(52, [3]) == .keptBack)
    #expect(side.cancel(51))
    side.isStalled = false
    #expect(side.takeFrames().map(\.serial) == [50, 52])
    #expect(side.placements[52]?.ordinal == 2)
  }

  @Test func `frames that waited behind a withdrawn request are sent automatically`() {
    let side = opened(.client) { $0.encodeLimit = 1000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 2000))
    side.flush()
    #expect(side.request(51, [2]) == .keptBack)
    #expect(side.cancel(50))
    #expect(side.connection.wantsToWrite == true)
    side.isStalled = false
    #expect(side.takeFrames().map(\.serial) == [51])
    #expect(side.connection.ordinals.ordinal(ofAccepted: 0) < side.placements[51]!.ordinal)
  }

  @Test func `a peer is not blamed for bytes that were withdrawn`() {
    let side = opened(.client) {
      $0.writingTimeout = 1_000_000_000
      $0.heartbeatInterval = 100_000_000_000
    }
    side.isStalled = true
    side.request(50, [1])
    side.flush()
    #expect(side.cancel(50))
    side.pass(to: .ms(20_000))
    #expect(side.connection.isOpen == true)
  }

  @Test func `a cancel that crosses the answer is dropped and counted`() {
    let pair = ConnectionPair()
    pair.client.request(50)
    pair.exchange()
    pair.server.respond(50)
    #expect(!pair.client.cancel(50))
    pair.exchange()
    #expect(pair.server.takeEvents().last == .dropped(.unknownSerial))
    #expect(pair.client.takeEvents() == [.response(50, code: 200, body: [])])
  }

  @Test func `the rest of a large answer is not sent once it is cancelled`() {
    let pair = ConnectionPair()
    pair.client.request(50)
    pair.exchange()
    pair.server.isStalled = true
    pair.server.respond(50, [UInt8](repeating: 1, count: 8_000_000))
    #expect(!pair.client.cancel(50))
    pair.exchange()
    _ = pair.server.takeEvents()
    pair.server.isStalled = false
    #expect(pair.server.connection.outbox.kept.bytes == 0)
    #expect(pair.server.takeFrames().count < 6)
    #expect(pair.server.connection.inbound.count == 0)
  }

  @Test func `kept-back empty frames leave as soon as there is room`() {
    let side = opened(.client) { $0.encodeLimit = 1000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 2000))
    side.request(51)
    side.request(52)
    side.isStalled = false
    #expect(side.takeFrames().map(\.serial) == [50, 51, 52])
    #expect(side.connection.outbox.isEmpty && side.connection.outbox.totalBytes == 0)
  }
}
