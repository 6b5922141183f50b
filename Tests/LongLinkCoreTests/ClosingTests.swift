// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct ClosingTests {
  @Test func `a goaway counts accepted requests, and later ones are refused`() {
    let pair = ConnectionPair()
    pair.client.request(50)
    pair.client.request(51)
    pair.exchange()
    pair.server.connection.goAway(
      code: .draining, reason: "restart", spread: 5000, retryAfter: 10, alternatives: ["b:9"])
    pair.client.request(52)
    pair.server.drain()
    pair.exchange()
    let goaway = GoAway(
      code: 503, reason: "restart", requestsAccepted: 2, spread: 5000, retryAfter: 10,
      alternatives: ["b:9"])
    let events = pair.client.takeEvents()
    #expect(events.first == .leaving(goaway))
    guard case .response(52, code: 503, refused: true, nil, _) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(
      pair.client.connection.ordinals.ordinal(ofAccepted: 2) < pair.client.placements[52]!.ordinal)
    // What was accepted finishes.
    pair.server.respond(50)
    pair.server.respond(51)
    pair.exchange()
    #expect(pair.client.takeEvents().count == 2)
    // Once is enough.
    pair.server.connection.goAway(
      code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    #expect(pair.server.takeFrames() == [])
  }

  @Test func `requests over the concurrency limit are refused and counted as accepted`() {
    let pair = ConnectionPair(server: ConnectionSettings(.server) { $0.maxInFlight = 2 })
    #expect(pair.client.connection.agreement.maxInFlight == 2)
    for serial: UInt32 in 50..<53 { pair.client.request(serial) }
    pair.exchange()
    let events = pair.client.takeEvents()
    guard case .response(52, code: 429, refused: true, nil, _) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(pair.server.connection.goodbyes.requestsAccepted == 3)
    #expect(pair.server.connection.counters.refused == 1)
    pair.server.respond(50)
    pair.exchange()
    pair.client.request(53)
    pair.exchange()
    #expect(pair.server.takeEvents().last == .request(53, type: 1, body: []))
  }

  @Test func `a refusal is no longer than the peer accepts`() {
    let pair = ConnectionPair(
      client: ConnectionSettings(.client) { $0.maxBody = 3 },
      server: ConnectionSettings(.server) { $0.maxInFlight = 1 })
    pair.client.request(50)
    pair.client.request(51)
    pair.exchange()
    #expect(pair.client.connection.isOpen == true)
    guard
      case .response(51, code: 429, refused: true, nil, let body) = pair.client.takeEvents().last
    else {
      Issue.record("not refused")
      return
    }
    #expect(body.count == 3)
  }

  @Test(arguments: Cutting.allCases)
  func `shutting down sends encoded bytes and waits for the peer`(cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting)
    pair.client.push(1, [1, 2, 3])
    pair.client.connection.shutDown(at: pair.now)
    pair.client.drain()
    pair.exchange()
    #expect(
      pair.client.takeEvents() == [
        .abandon(.closedHere), .shutDownWriting, .close(.closedHere),
      ])
    #expect(
      pair.server.takeEvents() == [
        .push(type: 1, body: [1, 2, 3]), .abandon(.closedByPeer), .close(.closedByPeer),
      ])
    pair.pass(100_000)
    #expect(pair.client.takeEvents() == [] && pair.server.takeEvents() == [])
  }

  @Test func `the end after a goaway is named by its code`() {
    let side = opened(.client)
    side.receive(RawFrame(.goaway, serial: 4, body: [0x08, 0xF7, 0x03]))
    side.receiveEnd()
    #expect(side.takeEvents().suffix(2) == [.abandon(.goneAway(503)), .close(.goneAway(503))])
  }

  @Test func `an error of the socket ends everything at once, and once`() {
    let side = opened(.server)
    side.receive(RawFrame(.request, tag: 1, serial: 50))
    _ = side.takeEvents()
    side.connection.failed(.transport(104))
    side.connection.failed(.transport(32))
    side.connection.close(.closedHere)
    side.connection.ended(at: side.now)
    side.drain()
    #expect(side.takeEvents() == [.abandon(.transport(104)), .close(.transport(104))])
    #expect(!side.respond(50))
    _ = side.connection.ping(at: side.now)
    #expect(side.connection.outbox.encodedBytes == 0)
  }

  @Test func `an error while closing does not change the reason`() {
    let side = opened(.server)
    side.receive(RawFrame(wire: 0x20))
    side.connection.failed(.transport(104))
    side.drain()
    guard case .close(.violation) = side.takeEvents().last else {
      Issue.record("another reason")
      return
    }
  }

  @Test func `the connection to a peer that leaves too much unread is closed`() {
    let side = opened(.server) { $0.maxUnread = 100_000 }
    side.isStalled = true
    for _ in 0..<20 where side.connection.isOpen {
      side.push(1, [UInt8](repeating: 1, count: 10_000))
    }
    #expect(side.takeEvents() == [.abandon(.unreadOutput), .close(.unreadOutput)])
  }

  @Test func `empty frames that wait are counted as unread too`() {
    let side = opened(.server) {
      $0.maxUnread = 100_000
      $0.encodeLimit = 1000
    }
    side.isStalled = true
    for _ in 0..<10_000 where side.connection.isOpen { side.push(1) }
    #expect(side.connection.isClosed == true)
  }
}
