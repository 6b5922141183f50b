// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTransport
import Testing

/// Whoever asks gets the answer where it lives.
@Suite struct CallerIsolationTests {
  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `tasks of the global pool`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
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
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
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
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
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

  @Test(arguments: [TestEnvironment.loopback, .unix])
  func `the main actor`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let client = try stage.client(of: try await stage.serve())
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
}
