// SPDX-License-Identifier: Apache-2.0

@testable import LongLinkCore
import Testing

/// Items that the application holds or has not read: within the next item, and after the response.
@Suite struct StreamUnreadTests {
  private static let item = [UInt8](repeating: 1, count: 984)

  @Test func `a peer goes on within an item while the application holds the one before`() {
    let pair = ConnectionPair(server: ConnectionSettings(.server) { $0.windows.first = 4_096 })
    pair.server.holdsItems = true
    pair.client.stream(50, items: true)
    pair.client.write(50, [1])
    pair.exchange()
    #expect(pair.server.takeEvents().last == .item(50, body: [1]))
    let large = [UInt8](repeating: 7, count: 300_000)
    pair.client.write(50, large)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.item(50, body: large)])
    #expect(pair.server.connection.streams.reserved <= 300_000 + 400 * 16 + 17)
    // And no further than that: the next one waits until it takes one of them.
    pair.server.holdsItems = false
    pair.client.write(50, large)
    pair.exchange()
    #expect(pair.server.takeEvents() == [])
    #expect(pair.server.stuck.count <= 1)
  }

  @Test func `an item may exceed the limit of all windows while the application holds another`() {
    let settings = ConnectionSettings(.server) {
      $0.windows.first = 4_096
      $0.windows.total = 10_240
      $0.maxBody = 300_000
    }
    let pair = ConnectionPair(server: settings)
    pair.server.holdsItems = true
    let large = [UInt8](repeating: 7, count: 300_000)
    for serial: UInt32 in [50, 51] {
      pair.client.stream(serial, items: true)
      pair.client.write(serial, [1])
    }
    pair.exchange()
    _ = pair.server.takeEvents()
    pair.client.write(50, large)
    pair.exchange()
    #expect(pair.server.takeEvents() == [.item(50, body: large)])
    // There is only room for one, and nothing lets the other go on.
    pair.client.write(51, large)
    pair.exchange()
    #expect(pair.server.connection.counters.streamsOverLimit == 1)
  }

  @Test func `an application is asked once within an item what it holds`() {
    let side = opened(.server) { $0.windows.first = 4_096 }
    side.receive(streamRequest(50))
    side.receive(RawFrame(.item, serial: 50, body: Self.item))
    for _ in 0..<4 {
      side.receive(
        RawFrame(.item, flags: .more, serial: 50, body: [UInt8](repeating: 2, count: 600)))
    }
    #expect(side.stuck == [50])
    #expect(side.takeFrames().filter { $0.kind == FrameKind.credit.rawValue } == [])
    side.connection.lentItems(50, at: side.now)
    #expect(side.takeFrames().filter { $0.kind == FrameKind.credit.rawValue }.count == 1)
  }

  @Test func `an item that the application held before does not count within the one after next`() {
    let side = opened(.server) { $0.windows.first = 4_096 }
    func credits() -> Int {
      side.takeFrames().filter { $0.kind == FrameKind.credit.rawValue }.count
    }
    let part = [UInt8](repeating: 2, count: 600)
    side.receive(streamRequest(50))
    side.receive(RawFrame(.item, serial: 50, body: Self.item))
    for _ in 0..<4 { side.receive(RawFrame(.item, flags: .more, serial: 50, body: part)) }
    side.connection.lentItems(50, at: side.now)
    #expect(credits() == 1)
    // Now a whole item waits, which the application has not.
    side.receive(RawFrame(.item, serial: 50, body: part))
    for _ in 0..<2 { side.receive(RawFrame(.item, flags: .more, serial: 50, body: part)) }
    #expect(credits() == 0 && side.stuck == [50, 50])
    side.connection.lentItems(50, at: side.now)
    #expect(credits() == 1)
  }

  @Test func `unread items count after the response until they are taken`() {
    let side = opened(.client) {
      $0.windows.first = 4_096
      $0.windows.total = 8_192
    }
    side.keepsUnread = true
    for serial: UInt32 in [50, 51] {
      side.stream(serial, credit: 4_096)
      for _ in 0..<4 { side.receive(RawFrame(.item, serial: serial, body: Self.item)) }
      side.receive(RawFrame(.response, tag: 200, serial: serial))
    }
    #expect(side.connection.streams.isEmpty == true)
    #expect(side.connection.streams.reserved == 8_000)
    #expect(side.connection.streams.heldBytes == 8_000)
    #expect(side.connection.streams.hasRoom(for: 1_024) == false)
    side.connection.tookUnread(50, cost: 1_000)
    #expect(side.connection.streams.hasRoom(for: 1_024) == true)
    #expect(side.connection.streams.holdsUnread(50) == true)
    side.connection.tookUnread(50, cost: 3_000)
    #expect(side.connection.streams.holdsUnread(50) == false)
    side.connection.tookUnread(51, cost: .max)
    side.connection.tookUnread(52, cost: .max)
    #expect(side.connection.streams.reserved == 0 && side.connection.streams.ceiling == 0)
    #expect(side.connection.streams.heldBytes == 0)
  }

  @Test func `nothing unread counts of a responder's stream, or after the connection`() {
    let server = opened(.server)
    server.keepsUnread = true
    server.receive(streamRequest(50))
    server.receive(RawFrame(.item, serial: 50, body: Self.item))
    server.respond(50, code: .failed)
    #expect(server.connection.streams.reserved == 0)
    let client = opened(.client)
    client.keepsUnread = true
    client.stream(50, credit: 4_096)
    client.receive(RawFrame(.item, serial: 50, body: Self.item))
    client.receive(RawFrame(.response, tag: 200, serial: 50))
    #expect(client.connection.streams.reserved == 1_000)
    client.receiveEnd()
    #expect(client.connection.streams.holdsUnread(50) == false)
    client.connection.tookUnread(50, cost: 1_000)
    #expect(client.connection.streams.reserved == 0 && client.connection.streams.heldBytes == 0)
  }
}
