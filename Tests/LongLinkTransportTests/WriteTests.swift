// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@_spi(Loop) @testable import LongLinkTransport

/// Collects what is appended in a turn and writes it at the turn's end.
private final class Outbox: TurnHandler {
  private let loop: EventLoop
  private let stream: any Transport
  private var pending: [UInt8] = []
  private(set) var turns = 0

  init(_ stream: any Transport, on loop: EventLoop) {
    self.stream = stream
    self.loop = loop
  }

  func append(_ byte: UInt8) {
    if pending.isEmpty { loop.atEndOfTurn(self, token: 0) }
    pending.append(byte)
  }

  func turnEnds(token: UInt64) {
    turns += 1
    let count = (try? unsafe stream.write(pending.span.bytes)) ?? 0
    pending.removeFirst(count)
  }
}

@Suite struct WriteTests {
  @Test(arguments: PollerKind.all)
  func `what one turn appends leaves in one system call`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    server.beginReading()
    let outbox = Outbox(client.stream, on: bench.loop)
    let bound = LoopBound(outbox, on: bench.loop)
    let before = bench.onLoop { bench.loop.systemCalls }
    for byte in 0..<200 {
      bench.loop.execute { bound.value.append(UInt8(byte)) }
    }
    bench.poll()
    #expect(outbox.turns == 1)
    #expect(bench.onLoop { bench.loop.systemCalls }.writes - before.writes == 1)
    try bench.turn("the bytes", until: { server.received.count == 200 })
    #expect(server.received == (0..<200).map { UInt8($0) })
    #expect(bench.onLoop { bench.loop.systemCalls }.reads - before.reads == 1)
    client.close()
    server.close()
  }
}
