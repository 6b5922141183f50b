// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// A short link's two connections, joined in memory. The vectors have each rule of receiving.
@Suite struct ShortExchangeTests {
  private func pair(
    cutting: Cutting = .whole, seed: UInt64 = 1,
    server change: (inout ConnectionSettings) -> Void = { _ in }
  ) -> ConnectionPair {
    ConnectionPair(
      client: ConnectionSettings(.client) { $0.isShort = true },
      server: ConnectionSettings(.server) {
        $0.isShort = true
        change(&$0)
      },
      cutting: cutting, seed: seed, isGreeted: false)
  }

  @Test func `hello and request leave together, and the client ends its bytes behind them`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    #expect(client.takeEvents() == [.established])
    client.request(50, [1])
    #expect(client.takeFrames().map(\.kind) == [0x0A, 0x00])
    #expect(client.takeEvents() == [.shutDownWriting])
  }

  @Test func `a body that fails while it is encoded leaves the link to another request`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    #expect(throws: BodyError.self) {
      try client.connection.request(
        50, type: 1, metadata: nil, count: 1, at: client.now
      ) { (_) throws(BodyError) in throw BodyError(.malformed) }
    }
    client.request(51, [1])
    #expect(client.takeFrames().map(\.serial).last == 51)
  }

  @Test(arguments: Cutting.allCases)
  func `an exchange ends on both sides in good order`(_ cutting: Cutting) {
    let pair = pair(cutting: cutting)
    pair.server.echoes = true
    pair.client.request(50, [UInt8](repeating: 7, count: 200_000))
    pair.exchange()
    #expect(
      pair.client.takeEvents().contains(
        .response(50, code: 200, body: [UInt8](repeating: 7, count: 200_000))))
    let server = pair.server.takeEvents()
    #expect(server.suffix(3) == [.abandon(.closedHere), .shutDownWriting, .close(.closedHere)])
    pair.client.connection.shutDown(at: pair.now)
    pair.exchange()
    let isClosed = pair.client.connection.isClosed
    #expect(isClosed)
    let breaksOff = pair.client.connection.breaksOff || pair.server.connection.breaksOff
    #expect(!breaksOff)
  }

  @Test func `a server closes at once if the client's end has come, and lingers if it has not`() {
    let server = Side(ConnectionSettings(.server) { $0.isShort = true })
    server.echoes = true
    server.receive(RawFrame(.hello, serial: 3, body: [0x10, 7]), RawFrame(.request, serial: 50))
    server.flush()
    let lingers = !server.connection.isClosed && server.hasEnded
    #expect(lingers)
    server.pass(to: server.now + 2_000_000_000)
    let isClosed = server.connection.isClosed
    #expect(isClosed)
  }

  @Test func `the client is told by features of the welcome, not held by them`() {
    let pair = pair { $0.features = [.metadata, .fragments] }
    pair.client.stream(50, credit: 4_000)
    pair.exchange()
    let events = pair.client.takeEvents()
    #expect(
      events.contains { event in
        if case .response(50, code: 400, refused: true, _, _) = event { true } else { false }
      }, "\(events)")
    #expect(pair.server.takeEvents().allSatisfy { if case .request = $0 { false } else { true } })
  }

  @Test(arguments: [1, 30_000, 70_000])
  func `items beyond the window are read only as the application takes them`(_ size: Int) {
    let pair = pair()
    pair.client.stream(50, credit: 65_536)
    pair.exchange()
    let count = 400_000 / size > 1_000 ? 10_000 : 400_000 / size
    for number in 0..<count {
      if pair.server.sending.isEmpty {
        pair.server.write(50, [UInt8](repeating: UInt8(number % 251), count: size))
        pair.exchange()
      }
    }
    let holds = pair.client.connection.holdsReading
    #expect(holds)
    // What is held is bounded by the window, and one frame beyond it.
    let held = pair.client.connection.held.open
    #expect(held < 65_536 + 2 * 70_000)
    var taken = 0
    while pair.client.connection.holdsReading {
      pair.client.take(50, 1)
      pair.client.connection.resumedReading(at: pair.now)
      pair.client.drain()
      pair.exchange()
      taken += 1
    }
    #expect(taken > 0)
    #expect(pair.client.peekFrames().isEmpty, "no credit was sent")
  }

  @Test func `an item larger than the window is read to its end`() {
    let pair = pair()
    pair.client.stream(50, credit: 1_024)
    pair.exchange()
    pair.server.write(50, [UInt8](repeating: 1, count: 1_000_000))
    pair.exchange()
    #expect(
      pair.client.takeEvents().contains(.item(50, body: [UInt8](repeating: 1, count: 1_000_000))))
  }

  @Test func `a cancel sends nothing`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    client.stream(50, items: true)
    _ = client.takeFrames()
    _ = client.takeEvents()
    #expect(!client.cancel(50))
    #expect(client.takeFrames().isEmpty)
    client.connection.shutDown(at: client.now)
    client.drain()
    #expect(client.takeEvents() == [.abandon(.closedHere), .close(.closedHere)])
    let breaksOff = client.connection.breaksOff
    #expect(breaksOff)
  }

  @Test func `a server pings while its client waits, and no longer`() {
    let server = Side(ConnectionSettings(.server) { $0.isShort = true })
    server.receive(RawFrame(.hello, serial: 3, body: [0x10, 7]), RawFrame(.request, serial: 50))
    _ = server.takeFrames()
    server.pass(to: server.now + 46_000_000_000)
    #expect(server.takeFrames() == [RawFrame](repeating: RawFrame(.ping), count: 3))
    server.respond(50)
    server.receiveEnd()
    server.flush()
    let isOver = server.connection.isClosed && server.connection.deadline == .distantFuture
    #expect(isOver)
  }

  @Test func `a client has no heartbeat, and no pings of its own`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    client.request(50)
    _ = client.takeFrames()
    client.pass(to: client.now + 3_600_000_000_000)
    client.connection.probe(at: client.now, unacknowledged: 0)
    let isQuiet = client.takeFrames().isEmpty && client.connection.isOpen
    #expect(isQuiet)
  }

  @Test func `too many pings are a violation, which the client does not tell`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    client.request(50)
    _ = client.takeFrames()
    for _ in 0..<101 { client.receive(RawFrame(.ping)) }
    let isClosed = client.connection.isClosed
    #expect(isClosed)
    #expect(client.takeFrames().isEmpty)
    let isTold = client.takeEvents().contains { event in
      if case .abandon(.violation(let violation)) = event {
        violation.rule == .tooManyPings
      } else {
        false
      }
    }
    #expect(isTold)
  }

  @Test func `a draining server refuses by a frame, and says no goaway`() {
    let pair = pair()
    pair.server.connection.goAway(
      code: .draining, reason: "", spread: 0, retryAfter: 0, alternatives: [])
    pair.client.request(50)
    pair.exchange()
    let events = pair.client.takeEvents()
    #expect(
      events.contains { event in
        if case .response(50, code: 503, refused: true, _, _) = event { true } else { false }
      })
    #expect(!events.contains { if case .leaving = $0 { true } else { false } })
  }

  @Test func `wherever the answer is cut, the client has the response or knows that it lacks it`() {
    let whole = pair()
    whole.server.echoes = true
    whole.client.request(50, [1, 2, 3])
    whole.client.flush()
    whole.server.receive(whole.client.takeWire())
    whole.server.flush()
    let answer = whole.server.takeWire()
    for cut in 0...answer.count {
      let client = Side(ConnectionSettings(.client) { $0.isShort = true })
      client.request(50, [1, 2, 3])
      _ = client.takeFrames()
      _ = client.takeEvents()
      client.receive(Array(answer[..<cut]))
      client.receiveEnd()
      let events = client.takeEvents()
      let isAnswered = events.contains { if case .response = $0 { true } else { false } }
      #expect(isAnswered == (cut == answer.count))
      let isClosed = client.connection.isClosed
      #expect(isClosed)
      guard !isAnswered else { continue }
      let isKnown = events.contains { event in
        switch event {
        case .abandon(.noResponse): true
        case .abandon(.violation(let violation)): violation.rule == .truncatedFrame
        default: false
        }
      }
      #expect(isKnown, "cut at \(cut): \(events)")
    }
  }

  @Test func `wherever the request is cut, the server runs it only if it is whole`() {
    let client = Side(ConnectionSettings(.client) { $0.isShort = true })
    client.request(50, [1, 2, 3])
    client.flush()
    let request = client.takeWire()
    for cut in 0...request.count {
      let server = Side(ConnectionSettings(.server) { $0.isShort = true })
      server.receive(Array(request[..<cut]))
      server.receiveEnd()
      let events = server.takeEvents()
      let hasRun = events.contains { if case .request = $0 { true } else { false } }
      #expect(hasRun == (cut == request.count))
      let isOpen = server.connection.isOpen
      #expect(isOpen == hasRun, "cut at \(cut)")
    }
  }
}
