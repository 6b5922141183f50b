// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting
import Testing

@testable import LongLinkDriver
@testable import LongLinkCore
@testable import LongLinkTransport

/// What a link keeps, and what it tells the server's memory of that.
@Suite struct LinkMemoryTests {
  @Test func `a link that has ended keeps no memory, even if the link is retained`() {
    let station = Station()
    station.bringUnfinished()
    station.push()
    #expect(station.budget.held > 2_000_000)
    station.turn { station.link.close(.heartbeatLost) }
    #expect(station.inputCapacity == 0)
    #expect(station.outputCapacity == 0)
    #expect(station.budget.held == 0)
  }

  @Test func `a link that the peer has ended keeps no output`() {
    let station = Station()
    station.push(200_000)
    #expect(station.outputCapacity > 200_000)
    station.stream.hasEnded = true
    station.turn { station.stream.offer([]) }
    #expect(!station.link.isAlive && station.outputCapacity == 0)
  }

  @Test func `an evicted connection keeps no input while its peer is told`() {
    let station = Station()
    station.bringUnfinished()
    #expect(station.budget.held > 1_000_000)
    station.turn { station.link.evict() }
    #expect(station.link.isAlive)
    #expect(station.inputCapacity == 0)
    // What it still sends is read, and stays nowhere.
    station.turn { station.stream.bring([UInt8](repeating: 7, count: 300_000)) }
    #expect(station.inputCapacity <= 131_072)
    #expect(station.budget.held < 4_096)
  }

  @Test func `an evicted connection keeps no buffer except its last frames`() {
    let station = Station()
    station.push(400_000)
    // The peer takes all but some of it.
    station.stream.room = 395_000
    station.turn { station.stream.offerRoom() }
    #expect(station.outputCapacity > 200_000)
    station.turn { station.link.evict() }
    #expect(station.link.isAlive && !station.outputIsEmpty)
    #expect(station.outputCapacity < 50_000)
  }

  @Test func `empty buffers are freed`() {
    let station = Station()
    station.answers = false
    station.turn {
      station.stream.offer((0..<1_000).flatMap { WireFrame.request(1, serial: $0 + 50).bytes })
    }
    station.turn {
      for number: UInt32 in 1...1_000 {
        station.link.respond(InboundID(serial: 49 + number, number: number), code: .ok, [])
      }
    }
    let before = station.budget.held
    station.turn { station.link.releaseRoom() }
    #expect(station.budget.held < before - 50_000)
  }

  @Test func `bytes that were finally sent no longer count`() {
    let station = Station()
    station.push()
    #expect(station.budget.held >= 1_000_000)
    station.stream.room = .max
    station.turn { station.stream.offerRoom() }
    #expect(station.outputIsEmpty)
    #expect(station.budget.held < 4_096)
  }

  @Test func `the memory of a large body does not stay with the last of it`() {
    let station = Station()
    station.push()
    // The peer takes all but some of it.
    station.stream.room = 950_000
    station.turn { station.stream.offerRoom() }
    #expect(station.outputCapacity < 200_000)
    #expect(station.budget.held < 200_000)
  }

