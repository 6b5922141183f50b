// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

/// Broadcasts of items with numbers, which streams that were cut off take up again.
@Suite struct ItemBroadcastTests {
  private typealias Broadcast = ItemBroadcast<[UInt8]>

  private static func route(_ broadcast: Broadcast, on server: LongLinkServer) {
    server.routeStream(NumberLog.type, .responseItems) { request, _, writer in
      try await broadcast.send(to: writer, after: NumberLog.number(request.body))
      return []
    }
  }

  private static func publish(_ count: Int = 1, on broadcast: Broadcast) throws {
    for _ in 0..<count { _ = try broadcast.publish(numbered: NumberLog.bytes) }
  }

  @Test func `numbers rise by one, and by default are later than those of an earlier run`()
    throws
  {
    let first = ItemBroadcast<Note>(.dropOldest(1))
    let number = try first.publish(Note(1))
    #expect(try first.publish(Note(2)) == number + 1)
    let made = Mutex<UInt64>(0)
    let third = try first.publish(numbered: { number in
      made.withLock { $0 = number }
      return Note(3)
    })
    #expect(third == number + 2 && made.withLock { $0 } == third)
    #expect(try ItemBroadcast<Note>(.close(1)).publish(Note(1)) > number)
    #expect(try ItemBroadcast<Note>(.close(1), numberedFrom: 7).publish(Note(1)) == 7)
    // 2020 to 2255, in microseconds: JavaScript's numbers hold it.
    #expect((1_577_836_800_000_000..<9_007_199_254_740_992).contains(number))
  }

  @Test func `in a simulation, the first number is the same in each run`() async throws {
    let numbers = Tally<UInt64>()
    for _ in 0..<2 {
      try await Stage.simulate { _, simulation in
        simulation.calendar = 1_800_000_000
        try await simulation.sleep(for: .milliseconds(250))
        let broadcast = Broadcast(.close(1))
        numbers.add(broadcast.lastNumber + 1)
        #expect(try broadcast.publish([1]) == broadcast.lastNumber)
      }
    }
    #expect(numbers.elements == [1_800_000_000_250_000, 1_800_000_000_250_000])
  }

