// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import Testing

@testable import LongLinkScenarios
@testable import LongLinkTesting

/// The oracles of streams find what they watch for, and nothing else.
@Suite struct StreamOracleTests {
  private let ledger = ItemLedger { LinkInstant(nanoseconds: 0) }

  private var promises: [OraclePromise] { ledger.broken.map(\.promise) }

  /// Records items that are written, from the responder.
  private func write(_ items: [[UInt8]]) {
    for item in items {
      ledger.writes(1, from: .responder, item)
      ledger.wrote(1, from: .responder)
    }
  }

  private func read(_ items: [[UInt8]]) {
    for item in items { ledger.read(1, from: .responder, item) }
  }

  private func error(_ code: LongLinkError.Code, _ delivery: Delivery) -> LongLinkError {
    LongLinkError(code, delivery: delivery, doing: "test")
  }

  // MARK: Items

  @Test func `items that arrive in order, and an end behind them, break no promise`() {
    ledger.opened(1)
    write([[1], [], [1]])
    ledger.finished(1, from: .responder)
    read([[1], [], [1]])
    ledger.readEnd(1, from: .responder)
    #expect(promises == [] && ledger.open == [1])
    ledger.closed(1)
    #expect(ledger.open == [] && ledger.readCount == 3)
    #expect(ledger.openedCount == 1 && ledger.completedCount == 1)
  }

  @Test func `an item that is lost, doubled, changed or made up is found`() {
    write([[1], [2], [3]])
    read([[1], [3]])
    #expect(promises == [.itemsInOrder])
    read([[3]])
    #expect(promises == [.itemsInOrder])
    read([[3]])
    #expect(promises == [.itemsInOrder, .itemsInOrder])
    ledger.writes(1, from: .requester, [7])
    ledger.read(1, from: .requester, [7, 7])
    #expect(promises.count == 3 && promises.last == .itemsInOrder)
  }

  @Test func `an item whose write has failed may arrive or not`() {
    write([[1]])
    ledger.writes(1, from: .responder, [2])
    ledger.finished(1, from: .responder)
    read([[1]])
    ledger.readEnd(1, from: .responder)
    #expect(promises == [])
  }

  @Test func `an end that comes too early is found`() {
    write([[1], [2]])
    read([[1], [2]])
    ledger.readEnd(1, from: .responder)
    #expect(promises == [.streamsComplete])
    ledger.writes(2, from: .requester, [1])
    ledger.wrote(2, from: .requester)
    ledger.finished(2, from: .requester)
    ledger.readEnd(2, from: .requester)
    #expect(promises == [.streamsComplete, .streamsComplete])
  }

  @Test func `an error with the wrong count, or in front of items, is found`() {
    write([[1], [2]])
    read([[1]])
    // A connection that is lost takes items along.
    ledger.readError(
      1, from: .responder, error(.connectionLost, .sent).with(itemsReceived: 1))
    #expect(promises == [])
    ledger.readError(
      1, from: .responder, error(.connectionLost, .sent).with(itemsReceived: 2))
    #expect(promises == [.itemsInOrder])
    ledger.readError(1, from: .responder, error(.rejected, .answered).with(itemsReceived: 1))
    #expect(promises == [.itemsInOrder, .streamsComplete])
  }

  @Test func `a writer that runs ahead by more than a window is found once`() {
    ledger.setWindow(1, from: .responder, bytes: 2_000)
    let item = [UInt8](repeating: 1, count: 984)
    // Two thousand bytes, an item on its way, and what a reader takes at once.
    write(Array(repeating: item, count: 68))
    #expect(promises == [])
    read([item])
    write([item])
    #expect(promises == [])
    write([item, item, item])
    #expect(promises == [.creditKept])
  }

  @Test func `a reader that drops the rest bounds nothing`() {
    ledger.setWindow(1, from: .responder, bytes: 2_000)
    ledger.dropsRest(1, from: .responder)
    write([[UInt8]](repeating: [UInt8](repeating: 1, count: 984), count: 10))
    #expect(promises == [])
  }

  // MARK: Credit on the network