  @Test func `the memory for frames that come in parts is used again`() {
    let station = Station()
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 65_536)).bytes
    station.turn { station.stream.bring(Array(frame.prefix(60_000))) }
    #expect(station.inputCapacity < 65_536)
    station.turn { station.stream.bring(Array(frame.dropFirst(60_000) + [0])) }
    // One byte is left, and the large memory is the loop's.
    #expect(station.received == 1)
    #expect(station.inputCapacity <= 65_536)
    let capacity = station.link.loop.spareQueue.capacity
    #expect(capacity >= 60_000 + 131_072 && capacity <= 524_288)
    station.turn { station.stream.bring(Array(WireFrame.ping().bytes.dropFirst())) }
  }

  @Test func `the memory for a large frame is freed in the end`() {
    let station = Station()
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 1_000_000)).bytes
    station.turn { station.stream.bring(Array(frame.prefix(600_000))) }
    #expect(station.inputCapacity > 600_000)
    station.turn { station.stream.bring(Array(frame.dropFirst(600_000))) }
    #expect(station.received == 1)
    #expect(station.inputCapacity == 0)
    #expect(station.link.loop.spareQueue.capacity <= 524_288)
  }

  @Test func `the memory of a large message does not stay while a small request runs`() {
    let station = Station()
    let large = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 4_000_000))
    station.turn { station.stream.bring(large.bytes) }
    for _ in 0..<1_000 where station.received == 0 { station.turn {} }
    station.answers = false
    station.turn { station.stream.bring(WireFrame.request(1, serial: 51).bytes) }
    #expect(station.received == 2 && station.link.connection.inbound.count == 1)
    #expect(station.budget.held <= 2 * HeldMemory.ofRequest)
    #expect(station.inputCapacity == 0 && station.outputCapacity <= 4_096)
    #expect(station.link.loop.spareQueue.capacity <= 524_288)
  }

  @Test func `the remaining bytes move to the loop's buffer, and the large buffer to the loop`() {
    var spare = ByteQueue()
    spare.reserveExactly(1_000)
    var queue = ByteQueue()
    queue.reserveExactly(200_000)
    queue.append(capacity: 900) { unsafe $0.append(repeating: 7, count: 900, as: UInt8.self) }
    queue.releaseRoom(to: &spare, upTo: 524_288)
    let (count, kept, given) = (queue.count, queue.capacity, spare.capacity)
    #expect((count, kept, given) == (900, 1_000, 200_000))
    let isEmpty = spare.isEmpty
    #expect(isEmpty)
  }

  @Test func `what a connection has held for long weighs more than what has just come`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "weights")
    let (slow, fast) = (Station(driver, loop), Station(driver, loop))
    func unfinished(_ count: Int) -> [UInt8] {
      let request = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 65_536))
      return Array(request.bytes.prefix(count))
    }
    slow.turn { slow.stream.bring(unfinished(35_000)) }
    driver.now = driver.now + 2_000_000_000
    fast.turn { fast.stream.bring(unfinished(65_500)) }
    #expect(fast.link.memoryWeight.amount < slow.link.memoryWeight.amount)
    #expect(slow.link.memoryWeight.isStalled && !fast.link.memoryWeight.isStalled)
    // Once the slow one goes on, it weighs by its bytes.
    driver.now = driver.now + 2_000_000_000
    slow.turn { slow.stream.bring([UInt8](repeating: 7, count: 30_000)) }
    #expect(fast.link.memoryWeight.amount > slow.link.memoryWeight.amount)
    fast.turn { fast.link.close(.heartbeatLost) }
    #expect(fast.link.memoryWeight.amount == 0)
  }

  @Test func `in a turn that lasts for long each stream is read a little`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "turn")
    let stations = [Station(driver, loop), Station(driver, loop)]
    let frames = (0..<1_000).flatMap { WireFrame.request(1, serial: $0 + 50).bytes }
    stations[0].turn {
      _ = loop.now
      stations[0].stream.offer(frames)
      driver.now = driver.now + 11_000_000
      stations[1].stream.offer(frames)
    }
    #expect(stations[0].received == 1_000)
    #expect(stations[1].received == 4_096 / 16)
    stations[1].turn { stations[1].stream.offer([]) }
    #expect(stations[1].received == 1_000)
  }

  @Test func `while jobs wait for another turn, connections of many requests are not read`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "backlog")
    let stations = [Station(driver, loop), Station(driver, loop)]
    func frames(_ serials: Range<UInt32>) -> [UInt8] {
      serials.flatMap { WireFrame.request(1, serial: $0).bytes }
    }
    for (station, count) in zip(stations, [65, 64] as [UInt32]) {
      station.answers = false
      station.turn { station.stream.offer(frames(50..<50 + count)) }
      #expect(station.received == Int(count))
    }
    stations[0].turn {
      for _ in 0..<5_000 { loop.execute {} }
      for station in stations { station.stream.offer(frames(200..<201)) }
    }
    #expect(stations.map(\.received) == [65, 65])
    stations[0].turn {}
    stations[0].turn { stations[0].stream.offer([]) }
    #expect(stations[0].received == 66)
  }
}