  @Test func `a stream can begin with all that is remembered`() async throws {
    let broadcast = Broadcast(.close(64), remembering: 3, numberedFrom: 1)
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { server in
        server.routeStream(NumberLog.type, .responseItems) { _, _, writer in
          try await broadcast.sendRemembered(to: writer)
          return []
        }
      }
      let client = try stage.client(of: server)
      for (published, expected) in [(0, 1...1), (1, 1...3), (3, 4...7)] {
        try Self.publish(published, on: broadcast)
        let items = Tally<UInt64>()
        let reading = stage.spawn {
          for try await item in client.stream(NumberLog.type, []) {
            items.add(NumberLog.number(item))
          }
        }
        try await stage.until { broadcast.subscribers == 1 }
        if published == 0 {
          try Self.publish(on: broadcast)
        } else {
          try await stage.until { items.count == expected.count - 1 }
          try Self.publish(on: broadcast)
        }
        try await stage.until { items.count == expected.count }
        #expect(items.elements == Array(UInt64(expected.lowerBound)...UInt64(expected.upperBound)))
        reading.cancel()
        try await stage.until { broadcast.subscribers == 0 }
      }
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `subscribers that come back get each item once, in order`(seed: UInt64) async throws {
    let broadcast = Broadcast(.close(1_000), remembering: 1_000, numberedFrom: 1)
    try await Stage.simulate(seed: seed) { stage, simulation in
      let server = try await stage.serve(setUp: { Self.route(broadcast, on: $0) })
      try Self.publish(on: broadcast)
      let readers = try (0..<3).map { _ in
        let client = try stage.client(of: server)
        // After the first item: all are remembered.
        let stream = client.stream(
          NumberLog.type, resuming: { last in NumberLog.bytes(max(1, NumberLog.number(last))) })
        return stage.spawn {
          var (next, stream) = (2 as UInt64, stream)
          while next <= 400, let item = try await stream.next() {
            #expect(NumberLog.number(item) == next)
            next += 1
            try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...100)))
          }
          return next
        }
      }
      while try Self.next(of: broadcast) < 400 {
        try await simulation.sleep(for: .milliseconds(simulation.random(in: 0...300)))
        switch simulation.random(in: 0...30 as ClosedRange<Int>) {
        case 0: simulation.network.loseAllLinks()
        case 1: for peer in await server.peers() { peer.close() }
        default: break
        }
      }
      for reader in readers { #expect(try await reader.value == 401) }
      try await stage.until { broadcast.subscribers == 0 }
    }
  }

  private static func next(of broadcast: Broadcast) throws -> UInt64 {
    try broadcast.publish(numbered: NumberLog.bytes)
  }

  @Test func `who asks for what was forgotten is told, and may begin anew`() async throws {
    let broadcast = Broadcast(.close(64), remembering: 10, numberedFrom: 100)
    try await Stage.serving {
      Self.route(broadcast, on: $0)
    } _: { stage, server, client in
      try Self.publish(20, on: broadcast)  // 100 to 119: the last ten begin with 110
      for (number, code) in [
        (108, 410), (1, 410), (99, 410), (120, 410), (UInt64.max, 410),
      ] as [(UInt64, ResponseCode)] {
        let error = try await failure {
          for try await _ in client.stream(NumberLog.type, NumberLog.bytes(number)) {}
        }
        #expect(error.response == code && error.itemsReceived == 0, "\(number): \(error)")
        #expect(error.delivery == .answered && error.detail.contains("\(number)"), "\(error)")
      }
      let fits = client.stream(NumberLog.type, NumberLog.bytes(109))
      var iterator = fits.makeAsyncIterator()
      for number in 110..<120 as Range<UInt64> {
        #expect(NumberLog.number(try await iterator.next()) == number)
      }
      // Cut off, with more published than is remembered.
      var stream = client.stream(
        NumberLog.type, resuming: { NumberLog.bytes(NumberLog.number($0)) },
        retryingWhen: { $0.response == .gone }
      ).events
      let first = stage.spawn { [stream] in
        var stream = stream
        return try await stream.next()
      }
      try await stage.until { broadcast.subscribers == 2 }
      try Self.publish(on: broadcast)
      guard case .item? = try await first.value else {
        Issue.record("the item is missing")
        return
      }
      for peer in await server.peers() { peer.close() }
      try await stage.until { broadcast.subscribers == 0 }
      try Self.publish(11, on: broadcast)
      let next = stage.spawn { [stream] in
        var stream = stream
        return try await stream.next()
      }
      try await stage.until { broadcast.subscribers == 1 }
      let number = try Self.next(of: broadcast)
      guard case .resumed(_, let attempts)? = try await next.value,
        case .item(let item)? = try await stream.next()
      else {
        Issue.record("it was not resumed")
        return
      }
      #expect(attempts >= 2 && NumberLog.number(item) == number)
    }
  }

  @Test func `what is remembered is bounded in bytes`() async throws {
    let broadcast = Broadcast(.close(64), remembering: 1_000, bytes: 100, numberedFrom: 1)
    try await Stage.serving {
      Self.route(broadcast, on: $0)
    } _: { _, _, client in
      for size in [60, 60, 40, 0, 0] {
        try broadcast.publish([UInt8](repeating: 1, count: size))
      }
      var iterator = client.stream(NumberLog.type, NumberLog.bytes(1)).makeAsyncIterator()
      for size in [60, 40, 0, 0] { #expect(try await iterator.next()?.count == size) }
      try broadcast.publish([UInt8](repeating: 1, count: 101))
      // It is sent, and not remembered.
      #expect(try await iterator.next()?.count == 101)
      let error = try await failure {
        for try await _ in client.stream(NumberLog.type, NumberLog.bytes(5)) {}
      }
      #expect(error.response == .gone)
      try broadcast.publish([7])
      var last = client.stream(NumberLog.type, NumberLog.bytes(6)).makeAsyncIterator()
      #expect(try await last.next() == [7])
    }
  }

  @Test func `a stream that is slower than what is remembered ends with 410`() async throws {
    let broadcast = Broadcast(.close(64), remembering: 200, numberedFrom: 1)
    try await Stage.serving {
      Self.route(broadcast, on: $0)
    } _: { stage, _, client in
      for _ in 0..<200 { try broadcast.publish([UInt8](repeating: 1, count: 500)) }
      var iterator = client.stream(
        NumberLog.type, NumberLog.bytes(1), options: StreamOptions(window: 1_024)
      ).makeAsyncIterator()
      #expect(try await iterator.next() != nil)
      for _ in 0..<200 { try broadcast.publish([UInt8](repeating: 2, count: 500)) }
      var count = 1
      let error = try await failure {
        while let item = try await iterator.next() {
          #expect(item[0] == 1)
          count += 1
        }
      }
      #expect(error.response == .gone && count < 200, "\(error)")
      #expect(broadcast.subscribers == 0)
    }
  }

  @Test func `items that threads publish while others subscribe come once, in order`()
    async throws
  {
    let broadcast = Broadcast(.close(100_000), remembering: 100_000, numberedFrom: 1)
    try await Stage.serving(in: .loopback) {
      Self.route(broadcast, on: $0)
    } _: { _, _, client in
      try Self.publish(on: broadcast)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
          group.addTask { try Self.publish(2_000, on: broadcast) }
          group.addTask {
            var next: UInt64 = 2
            for try await item in client.stream(NumberLog.type, NumberLog.bytes(1)) {
              guard NumberLog.number(item) == next else {
                Issue.record("\(NumberLog.number(item)) in place of \(next)")
                return
              }
              if next == 4_001 { return }
              next += 1
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}
