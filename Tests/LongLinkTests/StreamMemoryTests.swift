// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

@testable import LongLinkDriver

/// What the items of a stream hold that its connection does not count.
@Suite struct StreamMemoryTests {
  @Test func `a reader that is always a little behind needs no more memory`() {
    var inbox = ItemInbox()
    // Always between 10 and 20 of them wait, some with memory of their own.
    func turn(_ round: Int) {
      for index in 0..<10 {
        let item = [UInt8(truncatingIfNeeded: round), UInt8(index)]
        if index.isMultiple(of: 3) {
          inbox.append(joined: item, cost: 34)
        } else {
          inbox.append(unsafe item.span.bytes, cost: 18)
        }
      }
    }
    turn(0)
    var early = 0
    for round in 1...10_000 {
      turn(round)
      for index in 0..<10 {
        let next = inbox.removeFirst()
        #expect(next.item == [UInt8(truncatingIfNeeded: round - 1), UInt8(index)])
        #expect(next.cost == (index.isMultiple(of: 3) ? 34 : 18))
      }
      if round == 2_000 { early = inbox.allocatedBytes }
    }
    #expect(inbox.count == 10)
    #expect(inbox.allocatedBytes == early && early < 32_768)
  }

  /// How an exchange ends while its handler runs on.
  enum Ending: CaseIterable {
    case cancel
    case deadline
    case connection
  }

  @Test(arguments: Ending.allCases)
  func `a handler that runs on holds no items of an exchange that has ended`(
    _ ending: Ending
  ) async throws {
    let hasEnded = Latch()
    let counts = Tally<Int>()
    try await Stage.serving { server in
      server.routeStream(17, .requestItems) { _, items, _ in
        var iterator = items.makeAsyncIterator()
        _ = try await iterator.next()
        // Deaf to its cancellation, while all others arrive.
        await hasEnded.wait()
        var count = 0
        while (try? await iterator.next()) != nil { count += 1 }
        counts.add(count)
        return []
      }
    } _: { stage, server, client in
      try await client.connect()
      try await withThrowingTaskGroup(of: Void.self) { group in
        var options = StreamOptions()
        if ending == .deadline { options.timeout = .seconds(3) }
        group.addTask { [options] in
          _ = try? await client.sendItems(17, [], options: options) { writer in
            for _ in 0..<100 { try await writer.write([UInt8](repeating: 1, count: 100)) }
            try await stage.clientLoop.sleep(for: .seconds(10))
          }
        }
        try await stage.clientLoop.sleep(for: .seconds(2))
        #expect(await server.counters().requestsRunning == 1)
        switch ending {
        case .cancel: group.cancelAll()
        case .deadline: break
        case .connection: await client.close()
        }
        try await stage.clientLoop.sleep(for: .seconds(2))
        hasEnded.open()
        await counts.reached(1)
        group.cancelAll()
      }
      #expect(counts.elements == [0])
    }
  }
}
