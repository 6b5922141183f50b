// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

/// A connection that speaks a dialect, without any stream.
@Suite struct DialectConnectionTests {
  private static func dialects() throws -> [FrameDialect] {
    [
      try .guarded(tokenWidth: 4), .bare, try .small(), try .delimited(.lengthChecked),
      try .delimited(.escaped(0x1B)), try .delimited(.refused),
    ]
  }

  private static func settings(
    _ role: Role, _ dialect: FrameDialect, _ change: (inout ConnectionSettings) -> Void = { _ in }
  ) throws -> ConnectionSettings {
    let hasToken = dialect.layout.shape(from: role).header.contains { $0.meaning == .token }
    let codec = try DialectCodec(dialect, role: role, token: hasToken ? [9, 8, 7, 6] : [])
    return ConnectionSettings(role) {
      $0.dialect = codec
      $0.heartbeatInterval = 2_000_000_000
      $0.heartbeatTimeout = 1_000_000_000
      change(&$0)
    }
  }

  private static func pair(
    _ dialect: FrameDialect, cutting: Cutting = .whole, seed: UInt64 = 1,
    _ change: (inout ConnectionSettings) -> Void = { _ in }
  ) throws -> ConnectionPair {
    let pair = ConnectionPair(
      client: try settings(.client, dialect, change),
      server: try settings(.server, dialect, change), cutting: cutting, seed: seed, isGreeted: false
    )
    for side in [pair.client, pair.server] {
      #expect(side.takeEvents() == [])
      side.connection.connected(at: side.now)
      side.drain()
      #expect(side.takeEvents() == [.established])
    }
    return pair
  }

  @Test func `a large frame takes no more memory than its length and one read`() throws {
    let pair = try Self.pair(.bare)
    let serial = FrameDialect.bare.serials.client.lowerBound
    pair.client.request(serial, type: 0x500, [UInt8](repeating: 7, count: 1_100_000))
    pair.client.flush()
    var bytes = pair.client.takeWire()[...]
    var capacity = 0
    var spare = ByteQueue()
    while !bytes.isEmpty {
      pair.server.connection.inbox.makeRoom(for: 131_072, with: &spare)
      pair.server.receive(Array(bytes.prefix(65_536)))
      bytes = bytes.dropFirst(65_536)
      capacity = max(capacity, pair.server.connection.inbox.input.capacity)
    }
    #expect(pair.server.takeEvents().count == 1)
    #expect(capacity <= 1_100_100 + 131_072)
  }

