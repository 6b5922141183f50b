// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Synchronization
import Testing

@testable import LongLinkTransport

@Suite struct PollerTests {
  @Test(arguments: PollerKind.all)
  func `readiness lasts until the bytes are read`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let watch = Watch()
    bench.onLoop {
      server.stream.attach(watch, token: 9)
      server.stream.setInterest(.read)
    }
    bench.poll()
    #expect(watch.calls.isEmpty)
    try client.write([1])
    try bench.turn("readiness", until: { !watch.calls.isEmpty })
    bench.poll()
    bench.poll()
    #expect(watch.calls == Array(repeating: .init(readiness: .read, token: 9), count: 3))
    server.beginReading()
    try bench.turn("the byte", until: { server.received == [1] })
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all, [false, true])
  func `streams that got little in a long turn are the first in the next`(
    poller: PollerKind, drainsFirst: Bool
  ) throws {
    final class Reader: TransportHandler {
      let loop: EventLoop
      var streams: [any Transport] = []
      /// How many of the calls read what there is: there is something in each turn for the others.
      var drained = 0
      var calls: [(token: UInt64, isLittle: Bool)] = []

      init(_ loop: EventLoop) { self.loop = loop }

      func transportReady(_ readiness: Readiness, token: UInt64) {
        calls.append((token, loop.readsLittle()))
        if calls.count <= drained {
          var queue = ByteQueue()
          _ = try? queue.append(capacity: 8) { try streams[Int(token)].read(into: &$0) }
        }
        // The first two take as long as makes a turn a long one.
        guard calls.count == 2 else { return }
        let end = loop.driver.now.advanced(by: .milliseconds(11))
        while loop.driver.now < end {}
      }
    }
    let bench = try Bench(poller)
    let reader = Reader(bench.loop)
    let pairs = try (0..<6).map { _ in try bench.pair() }
    for pair in pairs { try pair.0.write([1]) }
    bench.onLoop {
      for (index, pair) in pairs.enumerated() {
        reader.streams.append(pair.1.stream)
        pair.1.stream.attach(reader, token: UInt64(index))
        pair.1.stream.setInterest(.read)
      }
    }
    while reader.calls.count < pairs.count {
      reader.calls = []
      bench.poll()
    }
    reader.drained = drainsFirst ? 2 : 0
    reader.calls = []
    bench.poll()
    let order = reader.calls.map(\.token)
    #expect(reader.calls.map(\.isLittle) == [false, false, true, true, true, true])
    reader.drained = 0
    reader.calls = []
    bench.poll()
    #expect(reader.calls.map(\.token) == Array(order[2...] + (drainsFirst ? [] : order[..<2])))
    for pair in pairs {
      pair.0.close()
      pair.1.close()
    }
  }

  @Test(arguments: PollerKind.all)
  func `events that are not of interest are not delivered`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let watch = Watch()
    try client.write([1])
    bench.onLoop { server.stream.attach(watch, token: 0) }
    bench.poll()
    #expect(watch.calls.isEmpty)
    bench.onLoop { server.stream.setInterest(.write) }
    try bench.turn("room", until: { !watch.calls.isEmpty })
    #expect(watch.calls == [.init(readiness: .write, token: 0)])
    bench.onLoop { server.stream.setInterest([.read, .write]) }
    try bench.turn("both", until: { watch.calls.last?.readiness == [.read, .write] })
    bench.onLoop { server.stream.setInterest([]) }
    let count = watch.calls.count
    bench.poll()
    #expect(watch.calls.count == count)
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a reset of no interest does not keep the loop busy`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let watch = Watch()
    bench.onLoop {
      server.stream.attach(watch, token: 0)
      server.stream.setInterest(.read)
      server.stream.setInterest([])
      client.stream.reset()
    }
    let waits = bench.driver.systemCalls.waits
    let end = bench.loop.driver.now.advanced(by: .milliseconds(20))
    while bench.loop.driver.now < end { bench.loop.turn(waitingUntil: end) }
    #expect(bench.driver.systemCalls.waits - waits < 5)
    #expect(watch.calls.isEmpty)
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `an interest that stays as it is costs no system call`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let before = bench.driver.systemCalls.controls
    bench.onLoop {
      client.stream.attach(Watch(), token: 0)
      for _ in 0..<10 { client.stream.setInterest(.read) }
      client.stream.setInterest([.read, .write])
      client.stream.setInterest(.read)
    }
    #expect(bench.driver.systemCalls.controls - before == 3)
    client.close()
    #expect(bench.driver.systemCalls.controls - before == 4)
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a second attach replaces the handler and the token`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let (first, second) = (Watch(), Watch())
    bench.onLoop {
      client.stream.attach(first, token: 1)
      client.stream.setInterest(.write)
      client.stream.attach(second, token: 2)
    }
    bench.poll()
    #expect(first.calls.isEmpty)
    #expect(second.calls == [.init(readiness: .write, token: 2)])
    client.close()
    server.close()
  }

  /// Both streams are ready in one wait. The handler that comes first closes the other, whose
  /// number goes to a new stream at once.
  @Test(arguments: PollerKind.all)
  func `a recycled descriptor gets no event of its predecessor`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (first, firstPeer) = try bench.pair()
    let (second, secondPeer) = try bench.pair()
    let listener = try bench.listen()
    let successor = Watch()
    var made: (any Transport)?
    var recycled = false
    let watch = Watch()
    watch.onReady = { _, token in
      guard made == nil else { return }
      let other = token == 1 ? second.stream : first.stream
      let number = (other as? KernelTransport)?.endpoint.descriptor
      other.close()
      made = try? bench.driver.connect(to: listener.localAddress, options: SocketOptions())
      recycled = (made as? KernelTransport)?.endpoint.descriptor == number
      made?.attach(successor, token: 3)
      made?.setInterest(.read)
    }
    bench.onLoop {
      for (token, end) in [first, second].enumerated() {
        end.stream.attach(watch, token: UInt64(token + 1))
        end.stream.setInterest(.read)
      }
    }
    try firstPeer.write([1])
    try secondPeer.write([1])
    try bench.turn("an event", until: { made != nil })
    bench.poll()
    // Another test may have taken the number in between, which makes this run say nothing.
    if recycled { #expect(successor.calls.isEmpty) }
    #expect(watch.calls.allSatisfy { $0.token == watch.calls[0].token })
    bench.onLoop {
      made?.close()
      listener.close()
      for end in [first, second, firstPeer, secondPeer] { end.stream.close() }
    }
  }

  @Test(arguments: PollerKind.all)
  func `more events than were expected are all delivered`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    var ends: [End] = []
    let watch = Watch()
    for token in 0..<100 {
      let client = try bench.connect(to: listener.localAddress)
      bench.onLoop {
        client.stream.attach(watch, token: UInt64(token))
        client.stream.setInterest(.write)
      }
      ends.append(client)
      ends.append(try bench.accept(from: listener))
    }
    var seen: Set<UInt64> { Set(watch.calls.map(\.token)) }
    try bench.turn("all of them", until: { seen.count == 100 })
    bench.onLoop { for end in ends { end.stream.close() } }
    bench.onLoop { listener.close() }
  }

  @Test(arguments: PollerKind.all)
  func `a wait never ends before its deadline`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    for microseconds in [1, 500, 1500, 2999] {
      let deadline = bench.driver.now.advanced(by: .microseconds(microseconds))
      bench.driver.wait(until: deadline)
      #expect(bench.driver.now >= deadline)
    }
  }

  @Test(arguments: PollerKind.all)
  func `a wait ends in time whatever was waited for before`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    for former in [Duration.milliseconds(1), .milliseconds(3), .seconds(3600)] {
      // Given up before its time.
      bench.driver.wake()
      bench.driver.wait(until: bench.driver.now.advanced(by: former))
      let deadline = bench.driver.now.advanced(by: .milliseconds(20))
      var waits = 0
      while bench.driver.now < deadline {
        bench.driver.wait(until: deadline)
        waits += 1
      }
      #expect(waits < 10)
    }
  }

  @Test(arguments: PollerKind.all)
  func `a wake-up ends the next wait, and one wait alone`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    for _ in 0..<100 { bench.driver.wake() }
    bench.driver.wait(until: nil)
    let deadline = bench.driver.now.advanced(by: .milliseconds(2))
    bench.driver.wait(until: deadline)
    #expect(bench.driver.now >= deadline)
  }

  @Test(arguments: PollerKind.all)
  func `a loop that sleeps is woken by another thread`(poller: PollerKind) async throws {
    let loop = try EventLoop(configuration: .init(poller: poller))
    for round in 0..<200 {
      let answer = await withCheckedContinuation { continuation in
        loop.execute { continuation.resume(returning: round) }
      }
      #expect(answer == round)
    }
    loop.shutDown()
  }

  @Test(arguments: PollerKind.all)
  func `a stream of a loop that was shut down can still be closed`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    client.beginReading()
    bench.onLoop { bench.driver.close() }
    client.close()
    server.close()
    #expect(throws: SocketError.self) { try bench.listen() }
    #expect(throws: SocketError.self) { try bench.connect(to: .ipv4(127, 0, 0, 1, port: 1)) }
  }
}
