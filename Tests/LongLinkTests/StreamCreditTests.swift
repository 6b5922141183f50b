// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import LongLinkTransport
import Testing

/// How far a writer gets while its reader holds items.
@Suite struct StreamCreditTests {
  private static let large = [UInt8](repeating: 2, count: 300_000)

  @Test(arguments: [1, 5, 100], [false, true])
  func `an item comes whole while its reader works on the one before`(
    small: Int, isElsewhere: Bool
  ) async throws {
    let written = Latch()
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { _, _, writer in
        for _ in 0..<small { try await writer.write([1]) }
        try await writer.write(Self.large)
        written.open()
        return []
      }
    } _: { stage, _, client in
      let loop = isElsewhere ? stage.serverLoop : stage.clientLoop
      try await Task(executorPreference: loop) {
        var iterator = client.stream(10, []).makeAsyncIterator()
        for _ in 0..<small {
          let item = try await iterator.next()
          #expect(item == [1])
          // A reader that is slower than its writer.
          try await stage.clientLoop.sleep(for: .milliseconds(100))
        }
        try await stage.clientLoop.sleep(for: .seconds(5))
        #expect(written.isOpen)
        let last = try await iterator.next()
        let end = try await iterator.next()
        #expect(last == Self.large && end == nil)
      }.value
    }
  }

  @Test(arguments: [false, true])
  func `an item comes whole while its handler works on the one before`(
    isElsewhere: Bool
  ) async throws {
    try await Stage.simulate { stage, _ in
      let written = Latch()
      let server = try await stage.serve { server in
        let placement: HandlerPlacement =
          isElsewhere ? .executor(stage.clientLoop) : .connectionLoop
        server.routeStream(20, .requestItems, on: placement) { request, items, _ in
          var iterator = items.makeAsyncIterator()
          let first = try await iterator.next()
          try await request.clock.sleep(for: .seconds(5))
          #expect(first == [1] && written.isOpen)
          let last = try await iterator.next()
          let end = try await iterator.next()
          #expect(last == Self.large && end == nil)
          return [7]
        }
      }
      let client = try stage.client(of: server)
      let response = try await client.sendItems(20, []) { writer in
        try await writer.write([1])
        try await writer.write(Self.large)
        written.open()
      }
      #expect(response == [7])
    }
  }

  @Test func `nothing more comes while whole items wait for their reader`() async throws {
    let written = Latch()
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { _, _, writer in
        for _ in 0..<2 { try await writer.write([1]) }
        try await writer.write(Self.large)
        written.open()
        return []
      }
    } _: { stage, _, client in
      var iterator = client.stream(10, []).makeAsyncIterator()
      try await stage.clientLoop.sleep(for: .seconds(5))
      #expect(!written.isOpen)
      for _ in 0..<2 { _ = try await iterator.next() }
      try await stage.clientLoop.sleep(for: .seconds(5))
      #expect(written.isOpen)
      let last = try await iterator.next()
      let end = try await iterator.next()
      #expect(last == Self.large && end == nil)
    }
  }

  /// How the items of a stream go that has ended.
  enum Leaving: CaseIterable {
    case read
    case dropped
    case droppedElsewhere
    case discarded
  }

  @Test(arguments: Leaving.allCases)
  func `unread items count towards the windows after the response, until they go`(
    _ leaving: Leaving
  ) async throws {
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { _, _, writer in
        for _ in 0..<60 { try await writer.write([UInt8](repeating: 1, count: 1_000)) }
        return []
      }
      server.routeStream(11, [.requestItems, .responseItems]) { _, items, writer in
        for _ in 0..<60 { try await writer.write([UInt8](repeating: 1, count: 1_000)) }
        for try await _ in items {}
        return []
      }
    } client: {
      $0.limits.streamWindows.total = 300_000
    } _: { stage, server, client in
      try await client.connect()
      if leaving == .discarded {
        for _ in 0..<20 {
          _ = try await client.exchange(11, []) { items, _ in
            var iterator = items.makeAsyncIterator()
            _ = try await iterator.next()
          }
        }
        return
      }
      // A reader elsewhere drops its items there.
      let loop = leaving == .droppedElsewhere ? stage.serverLoop : stage.clientLoop
      try await Task(executorPreference: loop) {
        for _ in 0..<3 {
          var iterators: [Items<[UInt8]>] = []
          for _ in 0..<4 {
            var iterator = client.stream(10, []).makeAsyncIterator()
            let item = try await iterator.next()
            #expect(item?.count == 1_000)
            iterators.append(iterator)
          }
          try await stage.clientLoop.sleep(for: .seconds(1))
          #expect(await server.counters().requestsRunning == 0)
          let error = try await failure { for try await _ in client.stream(10, []) {} }
          #expect(error.code == .overloaded && error.delivery == .notSent)
          for index in iterators.indices where leaving == .read {
            var count = 1
            while try await iterators[index].next() != nil { count += 1 }
            #expect(count == 60)
          }
          // Also while the iterators are still there.
          if leaving == .read { for try await _ in client.stream(10, []) {} }
          iterators = []
          try await stage.clientLoop.sleep(for: .seconds(1))
        }
      }.value
      for try await _ in client.stream(10, []) {}
    }
  }
}
