// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct ConnectionExchangeTests {
  @Test(arguments: Cutting.allCases)
  func `a greeting opens both sides`(cutting: Cutting) throws {
    let pair = ConnectionPair(
      client: ConnectionSettings(.client) { $0.name = "probe" },
      server: ConnectionSettings(.server) {
        $0.name = "host"
        $0.maxBody = 1000
        $0.maxInFlight = 7
        $0.windows.first = 2_000
      },
      cutting: cutting, isGreeted: false)
    #expect(pair.client.connection.isOpen == false)
    let greeting = pair.client.peekFrames()
    _ = pair.move()
    let answer = pair.server.peekFrames()
    pair.exchange()
    let hello = Hello(
      version: 1, features: 7, maxBody: 16_777_216, maxInFlight: 1024, heartbeatInterval: 30_000,
      heartbeatTimeout: 10_000, name: "probe", streamCredit: 65_536)
    let welcome = Welcome(
      version: 1, features: 7, maxBody: 1000, maxInFlight: 7, heartbeatInterval: 30_000,
      heartbeatTimeout: 10_000, name: "host", streamCredit: 2_000)
    #expect(try greeting.map { try $0.decoded(Hello.self) } == [hello])
    #expect(try answer.map { try $0.decoded(Welcome.self) } == [welcome])
    #expect(pair.client.takeEvents() == [.established])
    #expect(pair.server.takeEvents() == [.established])
    #expect(pair.client.connection.agreement.maxBody == 1000)
    #expect(pair.client.connection.agreement.maxInFlight == 7)
    #expect(pair.client.connection.agreement.streamCredit == 2_000)
    #expect(pair.server.connection.agreement.streamCredit == 65_536)
    #expect(pair.client.connection.agreement.name == "host")
    #expect(pair.server.connection.agreement.name == "probe")
    #expect(pair.server.connection.agreement.features == [.metadata, .fragments, .streams])
  }

  @Test(arguments: Cutting.allCases)
  func `requests and pushes go both ways`(cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting)
    pair.client.request(50, type: 3, [1, 2, 3])
    pair.client.push(9, [4])
    pair.server.request(0x8000_0032, type: 0xFF_FFFF, [])
    pair.server.push(0, [])
    pair.exchange()
    #expect(
      pair.server.takeEvents() == [
        .request(50, type: 3, body: [1, 2, 3]), .push(type: 9, body: [4]),
      ])
    #expect(
      pair.client.takeEvents() == [
        .request(0x8000_0032, type: 0xFF_FFFF, body: []), .push(type: 0, body: []),
      ])
    #expect(pair.server.respond(50, [7]))
    #expect(pair.client.respond(0x8000_0032, code: 8_388_607, [8]))
    pair.exchange()
    #expect(pair.client.takeEvents() == [.response(50, code: 200, body: [7])])
    #expect(pair.server.takeEvents() == [.response(0x8000_0032, code: 8_388_607, body: [8])])
    #expect(!pair.server.respond(50))
    #expect(pair.server.connection.counters.droppedResponses == 1)
    #expect(pair.server.connection.inbound.count == 0)
  }

  @Test func `metadata goes in front of every kind of message`() {
    let pair = ConnectionPair()
    let block: [UInt8] = [0x08, 0x05]
    pair.client.request(50, metadata: block, [1])
    pair.client.request(51, metadata: [], [])
    pair.client.push(2, metadata: block, [3])
    pair.exchange()
    #expect(
      pair.server.takeEvents() == [
        .request(50, type: 1, metadata: block, body: [1]),
        .request(51, type: 1, metadata: [], body: []),
        .push(type: 2, metadata: block, body: [3]),
      ])
    pair.server.respond(50, code: .overloaded, refused: true, metadata: [0x28, 0x01], [9])
    pair.exchange()
    #expect(
      pair.client.takeEvents() == [
        .response(50, code: 429, refused: true, metadata: [0x28, 0x01], body: [9])
      ])
  }

  @Test func `a peer without a hello is served with the defaults and without features`() {
    let side = Side(ConnectionSettings(.server))
    side.receive(RawFrame(.request, tag: 5, serial: 50, body: [1]))
    #expect(side.takeEvents() == [.established, .request(50, type: 5, body: [1])])
    #expect(side.connection.agreement.features == [])
    #expect(side.connection.agreement.maxBody == 16_777_216)
    side.respond(50, [UInt8](repeating: 7, count: 100_000))
    #expect(
      side.takeFrames() == [
        RawFrame(.response, tag: 200, serial: 50, body: [UInt8](repeating: 7, count: 100_000))
      ])
  }

  @Test func `answers before the welcome are sent`() {
    // A server should ask behind its welcome; whoever asks before it is answered all the same.
    let side = Side(ConnectionSettings(.client))
    _ = side.takeFrames()
    side.receive(RawFrame(.request, tag: 5, serial: 0x8000_0032))
    #expect(side.respond(0x8000_0032))
    #expect(side.takeFrames() == [RawFrame(.response, tag: 200, serial: 0x8000_0032)])
  }

  @Test(arguments: Cutting.allCases)
  func `many requests are answered in any order`(cutting: Cutting) {
    let pair = ConnectionPair(cutting: cutting, seed: 7)
    var dice = Seeded(3)
    let serials = (50..<350).map { UInt32($0) }
    for serial in serials { pair.client.request(serial, RawFrame.big(serial)) }
    pair.exchange()
    #expect(
      pair.server.takeEvents() == serials.map { .request($0, type: 1, body: RawFrame.big($0)) })
    let order = serials.shuffled(using: &dice)
    for serial in order { pair.server.respond(serial, RawFrame.big(serial)) }
    pair.exchange()
    #expect(
      pair.client.takeEvents() == order.map { .response($0, code: 200, body: RawFrame.big($0)) })
    #expect(pair.server.connection.inbound.count == 0)
    #expect(pair.client.isIdle && pair.server.isIdle)
  }

  @Test func `a ping of the user is answered with its time`() {
    let pair = ConnectionPair()
    let first = pair.client.connection.ping(at: pair.now)
    let second = pair.client.connection.ping(at: pair.now)
    pair.client.flush()
    pair.now = pair.now + 5_000_000
    pair.client.now = pair.now
    pair.server.now = pair.now
    pair.exchange()
    #expect(
      pair.client.takeEvents() == [
        .ponged(first, roundTrip: 5_000_000), .ponged(second, roundTrip: 5_000_000),
      ])
    #expect(pair.server.connection.counters.pingsReceived == 2)
  }

  @Test func `an encoder that fails leaves nothing behind`() throws {
    let side = opened(.client)
    for size in [10, 200_000] {
      #expect(throws: BodyError.self) {
        try side.connection.request(
          50, type: 1, metadata: MetadataBlock([1]), count: size, at: side.now
        ) {
          (span) throws(BodyError) in
          span.append(1)
          throw BodyError(.notRepresentable, detail: "on purpose")
        }
      }
    }
    #expect(side.connection.outbox.isEmpty == true)
    #expect(side.connection.outbox.totalBytes == 0)
    side.request(51, [5])
    #expect(
      side.placements[51] == OutputPosition(begin: side.connection.outbox.written, ordinal: 1))
    #expect(side.takeFrames() == [RawFrame(.request, tag: 1, serial: 51, body: [5])])
  }

  @Test func `storage is given back once nothing is under way`() {
    let pair = ConnectionPair()
    pair.server.echoes = true
    for serial in 50..<150 {
      pair.client.request(UInt32(serial), [UInt8](repeating: 1, count: 5000))
    }
    pair.exchange()
    #expect(pair.client.isIdle)
    HeldMemory.releaseStorage(of: &pair.client.connection)
    HeldMemory.releaseStorage(of: &pair.server.connection)
    #expect(pair.client.connection.inbox.input.capacity == 0)
    #expect(pair.server.connection.inbox.input.capacity == 0)
  }
}
