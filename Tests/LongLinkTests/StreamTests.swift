// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Streams between a client and a server.
@Suite struct StreamTests {
  @Test(arguments: TestEnvironment.allCases)
  func `items arrive in order, and the response behind them`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let stream = client.stream(10, [200])
      var items: [[UInt8]] = []
      for try await item in stream { items.append(item) }
      #expect(items == (0..<200).map { [UInt8($0)] })
      #expect(stream.response == Array("done".utf8))
    }
  }

  @Test(arguments: TestEnvironment.allCases + [.short])
  func `the requester's items arrive, and then the response comes`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let response = try await client.sendItems(11, []) { writer in
        for size in [0, 1, 100_000, 3_000_000] {
          try await writer.write([UInt8](repeating: 1, count: size))
        }
      }
      #expect(response == Array("3100001".utf8))
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `items go both ways at the same time`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let sizes = [1, 70_000, 0, 500_000, 3, 65_536]
      let response = try await client.exchange(12, []) { items, writer in
        var iterator = items.makeAsyncIterator()
        for size in sizes {
          let item = [UInt8](repeating: UInt8(size % 251), count: size)
          try await writer.write(item)
          let echo = try await iterator.next()
          #expect(echo == item)
        }
      }
      #expect(response == [])
    }
  }

  @Test(arguments: [TestEnvironment.simulated, .short])
  func `an error in band comes behind the items, and says how many came`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      var items: [[UInt8]] = []
      let error = try await failure {
        for try await item in client.stream(13, []) { items.append(item) }
      }
      #expect(error.code == .rejected && error.response == 1_234 && error.body == [9])
      #expect(error.delivery == .answered && error.itemsReceived == 2)
      #expect(items == [[1], [2]])
    }
  }

  @Test(arguments: [TestEnvironment.simulated, .short])
  func `an early response ends the writer, and is the result`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.pair(in: environment) { stage, server, client in
      let caught = Mutex<LongLinkError?>(nil)
      let response = try await client.sendItems(14, []) { writer in
        do throws(LongLinkError) {
          while true { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
        } catch {
          caught.withLock { $0 = error }
          throw error
        }
      }
      #expect(response == Array("enough".utf8))
      let error = caught.withLock { $0 }
      #expect(error?.code == .streamEnded && error?.delivery == .answered)
      // A short link ends with its request.
      let links = environment == .short ? 0 : 1
      try await stage.until { await server.counters().openConnections == links }
    }
  }

  @Test func `leaving the loop cancels the handler`() async throws {
    try await Stage.pair { stage, server, client in
      var count = 0
      for try await _ in client.stream(15, []) {
        count += 1
        if count == 100 { break }
      }
      try await stage.until { await server.counters().requestsRunning == 0 }
      #expect(await server.counters().connections.handlersCancelled == 1)
      #expect(try await client.request(.echo, [5]) == [5])
    }
  }

  @Test func `a reader that stops takes no more than its window`() async throws {
    try await Stage.pair { stage, _, client in
      var iterator = client.stream(15, [], options: StreamOptions(window: 20_000))
        .makeAsyncIterator()
      _ = try await iterator.next()
      let before = await client.counters().connections.bytesReceived
      try await stage.clientLoop.sleep(for: .seconds(60))
      let after = await client.counters().connections.bytesReceived
      #expect(after - before < 25_000)
      #expect(try await client.request(.echo, [5]) == [5])
      for _ in 0..<1_000 { #expect(try await iterator.next()?.count == 1_000) }
    }
  }

  @Test func `a lost connection never looks like an end`() async throws {
    try await Stage.pair { _, server, client in
      var iterator = client.stream(15, []).makeAsyncIterator()
      for _ in 0..<10 { _ = try await iterator.next() }
      for peer in await server.peers() { peer.close() }
      var count = 10
      let error = try await failure {
        while try await iterator.next() != nil { count += 1 }
      }
      #expect(error.code == .connectionLost && error.delivery == .sent)
      #expect(error.itemsReceived == UInt64(count))
    }
  }

  @Test func `a request of another shape is refused`() async throws {
    try await Stage.pair { _, _, client in
      let plain = try await failure { try await client.request(10, [1]) }
      #expect(plain.response == .malformed && plain.delivery == .refused)
      let wrong = try await failure { try await client.sendItems(10, [1]) { _ in } }
      #expect(wrong.response == .malformed && wrong.delivery == .refused)
      let streamed = try await failure {
        for try await _ in client.stream(.echo, [1]) {}
      }
      #expect(streamed.response == .malformed && streamed.itemsReceived == 0)
    }
  }

  @Test func `a stream waits for a connection, and has no deadline unless given one`() async throws
  {
    try await Stage.pair { stage, _, client in
      let hung = client.stream(15, [], options: StreamOptions(timeout: .seconds(20)))
      var iterator = hung.makeAsyncIterator()
      let start = stage.clientLoop.clock.now
      let error = try await failure {
        while try await iterator.next() != nil {
          try await stage.clientLoop.sleep(for: .seconds(1))
        }
      }
      #expect(error.code == .deadlineExceeded || error.response == .deadlinePassed)
      #expect(stage.clientLoop.clock.now - start >= 20_000_000_000)
    }
  }

  @Test func `a wait for an item can be bounded`() async throws {
    try await Stage.serving { server in
      server.routeStream(20, .responseItems) { request, _, writer in
        try await writer.write([1])
        try await request.clock.sleep(for: .seconds(1_000))
        return []
      }
      server.routeStream(21, .requestItems, itemTimeout: .seconds(5)) { _, items, _ in
        for try await _ in items {}
        return []
      }
    } _: { stage, server, client in
      let error = try await failure {
        for try await _ in client.stream(20, [], options: StreamOptions(itemTimeout: .seconds(3))) {
        }
      }
      #expect(error.code == .deadlineExceeded && error.itemsReceived == 1)
      let late = try await failure {
        try await client.sendItems(21, []) { writer in
          try await writer.write([1])
          try await stage.clientLoop.sleep(for: .seconds(30))
          try await writer.write([2])
        }
      }
      #expect(late.code == .rejected && late.response == .deadlinePassed)
      try await stage.until { await server.counters().requestsRunning == 0 }
    }
  }

  @Test func `the server streams to the client, and asks it for streams`() async throws {
    try await Stage.pair { stage, server, client in
      client.onStreamRequest(30, [.requestItems, .responseItems]) { _, items, writer in
        for try await item in items { try await writer.write(item + item) }
        return [1]
      }
      try await client.connect()
      try await stage.until { await server.peers().count == 1 }
      let peer = await server.peers()[0]
      let response = try await peer.exchange(30, []) { items, writer in
        var iterator = items.makeAsyncIterator()
        try await writer.write([3])
        #expect(try await iterator.next() == [3, 3])
        writer.finish()
        #expect(try await iterator.next() == nil)
      }
      #expect(response == [1])
    }
  }

  @Test func `items go to a function, one after the other`() async throws {
    try await Stage.pair { stage, _, client in
      let items = Tally<[UInt8]>()
      let outcome = Mutex<Result<[UInt8], LongLinkError>?>(nil)
      client.stream(10, [50], on: .connectionLoop) { item in
        items.add(item)
      } completion: { result in
        outcome.withLock { $0 = result }
      }
      try await stage.until { outcome.withLock { $0 } != nil }
      #expect(items.elements == (0..<50).map { [UInt8($0)] })
      #expect(try outcome.withLock { $0 }?.get() == Array("done".utf8))
    }
  }

  /// Reads one item, waits, and reads the others; returns the first byte of each.
  private static func firstBytes(
    of stream: ItemStream<[UInt8]>, behind latch: Latch, _ stage: Stage
  ) -> Task<[UInt8], any Error> {
    stage.spawn {
      var bytes: [UInt8] = []
      for try await item in stream {
        bytes.append(item[0])
        if bytes.count == 1 { await latch.wait() }
      }
      return bytes
    }
  }

  @Test func `a plain thread reads a stream`() async throws {
    try await Stage.pair(in: .loopback) { _, _, client in
      let outcome = await withCheckedContinuation { continuation in
        PlainThread.run {
          var count = 0
          let response = try? client.streamBlocking(10, [100]) { _ in count += 1 }
          continuation.resume(returning: (count, response))
        }
      }
      #expect(outcome.0 == 100 && outcome.1 == Array("done".utf8))
    }
  }

  @Test func `a broadcast gives every stream the items, and drops for a slow one alone`()
    async throws
  {
    let broadcast = ItemBroadcast<[UInt8]>(.dropOldest(4))
    try await Stage.serving { server in
      server.routeStream(40, .responseItems) { _, _, writer in
        try await broadcast.send(to: writer)
        return []
      }
    } _: { stage, server, client in
      let slow = try stage.client(of: server)
      let latch = Latch()
      latch.open()
      let quick = Self.firstBytes(of: client.stream(40, []), behind: latch, stage)
      let resumed = Latch()
      let late = Self.firstBytes(
        of: slow.stream(40, [], options: StreamOptions(window: 1_024)), behind: resumed, stage)
      try await stage.until { broadcast.subscribers == 2 }
      for number in 0..<100 {
        try broadcast.publish([UInt8](repeating: UInt8(number), count: 500))
        try await stage.clientLoop.sleep(for: .seconds(1))
      }
      broadcast.finish()
      #expect(try await quick.value == (0..<100).map { UInt8($0) })
      resumed.open()
      let numbers = try await late.value
      #expect(numbers.first == 0 && numbers.last == 99)
      #expect(numbers == numbers.sorted() && numbers.count < 20)
      #expect(broadcast.dropped == UInt64(100 - numbers.count))
      #expect(broadcast.subscribers == 0)
    }
  }

  @Test func `a broadcast can end a slow stream in band`() async throws {
    let broadcast = ItemBroadcast<[UInt8]>(.close(4))
    try await Stage.serving { server in
      server.routeStream(40, .responseItems) { _, _, writer in
        try await broadcast.send(to: writer)
        return []
      }
    } _: { stage, _, client in
      let resumed = Latch()
      let late = Self.firstBytes(
        of: client.stream(40, [], options: StreamOptions(window: 1_024)), behind: resumed, stage)
      try await stage.until { broadcast.subscribers == 1 }
      for _ in 0..<100 { try broadcast.publish([UInt8](repeating: 1, count: 500)) }
      resumed.open()
      let error = try await failure { try await late.value }
      #expect(error.response == .overloaded && error.delivery == .answered)
      #expect(broadcast.closed == 1)
    }
  }
}