  /// What a watch says about frames that a client and a server write, each of which arrives at once
  /// unless it is withheld.
  private func watch(_ frames: [(Side, WireFrame, arrives: Bool)]) -> [OraclePromise] {
    var watch = CreditWatch()
    let hello = WireFrame.hello(features: [.metadata, .streams], streamCredit: 40)
    let welcome = WireFrame.welcome(features: [.metadata, .streams], streamCredit: 50)
    let all = [(Side.initiator, hello, true), (Side.acceptor, welcome, true)] + frames
    for (side, frame, arrives) in all {
      let bytes = frame.bytes
      var entry = Trace.Entry(time: LinkInstant(nanoseconds: 1), kind: .written, link: 1)
      entry.side = side
      // In two pieces, as the network may take them.
      for piece in [bytes.prefix(5), bytes.dropFirst(5)] {
        entry.value = UInt64(piece.count)
        entry.kind = .written
        watch.observed(entry, Array(piece))
        guard arrives else { continue }
        var arrival = entry
        arrival.kind = .bytesArrived
        arrival.side = side.other
        watch.observed(arrival, [])
      }
    }
    return watch.broken.map(\.promise)
  }

  @Test func `items within the credit break no promise`() {
    let request = WireFrame.streamRequest(7, serial: 50, credit: 34, sendsItems: true)
    let kept = watch([
      (.initiator, request, true), (.initiator, .item(50, [1]), true),
      (.initiator, .item(50, [2]), true), (.initiator, .item(50, []), true),
      (.acceptor, .item(50, [1]), true), (.acceptor, .item(50, [1]), true),
      (.initiator, .credit(50, 16), true), (.acceptor, .item(50, []), true),
    ])
    #expect(kept == [])
  }

  @Test func `an item beyond the credit of the greeting or the request is found`() {
    let request = WireFrame.streamRequest(7, serial: 50, credit: 16, sendsItems: true)
    #expect(
      watch([(.initiator, request, true), (.acceptor, .item(50, [1]), true)]) == [.creditKept])
    let large = WireFrame.item(50, [UInt8](repeating: 1, count: 35))
    #expect(watch([(.initiator, request, true), (.initiator, large, true)]) == [.creditKept])
    #expect(watch([(.initiator, .item(50), true)]) == [.creditKept])
  }

  @Test func `credit counts only once it has arrived`() {
    let request = WireFrame.streamRequest(7, serial: 50, credit: 0)
    #expect(
      watch([
        (.initiator, request, true), (.initiator, .credit(50, 100), false),
        (.acceptor, .item(50), true),
      ]) == [.creditKept])
  }

  @Test func `a timeline names the frames of streams`() {
    let request = WireFrame.streamRequest(7, serial: 50, credit: 9, sendsItems: true)
    #expect(request.label == "request type 7 #50 with items credit 9 \(request.body.count) B")
    #expect(WireFrame.credit(50, 32_768).label == "credit 32768 #50")
    #expect(WireFrame.item(50, [1, 2]).label == "item #50 2 B")
    #expect(WireFrame.end(50).label == "end #50")
  }

  // MARK: A user's own test

  @Test func `an oracle watches the items of a user's own streams`() async throws {
    let simulation = Simulation(seed: 4)
    let findings = try await simulation.run {
      let oracle = Oracle(simulation)
      let loop = simulation.eventLoop(named: "server")
      let server = try LongLinkServer(
        ServerConfiguration(listen: [.host("10.0.0.1", port: 7_000)]), on: [loop])
      server.routeStream(6, .responseItems) { _, _, writer in
        oracle.requests.ran(1)
        for number in 0..<3 as Range<UInt8> {
          oracle.items.writes(1, from: .responder, [number])
          try await writer.write([number])
          oracle.items.wrote(1, from: .responder)
        }
        oracle.items.finished(1, from: .responder)
        return []
      }
      oracle.watch(server, on: [loop], named: "server")
      try await server.start()
      let client = try LongLinkClient(
        ClientConfiguration(servers: [.host("10.0.0.1", port: 7_000)]),
        on: simulation.eventLoop(named: "client"))
      oracle.watch(client, named: "client")
      oracle.requests.asked(1, isStream: true)
      let stream = client.stream(6, [])
      for try await item in stream { oracle.items.read(1, from: .responder, item) }
      oracle.items.readEnd(1, from: .responder)
      oracle.requests.ended(1, .success(stream.response ?? []))
      await client.close()
      await server.shutDown(within: .zero)
      try await simulation.sleep(for: .seconds(5))
      return await oracle.finish()
    }
    #expect(findings == [])
  }
}
