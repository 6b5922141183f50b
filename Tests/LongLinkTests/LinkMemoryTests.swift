import Logging
import LongLinkTesting
import Testing

@testable import LongLinkConnection
@_spi(Containers) @testable import LongLinkCore
@testable import LongLinkTransport

/// What a link keeps, and what it tells the server's memory of that.
@Suite struct LinkMemoryTests {
  /// A server's link, whose peer the test plays.
  private final class Station: LinkOwner {
    let budget = MemoryBudget(limit: 10_000_000)
    let stream = PipeStream.pair().0
    let driver: StillDriver
    let link: Link
    private(set) var received = 0
    /// Whether each request is answered at once.
    var answers = true

    var inputCapacity: Int { link.session.input.capacity }
    var outputCapacity: Int { link.session.outbox.bytes.capacity }
    var outputIsEmpty: Bool { link.session.outbox.isEmpty }

    convenience init() {
      let driver = StillDriver()
      self.init(driver, EventLoop(driver: driver, name: "memory"))
    }

    init(_ driver: StillDriver, _ loop: EventLoop) {
      self.driver = driver
      link = Link(
        id: 1, stream: stream, isConnected: true, settings: SessionSettings(role: .server),
        on: loop, log: PeerLog(Logger(label: "memory") { _ in SwiftLogNoOpLogHandler() }),
        share: budget.makeShare(on: loop) {})
      turn {
        self.link.start(for: self)
        self.stream.bring(WireFrame.ping().bytes)
      }
      _ = stream.forgetWrites()
    }

    func turn(_ body: @escaping () -> Void) {
      // The loop has no thread: it runs the closure in this call.
      nonisolated(unsafe) let body = body
      link.loop.execute { unsafe body() }
      link.loop.turn(waitingUntil: .distantPast)
    }

    /// Most of a request.
    func bringUnfinished() {
      let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 1_000_000)).bytes
      turn { self.stream.bring(Array(frame.dropLast())) }
    }

    /// A push that the stream does not take.
    func push(_ byteCount: Int = 1_000_000) {
      stream.room = 0
      turn { try? self.link.push(1, [UInt8](repeating: 7, count: byteCount), priority: 0) }
    }

    func link(_ link: Link, received message: Arrival) {
      received += 1
      if message.kind == .request, answers {
        link.session.respond(message.serial, code: .ok, [])
      }
    }
    func link(_ link: Link, did effect: Effect) {}
    func link(_ link: Link, endedWith reason: CloseReason) {}
    func linkWroteAll(_ link: Link) {}
  }

  @Test func `a link that has ended keeps nothing, whoever keeps the link`() {
    let station = Station()
    station.bringUnfinished()
    station.push()
    #expect(station.budget.held > 2_000_000)
    station.turn { station.link.close(.heartbeatLost) }
    #expect(station.inputCapacity == 0)
    #expect(station.outputCapacity == 0)
    #expect(station.budget.held == 0)
  }

  @Test func `an evicted session keeps no input while its peer is told`() {
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

  @Test func `an evicted session keeps no room beside what it still says`() {
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

  @Test func `room that holds nothing is given back`() {
    let station = Station()
    station.answers = false
    station.turn {
      station.stream.offer((0..<1_000).flatMap { WireFrame.request(1, serial: $0 + 50).bytes })
    }
    station.turn {
      for serial: UInt32 in 50..<1_050 { station.link.session.respond(serial, code: .ok, []) }
    }
    let before = station.budget.held
    station.turn { station.link.releaseRoom() }
    #expect(station.budget.held < before - 80_000)
  }

  @Test func `what has left in the end counts no more`() {
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

  @Test func `the memory for a large frame is nobody's in the end`() {
    let station = Station()
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 1_000_000)).bytes
    station.turn { station.stream.bring(Array(frame.prefix(600_000))) }
    #expect(station.inputCapacity > 600_000)
    station.turn { station.stream.bring(Array(frame.dropFirst(600_000))) }
    #expect(station.received == 1)
    #expect(station.inputCapacity == 0)
    #expect(station.link.loop.spareQueue.capacity <= 524_288)
  }

  @Test func `while memory is scarce a peer is not read that leaves answers`() {
    let driver = StillDriver()
    let loop = EventLoop(driver: driver, name: "scarce")
    let stations = [Station(driver, loop), Station(driver, loop)]
    let share = stations[0].budget.makeShare(on: loop) {}
    // The first one's server is at half of what it may hold.
    share.add(open: 4_000_000, outlived: 0)
    for station in stations { station.push(140_000) }
    func ask(_ serial: UInt32) {
      for station in stations {
        station.turn { station.stream.offer(WireFrame.request(1, serial: serial).bytes) }
      }
    }
    ask(50)
    #expect(stations.map(\.received) == [0, 1])
    // The peer takes what waits: it is read again, also while memory is still scarce.
    stations[0].stream.room = .max
    stations[0].turn { stations[0].stream.offerRoom() }
    stations[0].turn { stations[0].stream.offer([]) }
    #expect(stations[0].received == 1)
    #expect(stations[0].outputIsEmpty)
    ask(52)
    #expect(stations.map(\.received) == [2, 2])
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

  @Test func `while jobs wait for another turn, sessions of many requests are not read`() {
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

  // MARK: The budget

  @Test func `handlers that go on leave less to open sessions, but always a quarter`() {
    let budget = MemoryBudget(limit: 1_000)
    let share = budget.makeShare(on: EventLoop(driver: StillDriver(), name: "a")) {}
    share.add(open: 700, outlived: 0)
    #expect(!budget.isShort)
    share.add(open: 0, outlived: 400)
    #expect(budget.isShort && budget.isExhausted)
    share.add(open: -100, outlived: 0)
    #expect(!budget.isShort && !budget.isRelieved)
    share.add(open: -110, outlived: 0)
    #expect(budget.isRelieved)
    share.add(open: -240, outlived: 1_000)
    #expect(!budget.isShort)
    share.add(open: 1, outlived: 0)
    #expect(budget.isShort)
  }

  @Test func `room is made until there is enough, also while other sessions take more`() {
    let budget = MemoryBudget(limit: 1_000)
    let loops = (0..<2).map { EventLoop(driver: StillDriver(), name: "\($0)") }
    final class Shares {
      var all: [MemoryShare] = []
      var calls: [Int] = []
    }
    let shares = Shares()
    // All runs on this thread.
    nonisolated(unsafe) let held = shares
    for (index, loop) in loops.enumerated() {
      let share = budget.makeShare(on: loop) {
        let shares = unsafe held
        shares.calls.append(index)
        shares.all[index].add(open: index == 0 ? -100 : -500, outlived: 0)
        // The other one takes more than was freed.
        if index == 0 { shares.all[1].add(open: 400, outlived: 0) }
      }
      shares.all.append(share)
    }
    shares.all[0].add(open: 600, outlived: 0)
    shares.all[1].add(open: 200, outlived: 0)
    for _ in 0..<4 { for loop in loops { loop.turn(waitingUntil: .distantPast) } }
    #expect(shares.calls == [0, 1])
    #expect(!budget.isShort)
  }
}
