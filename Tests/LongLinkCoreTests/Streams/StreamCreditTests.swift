// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Credit: who may send how much, and how much a peer can make this side hold.
@Suite struct StreamCreditTests {
  private static let part = RawFrame(
    .item, flags: .more, serial: 50, body: [UInt8](repeating: 1, count: 1_008))

  /// The sum of all credit that a side has granted since the last call.
  private func granted(_ side: Side) -> Int {
    side.takeFrames().filter { $0.kind == FrameKind.credit.rawValue }
      .reduce(0) { $0 + Int(RawFrame.number($1.body[...])) }
  }

  @Test func `an item larger than the window comes whole, and nothing more until it is taken`() {
    // Timeline 4.
    let pair = ConnectionPair(server: ConnectionSettings(.server) { $0.windows.first = 4_096 })
    pair.client.stream(50, items: true)
    let large = [UInt8](repeating: 7, count: 1_048_576)
    pair.client.write(50, large)
    pair.exchange()
    #expect(pair.server.takeEvents().last == .item(50, body: large))
    #expect(pair.client.takeEvents() == [.itemSent(50)])
    let streams = pair.server.connection.streams.reserved
    #expect(streams <= 1_048_576 + 3_000 * 16)
    // Whatever credit is left is little, and the receiver grants no more.
    #expect(pair.client.write(50, large) == .waiting)
    pair.exchange()
    #expect(pair.server.connection.streams.reserved <= streams + 16)
    #expect(pair.server.takeEvents() == [])
    pair.server.take(50)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.item(50, body: large)])
  }

  @Test func `a reader that takes nothing is sent its window and no more`() {
    let pair = ConnectionPair(server: ConnectionSettings(.server) { $0.windows.first = 10_000 })
    pair.client.stream(50, items: true)
    var written = 0
    while pair.client.write(50, [UInt8](repeating: 1, count: 84)) == .encoded { written += 1 }
    pair.exchange()
    #expect(written == 100)
    #expect(pair.server.takeEvents().count == 101)
    #expect(pair.server.connection.held.used - HeldMemory.ofRequest <= 10_000 + 100)
    // Credit comes in lumps of half a window.
    pair.server.take(50, 49)
    #expect(granted(pair.server) == 0)
    pair.server.take(50, 1)
    #expect(pair.server.peekFrames().map(\.kind) == [FrameKind.credit.rawValue])
    pair.exchange()
    #expect(pair.client.takeEvents() == [.itemSent(50)])
  }

  @Test func `a sender uses up its credit to the byte, and never more`() {
    let side = opened(.client)
    side.stream(50, items: true)
    #expect(side.write(50, [UInt8](repeating: 1, count: 65_520)) == .encoded)
    #expect(side.write(50, []) == .waiting)
    side.receive(credit(15, 50))
    #expect(side.takeFrames().count == 2)
    side.receive(credit(1, 50))
    #expect(side.takeFrames().map(\.body.count) == [0])
    // Less than 1,024 bytes are no reason to split; with more, the item begins.
    #expect(side.write(50, [UInt8](repeating: 1, count: 5_000)) == .waiting)
    side.receive(credit(1_023, 50))
    #expect(side.takeFrames() == [])
    side.receive(credit(1, 50))
    #expect(side.takeFrames().map(\.body.count) == [1_008])
    side.receive(credit(3_992 + 16, 50))
    let last = side.takeFrames()
    #expect(last.map(\.body.count) == [3_992] && last.map(\.flags) == [0])
  }

  @Test func `itemSent tells only of an item whose sender was told to wait`() {
    let side = opened(.client)
    side.stream(50, items: true)
    side.receive(credit(1_000_000, 50))
    side.isStalled = true
    var count = 0
    while side.write(50, [UInt8](repeating: 1, count: 10_000)) == .encoded { count += 1 }
    // The seventh came while less than a fragment waited.
    #expect(count == 7)
    #expect(side.takeEvents() == [])
    side.isStalled = false
    side.flush()
    #expect(side.takeEvents() == [.itemSent(50)])
  }

  /// What a sender that is never at a loss for items sends in each round trip of 100 ms, and the
  /// window at last. The path takes at most `rate` bytes in that time.
  private func roundTrips(rate: Int, largest: Int) -> (sent: [Int], window: Int?) {
    let client = opened(.client)
    let server = opened(.server) { $0.windows.largest = largest }
    server.takesItems = true
    client.stream(50, items: true)
    var perTrip: [Int] = []
    for trip in 1...30 {
      // Halfway there and halfway back. The bytes come one after the other, as on a real path.
      let before = client.connection.counters.bytesSent
      while !client.sending.contains(50), client.wire.count < rate {
        client.write(50, [UInt8](repeating: 1, count: 4_000))
        client.flush()
      }
      perTrip.append(Int(client.connection.counters.bytesSent - before))
      let frames = client.takeFrames()
      for (index, frame) in frames.enumerated() {
        server.now = .ms(Int64(trip * 100 - 50 + index * 50 / frames.count))
        server.receive(frame)
      }
      client.now = .ms(Int64(trip) * 100)
      for frame in server.takeFrames() { client.receive(frame) }
    }
    let window = server.connection.streams.slot(of: 50).flatMap {
      server.connection.streams[$0].incoming?.window
    }
    return (perTrip, window)
  }

  @Test func `the window grows on a long path for a reader that keeps up, up to its bound`() {
    for largest in [65_536, 1_048_576] {
      let (perTrip, window) = roundTrips(rate: .max, largest: largest)
      #expect(window == largest)
      #expect(perTrip.allSatisfy { $0 <= largest + 4_016 }, "\(largest): \(perTrip)")
      #expect(perTrip.last! >= largest / 2, "\(largest): \(perTrip)")
    }
  }

  @Test func `the window does not grow where the path is what is slow`() {
    let (perTrip, window) = roundTrips(rate: 30_000, largest: 4_194_304)
    #expect(window == 65_536)
    #expect(perTrip.allSatisfy { $0 >= 28_000 }, "\(perTrip)")
  }

  @Test func `the window hardly grows where two processes of one machine take turns`() {
    let client = opened(.client)
    let server = opened(.server)
    server.takesItems = true
    client.stream(50, items: true)
    var nanoseconds: Int64 = 1_000_000_000
    for _ in 0..<200 {
      // The writer runs until it is out of credit, then the reader until it has read everything.
      while !client.sending.contains(50) {
        client.write(50, [UInt8](repeating: 1, count: 4_000))
        client.flush()
        nanoseconds += 600
      }
      for frame in client.takeFrames() {
        server.now = LinkInstant(nanoseconds: nanoseconds)
        server.receive(frame)
        nanoseconds += 800
      }
      client.now = LinkInstant(nanoseconds: nanoseconds)
      for frame in server.takeFrames() { client.receive(frame) }
    }
    let window = server.connection.streams.slot(of: 50).flatMap {
      server.connection.streams[$0].incoming?.window
    }
    #expect(window ?? .max <= 262_144)
  }

  @Test func `windows that have grown leave room for others`() {
    let side = opened(.server) { $0.windows.total = 1_048_576 }
    side.takesItems = true
    let item = [UInt8](repeating: 1, count: 16_368)
    for serial: UInt32 in 50..<54 { side.receive(streamRequest(serial)) }
    var left = [UInt32: Int](uniqueKeysWithValues: (50..<54).map { ($0, 65_536) })
    for trip: Int64 in 1...400 {
      side.now = .ms(trip * 10)
      for serial: UInt32 in 50..<54 where left[serial]! >= 16_384 {
        side.receive(RawFrame(.item, serial: serial, body: item))
        left[serial]! -= 16_384
      }
      for frame in side.takeFrames() where frame.kind == FrameKind.credit.rawValue {
        left[frame.serial]! += Int(RawFrame.number(frame.body[...]))
      }
    }
    #expect(side.connection.streams.ceiling <= 524_288)
    #expect(left.values.contains { $0 > 65_536 }, "none has grown")
    for serial: UInt32 in 60..<68 { side.receive(streamRequest(serial)) }
    #expect(side.connection.counters.refused == 0)
  }

  @Test func `first credits that do not fit are refused, and their items dropped`() {
    // Timeline 5.
    let side = opened(.server)
    let serials: Range<UInt32> = 50..<1_074
    for serial in serials { side.receive(streamRequest(serial)) }
    let refused = side.takeFrames()
    #expect(refused.count == 768)
    #expect(refused.allSatisfy { $0.kind == 1 && $0.tag == 0x80_0000 | 429 })
    #expect(side.connection.inbound.count == 256)
    _ = side.takeEvents()
    for frame in refused {
      side.receive(
        RawFrame(.item, serial: frame.serial, body: [1]), RawFrame(.end, serial: frame.serial))
    }
    #expect(side.connection.counters.lateItems == 768)
    #expect(side.connection.counters.lateEnds == 768)
    #expect(side.takeEvents().count == 2 * 768)
    side.receive(RawFrame(.end, serial: 50), streamRequest(2_000))
    #expect(side.connection.inbound.count == 257, "the end of its items frees a window")
  }

  /// Sends as much as it may on 1,024 streams, of which nothing is taken.
  private func flood(_ side: Side, _ frame: (UInt32) -> RawFrame) -> Int {
    var left: [UInt32: Int] = [:]
    for serial: UInt32 in 50..<1_074 {
      side.receive(streamRequest(serial))
      left[serial] = 65_536
    }
    var most = 0
    var isDone = false
    while !isDone {
      isDone = true
      for answer in side.takeFrames() {
        if answer.kind == FrameKind.response.rawValue { left[answer.serial] = nil }
        guard answer.kind == FrameKind.credit.rawValue else { continue }
        left[answer.serial]? += Int(RawFrame.number(answer.body[...]))
      }
      for serial in left.keys.sorted() {
        let frame = frame(serial)
        let cost = frame.body.count + 16
        guard let credit = left[serial], credit >= cost else { continue }
        left[serial] = credit - cost
        side.receive(frame)
        most = max(most, side.connection.held.used)
        isDone = false
      }
    }
    return most
  }

  @Test func `1,024 streams that nobody reads hold no more than the limit of all windows`() {
    let side = opened(.server)
    let item = [UInt8](repeating: 1, count: 8_176)
    let most = flood(side) { RawFrame(.item, serial: $0, body: item) }
    #expect(side.connection.isOpen == true)
    #expect(most >= 16_777_216)
    #expect(most <= 16_777_216 + 256 * HeldMemory.ofRequest + 262_144)
  }

  @Test(arguments: [700, 8_176])
  func `1,024 items that never end hold no more, but for one item`(size: Int) {
    let side = opened(.server) { $0.maxBody = 1_048_576 }
    let body = [UInt8](repeating: 1, count: size)
    let most = flood(side) { RawFrame(.item, flags: .more, serial: $0, body: body) }
    #expect(side.connection.isOpen == false, "the first item came to its limit")
    let headers = (1_048_576 / size + 1) * 16
    #expect(
      most <= 16_777_216 + 1_048_576 + headers + 256 * HeldMemory.ofRequest + 262_144)
    #expect(side.connection.counters.streamsOverLimit > 200)
    #expect(side.connection.held.used == 0)
  }

  @Test func `a stream goes on with its first credit while a large item takes all room`() {
    let side = opened(.server) {
      $0.windows.first = 4_096
      $0.windows.largest = 4_096
      $0.windows.total = 16_384
      $0.maxBody = 65_536
    }
    side.receive(streamRequest(50), streamRequest(51))
    while side.connection.streams.reserved <= 16_384 { side.receive(Self.part) }
    _ = side.takeFrames()
    side.takesItems = true
    for _ in 0..<20 {
      side.receive(RawFrame(.item, serial: 51, body: Self.part.body))
      #expect(!side.takeFrames().contains { $0.kind == FrameKind.response.rawValue })
    }
    #expect(side.connection.isOpen == true && side.connection.counters.streamsOverLimit == 0)
    #expect(side.connection.streams.reserved <= 16_384 + 65_536 + 2 * 16)
  }

  @Test func `a requester whose windows are full cancels`() {
    let side = opened(.client) {
      $0.windows.total = 4_096
      $0.maxBody = 8_192
    }
    for serial: UInt32 in 50..<54 {
      #expect(side.connection.streams.hasRoom(for: 1_024) == true)
      side.stream(serial, credit: 1_024)
    }
    #expect(side.connection.streams.hasRoom(for: 1_024) == false)
    _ = side.takeFrames()
    let serials: [UInt32] = [50, 51, 52, 53]
    for round in 0..<8 {
      for serial in serials where side.awaited.contains(serial) {
        side.receive(
          RawFrame(.item, flags: .more, serial: serial, body: Self.part.body))
      }
      #expect(side.connection.streams.reserved <= 4_096 + 8_192 + 32, "round \(round)")
    }
    let cancelled = side.takeFrames().filter { $0.kind == FrameKind.cancel.rawValue }.map(\.serial)
    #expect(!cancelled.isEmpty && cancelled.count < 4)
    #expect(side.takeEvents() == cancelled.map { .overLimit($0) })
    #expect(side.connection.isOpen == true)
  }

  @Test func `however often streams are cancelled, handlers are never more than allowed`() {
    // Timeline 6.
    let side = opened(.server)
    side.isDeaf = true
    var handlers = 0
    for serial: UInt32 in 50..<20_050 {
      side.receive(
        streamRequest(serial), RawFrame(.item, flags: .more, serial: serial, body: [1, 2, 3]),
        RawFrame(.cancel, serial: serial))
      for case .request in side.takeEvents() { handlers += 1 }
      _ = side.takeFrames()
    }
    #expect(handlers == 1_024)
    #expect(side.connection.streams.reserved == 0 && side.connection.streams.heldBytes == 0)
  }
}
