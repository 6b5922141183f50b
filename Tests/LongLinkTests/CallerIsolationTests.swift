// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTransport
import Testing

/// Whoever asks gets the answer where it lives.
@Suite struct CallerIsolationTests {
  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `tasks of the global pool`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { stage, _, client in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number: UInt8 in 0..<8 {
          group.addTask(executorPreference: globalConcurrentExecutor) {
            for _ in 0..<50 {
              let answer = try await client.request(.echo, [number])
              #expect(answer == [number])
              #expect(!stage.clientLoop.isCurrent)
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(await client.counters().requests.succeeded == 400)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `tasks on the client's loop never leave it`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number: UInt8 in 0..<8 {
          group.addTask(executorPreference: client.loop) {
            for _ in 0..<50 {
              let answer = try await client.request(.echo, [number])
              #expect(answer == [number])
              #expect(client.loop.isCurrent)
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `an actor on the client's loop stays isolated`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let caller = LoopCaller(client)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number: UInt8 in 0..<8 {
          group.addTask { try await caller.ask(number) }
        }
        try await group.waitForAll()
      }
      #expect(await caller.answers == 8)
    }
  }

  @Test(arguments: TestEnvironment.allCases, [false, true])
  func `writers on an actor of the client's loop are never forgotten`(
    environment: TestEnvironment, isConnected: Bool
  ) async throws {
    try await Stage.serving(in: environment) { server in
      server.routeStream(20, .requestItems) { _, items, _ in
        var counts = [UInt8](repeating: 0, count: 8)
        for try await item in items { counts[Int(item[0])] += 1 }
        return counts
      }
    } _: { _, _, client in
      if isConnected { try await client.connect() }
      // Together they are larger than the window, so that most wait for others.
      let counts = try await LoopCaller(client).send(writers: 8, items: 10, of: 9_000)
      #expect(counts == [UInt8](repeating: 10, count: 8))
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `writers on an actor of the client's loop learn of the end`(
    _ environment: TestEnvironment
  ) async throws {
    try await Stage.serving(in: environment) { server in
      server.routeStream(20, .requestItems) { _, items, _ in
        for try await _ in items { return [7] }
        return []
      }
    } _: { _, _, client in
      let caller = LoopCaller(client)
      for _ in 0..<20 {
        let answer = try await caller.send(writers: 4, items: 100, of: 9_000)
        #expect(answer == [7])
      }
    }
  }

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `the main actor`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      try await askOnMain(client)
    }
  }

  @MainActor private func askOnMain(_ client: LongLinkClient) async throws {
    for number: UInt8 in 0..<20 {
      #expect(try await client.request(.echo, [number]) == [number])
      MainActor.assertIsolated()
    }
  }
}

/// An actor that shares the thread of a client's connection.
private actor LoopCaller {
  private let client: LongLinkClient
  private(set) var answers = 0

  init(_ client: LongLinkClient) {
    self.client = client
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe client.loop.asUnownedSerialExecutor()
  }

  func ask(_ number: UInt8) async throws {
    #expect(try await client.request(.echo, [number]) == [number])
    #expect(client.loop.isCurrent)
    assertIsolated()
    answers += 1
  }

  /// Writes from several tasks at once; returns the response.
  func send(writers: Int, items: Int, of size: Int) async throws -> [UInt8] {
    try await client.sendItems(20, []) { writer in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<writers {
          group.addTask {
            let item = [UInt8](repeating: UInt8(number), count: size)
            for _ in 0..<items { try await self.write(item, to: writer) }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  private func write(_ item: [UInt8], to writer: ItemWriter<[UInt8]>) async throws {
    #expect(client.loop.isCurrent)
    try await writer.write(item)
    assertIsolated()
  }
}
