// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

@testable import LongLinkDriver
@testable import LongLinkCore
@testable import LongLinkTransport

/// What links do while the memory of their server is scarce, short or exhausted.
@Suite struct ScarceMemoryTests {
  /// Two servers on one loop, of which the first has half of its memory taken.
  private struct Scarcity {
    let stations: [Station]
    let share: MemoryShare

    init() {
      let driver = StillDriver()
      let loop = EventLoop(driver: driver, name: "scarce")
      let stations = [Station(driver, loop), Station(driver, loop)]
      self.stations = stations
      share = stations[0].budget.makeShare(on: loop, relieve: {}, recover: {})
      share.add(HeldMemory(open: 4_000_000))
    }

    func ask(_ serial: UInt32) {
      for station in stations {
        station.turn { station.stream.offer(WireFrame.request(1, serial: serial).bytes) }
      }
    }
  }

  @Test func `while memory is scarce a peer that leaves responses unread is not read`() {
    let scarcity = Scarcity()
    let stations = scarcity.stations
    for station in stations { station.push(220_000) }
    scarcity.ask(50)
    #expect(stations.map(\.received) == [0, 1])
    // The peer takes what waits: it is read again, also while memory is still scarce.
    stations[0].stream.room = .max
    stations[0].turn { stations[0].stream.offerRoom() }
    stations[0].turn { stations[0].stream.offer([]) }
    #expect(stations[0].received == 1)
    #expect(stations[0].outputIsEmpty)
    scarcity.ask(52)
    #expect(stations.map(\.received) == [2, 2])
  }

  @Test func `the less memory is left, the fewer answers may wait`() {
    let scarcity = Scarcity()
    scarcity.share.add(HeldMemory(open: 3_200_000))
    for station in scarcity.stations { station.push(40_000) }
    scarcity.ask(50)
    #expect(scarcity.stations.map(\.received) == [0, 1])
  }

  @Test func `empty buffers do not make memory scarce`() {
    let scarcity = Scarcity()
    scarcity.share.add(HeldMemory(room: 3_000_000))
    for station in scarcity.stations { station.push(220_000) }
    scarcity.ask(50)
    #expect(scarcity.stations.map(\.received) == [1, 1])
  }

  @Test func `a peer is read again as soon as memory is not scarce`() {
    let scarcity = Scarcity()
    let station = scarcity.stations[0]
    station.push(220_000)
    scarcity.ask(50)
    #expect(station.received == 0)
    scarcity.share.add(HeldMemory(open: -4_000_000))
    for _ in 0..<3 { station.turn {} }
    #expect(station.stream.interest.contains(.read))
    station.turn { station.stream.offer([]) }
    #expect(station.received == 1)
    #expect(!station.outputIsEmpty)
  }

  @Test func `a peer is read again once its unread responses were withdrawn`() throws {
    let scarcity = Scarcity()
    let station = scarcity.stations[0]
    station.useFragments()
    station.push(65_536)
    let body = [UInt8](repeating: 7, count: 160_000)
    var placement: OutputPosition?
    station.turn {
      placement = try? station.link.request(
        0x8000_0032, type: 1, metadata: nil, priority: 0, count: body.count,
        at: station.driver.now
      ) { (span) throws(BodyError) in
        unsafe body.withUnsafeBytes { unsafe span.appendBytes($0) }
      }
    }
    let placed = try #require(placement)
    scarcity.ask(50)
    #expect(station.received == 0)
    station.turn { _ = station.link.cancel(0x8000_0032, placed, notifying: false) }
    #expect(station.stream.interest.contains(.read))
    station.turn { station.stream.offer([]) }
    #expect(station.received == 1)
  }

  @Test func `what this side leaves unread is not the peer's delay`() {
    let station = Station()
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 1_000_000)).bytes
    station.turn { station.stream.bring(Array(frame.prefix(100_000))) }
    // While memory is short the rest stays in the stream, and is read a part at a time then.
    let share = station.budget.makeShare(on: station.link.loop, relieve: {}, recover: {})
    share.add(HeldMemory(open: 9_000_000))
    station.turn { station.stream.offer(Array(frame.dropFirst(100_000))) }
    for _ in 0..<60 {
      station.driver.now = station.driver.now + 500_000_000
      station.turn {}
    }
    #expect(station.link.isAlive)
    #expect(station.received == 0)
    station.turn { station.stream.offer([]) }
    share.add(HeldMemory(open: -9_000_000))
    for _ in 0..<2 { station.turn { station.stream.offer([]) } }
    #expect(station.received == 1)
  }

  @Test func `while memory is short, connections that hold little are read a little`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "short")
    let (small, large) = (Station(driver, loop), Station(driver, loop))
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 40_000)).bytes
    large.turn {
      large.stream.bring(
        Array(
          WireFrame.request(
            1, serial: 52, [UInt8](repeating: 7, count: 300_000)
          ).bytes.prefix(200_000)))
    }
    for station in [small, large] {
      station.budget.makeShare(on: loop, relieve: {}, recover: {})
        .add(HeldMemory(open: 9_000_000))
    }
    small.turn { small.stream.offer(frame) }
    for _ in 0..<8 { small.turn { small.stream.offer([]) } }
    #expect(small.received == 0)
    small.turn { small.stream.offer([]) }
    #expect(small.received == 1)
    let before = large.inputCount
    large.turn { large.stream.offer(frame) }
    #expect(large.inputCount == before)
  }

  @Test func `while memory is exhausted connections with few requests are read`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "exhausted")
    let (many, few) = (Station(driver, loop), Station(driver, loop))
    for station in [many, few] {
      station.answers = false
      station.budget.makeShare(on: loop, relieve: {}, recover: {})
        .add(HeldMemory(outlived: 11_000_000))
    }
    func ask(_ station: Station, _ serials: Range<UInt32>) {
      station.turn {
        station.stream.offer(serials.flatMap { WireFrame.request(1, serial: $0).bytes })
      }
    }
    ask(few, 50..<54)
    ask(many, 50..<55)
    #expect((few.received, many.received) == (4, 5))
    ask(few, 60..<61)
    ask(many, 60..<61)
    #expect((few.received, many.received) == (5, 5))
  }

  @Test func `memory that was read into is given back once the peer is read again`() {
    let scarcity = Scarcity()
    let station = scarcity.stations[0]
    let large = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 65_536)).bytes
    let others = (51..<56).flatMap {
      WireFrame.request(1, serial: $0, [UInt8](repeating: 7, count: 10_000)).bytes
    }
    station.answer = [UInt8](repeating: 7, count: 300_000)
    station.stream.room = 0
    station.turn { station.stream.bring(Array(large.prefix(60_000))) }
    station.turn { station.stream.offer(Array(large.dropFirst(60_000) + others)) }
    #expect(station.received == 1)
    #expect(station.inputCapacity > 65_536)
    station.stream.room = .max
    for _ in 0..<8 { station.turn { station.stream.offerRoom() } }
    #expect(station.received == 6)
    #expect(station.outputIsEmpty)
    #expect(station.inputCapacity == 0)
  }
}
