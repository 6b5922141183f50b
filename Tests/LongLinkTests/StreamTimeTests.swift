// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// The times that bound the waits of a stream, and its end when a server drains.
@Suite struct StreamTimeTests {
  /// A client of a server whose only place is taken by `first`. Later, the route 20 counts bytes.
  private func busy(
    _ stage: Stage, readsAfter pause: Duration = .zero
  ) async throws -> (client: LongLinkClient, first: RequestTask<[UInt8]>) {
    let server = try await stage.serve { server in
      server.routeBasics()
      server.routeStream(20, .requestItems) { request, items, _ in
        try await request.clock.sleep(for: pause)
        var count = 0
        for try await item in items { count += item.count }
        return Array("\(count)".utf8)
      }
    } configure: {
      $0.limits.maxInFlight = 1
    }
    let client = try stage.client(of: server)
    try await client.connect()
    let first = try await stage.hang(client, on: server)
    return (client, first)
  }

  @Test func `a write has its whole time, however long those before it waited`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, first) = try await busy(stage, readsAfter: .seconds(5))
      let options = StreamOptions(itemTimeout: .seconds(10))
      let stream = stage.spawn {
        try await client.sendItems(20, [], options: options) { writer in
          try await writer.write([1])
          try await writer.write([UInt8](repeating: 2, count: 100_000))
        }
      }
      // Eight of the ten seconds.
      try await simulation.sleep(for: .seconds(8))
      first.cancel()
      #expect(try await stream.value == Array("100001".utf8))
    }
  }

  @Test func `a write has its own time after the one before it was cancelled`() async throws {
    try await Stage.simulate { stage, simulation in
      let (client, first) = try await busy(stage)
      let options = StreamOptions(itemTimeout: .seconds(10))
      let stream = stage.spawn {
        try await client.sendItems(20, [], options: options) { writer in
          try await withThrowingTaskGroup(of: Void.self) { later in
            later.addTask {
              try await simulation.sleep(for: .seconds(9))
              try await writer.write([2, 2])
            }
            await withTaskGroup(of: Void.self) { earlier in
              earlier.addTask { try? await writer.write([1]) }
              try? await simulation.sleep(for: .milliseconds(9_500))
              earlier.cancelAll()
            }
            try await later.waitForAll()
          }
        }
      }
      try await simulation.sleep(for: .seconds(12))
      first.cancel()
      #expect(try await stream.value == Array("2".utf8))
    }
  }

  /// When the task is cancelled that writes the item that nobody takes.
  enum Cancellation: CaseIterable {
    case beforeTheReturn
    case afterTheReturn
  }

  @Test(arguments: Cancellation.allCases)
  func `an item that the peer never takes is bounded after its handler has returned`(
    _ cancellation: Cancellation
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeBasics()
        server.routeStream(10, .responseItems, itemTimeout: .seconds(5)) { request, _, writer in
          try await writer.write([UInt8](repeating: 1, count: 1_000))
          let write = stage.spawn {
            try await writer.write([UInt8](repeating: 1, count: 5_000))
          }
          try await request.clock.sleep(for: .seconds(1))
          // The connection has taken the item; only the wait for it ends.
          if cancellation == .beforeTheReturn { write.cancel() }
          stage.spawn {
            try await simulation.sleep(for: .seconds(1))
            write.cancel()
          }
          return []
        }
      } configure: {
        $0.limits.maxInFlight = 1
      }
      let client = try stage.client(of: server)
      try await client.connect()
      var iterator = client.stream(10, [], options: StreamOptions(window: 1_024))
        .makeAsyncIterator()
      try await simulation.sleep(for: .seconds(5))
      #expect(await server.counters().requestsRunning == 1)
      try await simulation.sleep(for: .seconds(2))
      #expect(await server.counters().requestsRunning == 0)
      #expect(try await client.request(.echo, [7]) == [7])
      do {
        while try await iterator.next() != nil {}
        Issue.record("it should have failed")
      } catch let error as LongLinkError {
        // The handler had returned a success, so this is not its response.
        #expect(error.response == .deadlinePassed && error.delivery == .sent)
      }
    }
  }

  @Test func `an item that the peer takes slowly is not given up`() async throws {
    try await Stage.serving { server in
      server.routeStream(10, .responseItems, itemTimeout: .seconds(5)) { _, _, writer in
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<10 {
            group.addTask { try? await writer.write([UInt8](repeating: 1, count: 1_000)) }
          }
          await Task.yield()
        }
        return []
      }
    } _: { stage, _, client in
      let options = StreamOptions(window: 1_024)
      var iterator = client.stream(10, [], options: options).makeAsyncIterator()
      for _ in 0..<10 {
        let item = try await iterator.next()
        #expect(item?.count == 1_000)
        try await stage.clientLoop.sleep(for: .seconds(3))
      }
      let end = try await iterator.next()
      #expect(end == nil)
    }
  }

  @Test func `all streams learn of the end of a drain, although their items wait`() async throws {
    try await Stage.simulate { stage, simulation in
      simulation.network.conditions = LinkConditions(bandwidth: 1_000_000)
      let server = try await stage.serve { server in
        server.routeStream(10, .responseItems) { _, _, writer in
          for _ in 0..<1_000_000 { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
          return []
        }
      }
      let client = try stage.client(of: server)
      try await client.connect()
      let streams = (0..<10).map { _ in
        stage.spawn { for try await _ in client.stream(10, []) {} }
      }
      try await simulation.sleep(for: .milliseconds(300))
      #expect(await server.counters().requestsRunning == 10)
      await server.shutDown(within: .milliseconds(1))
      for stream in streams {
        let error = try await failure { try await stream.value }
        #expect(error.closeReason == .goneAway(.draining) && error.delivery == .sent, "\(error)")
      }
    }
  }

  @Test(arguments: [false, true])
  func `a drain ends a second after its bound at the latest`(isReading: Bool) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeStream(10, .responseItems) { _, _, writer in
          while true { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
        }
      }
      let client = try await SimulatedClient.connect(
        to: server.addresses[0], on: stage.clientLoop)
      try await client.sayHello(
        .hello(features: [.metadata, .fragments, .streams], streamCredit: 1_048_576))
      _ = try await client.openStream(10, credit: 1_000_000)
      try await stage.until { await server.counters().requestsRunning == 1 }
      if !isReading { client.stopReading() }
      try await simulation.sleep(for: .seconds(1))
      let start = stage.clientLoop.clock.now
      await server.shutDown(within: .seconds(9))
      let time = start.duration(to: stage.clientLoop.clock.now)
      #expect(time >= .seconds(9) && time <= .seconds(10), "\(time)")
      client.close()
    }
  }
}