  @Test(arguments: Cutting.allCases)
  func `requests, answers, pushes and cancels go whole, however the stream is cut`(
    _ cutting: Cutting
  ) throws {
    for dialect in try Self.dialects() {
      let pair = try Self.pair(dialect, cutting: cutting)
      let serials = dialect.serials.client
      let push = dialect.pushes.fromServer.last!.upperBound
      let bodies: [[UInt8]] = [[], [1], Array(repeating: 0x1B, count: 90), Array(0...255)]
      for (index, body) in bodies.enumerated() {
        let serial = serials.lowerBound + UInt32(index)
        pair.client.request(serial, type: 0x500, body)
        pair.exchange()
        #expect(
          pair.server.takeEvents() == [.request(serial, type: 0x500, body: body)], "\(dialect.name)"
        )
        pair.server.push(push, body)
        #expect(pair.server.respond(serial, body))
        #expect(!pair.server.respond(serial, body))
        pair.exchange()
        #expect(
          pair.client.takeEvents() == [
            .push(type: push, body: body), .response(serial, code: 200, body: body),
          ], "\(dialect.name)")
      }
      #expect(pair.client.isIdle && pair.server.isIdle)
      #expect(pair.client.connection.counters.damagedPackets == 0)
    }
  }

  @Test func `a token precedes the frames of the client`() throws {
    let client = Side(try Self.settings(.client, .guarded(tokenWidth: 4)))
    client.connection.connected(at: client.now)
    client.drain()
    client.request(51, type: 7, [1])
    client.flush()
    #expect(client.takeWire().prefix(12) == [9, 8, 7, 6, 0, 0, 0, 7, 0, 0, 0, 51])
  }

  @Test func `unsent frames can be withdrawn`() throws {
    for dialect in try Self.dialects() {
      let pair = try Self.pair(dialect)
      let first = dialect.serials.client.lowerBound
      pair.client.isStalled = true
      for index in 0..<5 as Range<UInt32> {
        pair.client.request(first + index, type: 0x500, [UInt8](repeating: 0x1B, count: 10))
      }
      #expect(pair.client.cancel(first + 1))
      #expect(pair.client.cancel(first + 4))
      #expect(pair.client.cancel(first))
      // Some bytes of the third one leave.
      pair.client.isStalled = false
      pair.client.room = 3
      pair.client.flush()
      pair.client.room = .max
      let isUnsent = pair.client.cancel(first + 2)
      #expect(!isUnsent)
      pair.exchange()
      let requests = pair.server.takeEvents().compactMap { event -> UInt32? in
        if case .request(let serial, _, _, _) = event { serial } else { nil }
      }
      #expect(requests == [first + 2, first + 3], "\(dialect.name)")
    }
  }

  @Test func `a frame that begins behind damage has its own time`() throws {
    let dialect = try FrameDialect.delimited(.lengthChecked)
    let client = Side(try Self.settings(.client, dialect))
    client.connection.connected(at: client.now)
    client.drain()
    client.request(9, type: 0x500, Array("never ends".utf8))
    client.flush()
    let packet = client.takeWire()
    let server = Side(try Self.settings(.server, dialect) { $0.frameTimeout = 1_000_000_000 })
    server.connection.connected(at: server.now)
    server.drain()
    server.receive(Array("this is no packet, and".utf8))
    server.receive(Array("neither is this\r\n".utf8) + packet.dropLast(8))
    let damaged = server.connection.counters.damagedPackets
    #expect(damaged > 0)
    server.elapse(to: .ms(999))
    #expect(server.connection.counters.damagedPackets == damaged)
    server.elapse(to: .ms(1_001))
    #expect(server.connection.counters.damagedPackets == damaged + 1)
  }

  @Test func `frames that are held back are sent whole, and in their turn`() throws {
    for dialect in try Self.dialects() {
      let pair = try Self.pair(dialect) { $0.encodeLimit = 200 }
      let first = dialect.serials.client.lowerBound
      pair.client.isStalled = true
      for index in 0..<30 as Range<UInt32> {
        pair.client.request(first + index, type: 0x500, [UInt8](repeating: 0x1B, count: 50))
      }
      #expect(pair.client.connection.outbox.holdsBack == true)
      #expect(pair.client.cancel(first + 20))
      pair.client.isStalled = false
      pair.exchange()
      let requests = pair.server.takeEvents().compactMap { event -> UInt32? in
        if case .request(let serial, _, _, _) = event { serial } else { nil }
      }
      #expect(requests == (0..<30).filter { $0 != 20 }.map { first + $0 }, "\(dialect.name)")
      #expect(pair.client.connection.counters.requestsSent == 29)
    }
  }

  @Test func `requests over the concurrency limit are refused with the dialect's code`() throws {
    let pair = try Self.pair(.small()) {
      $0.maxInFlight = 1
      $0.reportsRefusals = true
    }
    pair.client.request(1, type: 7, [1])
    pair.client.request(2, type: 7, [1])
    pair.exchange()
    #expect(
      pair.server.takeEvents()
        == [.request(1, type: 7, body: [1]), .refused(2, type: 7, code: 429)])
    // 2 on the wire is what the library knows as 429.
    #expect(pair.client.takeEvents() == [.response(2, code: 429, body: [])])
    #expect(pair.server.connection.counters.refused == 1)
    #expect(pair.client.connection.framing.lastCode?.number == 2)
  }

  @Test func `an answer of another type than its request's is a violation`() throws {
    let pair = try Self.pair(.small())
    pair.client.request(1, type: 7)
    pair.client.flush()
    _ = pair.client.takeWire()
    let server = try DialectSide(.small(), .server)
    pair.client.receive(server.response(.ok, 1, to: 8))
    let ends = pair.client.takeEvents().contains { event in
      if case .abandon(.violation(let violation)) = event {
        violation.rule == .typeNotAllowed && violation.serial == 1
      } else {
        false
      }
    }
    #expect(ends)
  }

  @Test func `a peer that floods with pings is dropped`() throws {
    let pair = try Self.pair(.small())
    let client = try DialectSide(.small(), .client)
    for number in 1...100 as ClosedRange<UInt32> { pair.server.receive(client.ping(number)) }
    #expect(pair.server.connection.isOpen == true)
    #expect(pair.server.connection.counters.pingsReceived == 100)
    pair.server.receive(client.ping(101))
    #expect(pair.server.connection.isOpen == false)
  }

  @Test func `no bytes make a connection trap, or grow without bound`() throws {
    for (index, dialect) in try Self.dialects().enumerated() {
      for role in [Role.client, .server] {
        var dice = Seeded(UInt64(100 + index))
        for _ in 0..<60 {
          let side = Side(try Self.settings(role, dialect))
          side.connection.connected(at: side.now)
          side.drain()
          if role == .client { side.request(dialect.serials.client.lowerBound, type: 0x500, [1]) }
          let peer = try DialectSide(dialect, role.peer)
          for _ in 0..<30 {
            var bytes: [UInt8] =
              switch dice.below(4) {
              case 0: (0..<dice.below(60)).map { _ in UInt8(dice.below(256)) }
              case 1:
                peer.codec.facts.sendsPings ? peer.ping(peer.codec.pingSerial(1)!) : [0x0D, 0x0A]
              case 2 where role == .server:
                peer.request(0x500, dialect.serials.client.lowerBound, [1, 2])
              case 2: peer.response(.ok, dialect.serials.client.lowerBound, to: 0x500)
              default: [0x0D, 0x0A]
              }
            if dice.below(3) == 0, !bytes.isEmpty {
              bytes[dice.below(bytes.count)] ^= UInt8(1 << dice.below(8))
            }
            side.receive(bytes)
            side.pass(to: side.now + Int64(dice.below(400)) * 1_000_000)
            #expect(side.connection.inbox.input.count < 70_000)
          }
          side.receiveEnd()
          side.pass(to: side.now + 10_000_000_000)
          #expect(side.connection.isClosed == true)
        }
      }
    }
  }
}
