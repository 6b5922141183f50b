// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkDriver
import LongLinkServer
import LongLinkTesting
import Testing

/// Requests that their callers do not want any more.
@Suite struct CancellationTests {
  @Test func `a task group can tell its first failure from what it has cancelled`() async throws {
    let errors = Tally<any Error>()
    try await Stage.pair { stage, _, client in
      let loop = stage.clientLoop
      await withTaskGroup(of: Void.self) { group in
        let works: [@Sendable () async throws -> Void] = [
          { _ = try await client.request(.hang, [], options: .patient) },
          { for try await _ in client.stream(15, []) { try await loop.sleep(for: .seconds(1)) } },
          { try await loop.sleep(for: .seconds(1_000)) },
          { throw CancellationError() },
          {
            try await loop.sleep(for: .seconds(2))
            _ = try await client.request(.fail, [])
          },
        ]
        for work in works {
          group.addTask {
            do {
              try await work()
            } catch {
              errors.add(error)
            }
          }
        }
        await errors.reached(2)
        group.cancelAll()
      }
      let failures = errors.elements.filter { !$0.isCancellation }
      #expect(errors.count == 5)
      #expect(failures.count == 1 && (failures[0] as? LongLinkError)?.code == .rejected)
      // The peer's own code for it is an answer.
      let answer = LongLinkError(
        .rejected, delivery: .answered, doing: "test", response: .cancelled)
      #expect(!(answer as any Error).isCancellation)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a task that was cancelled before sends no request`(_ environment: TestEnvironment)
    async throws
  {
    try await Stage.pair(in: environment) { stage, server, client in
      try await client.connect()
      let gate = Latch()
      let task = stage.spawn {
        await gate.wait()
        return try await failure { try await client.request(.echo, [1]) }
      }
      task.cancel()
      gate.open()
      let error = try await task.value
      #expect(error.code == .cancelled)
      #expect(error.delivery == .notSent)
      #expect(await server.counters().connections.requestsReceived == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a request that waits for a connection`(_ environment: TestEnvironment) async throws {
    try await Stage.run(environment) { stage in
      let client = try stage.client(to: [.host("127.0.0.1", port: 1)])
      let handle = client.submit(.echo, [1])
      let task = stage.spawn { try await failure { try await client.request(.echo, [2]) } }
      try await stage.until { await client.counters().requestsOpen == 2 }
      handle.cancel()
      task.cancel()
      for error in [try await failure { try await handle.value }, try await task.value] {
        #expect(error.code == .cancelled)
        #expect(error.delivery == .notSent)
      }
      #expect(await client.counters().requests.cancelled == 2)
    }
  }

  @Test func `a request that was not yet written is taken back`() async throws {
    let received = Tally<[UInt8]>()
    try await Stage.serving { server in
      server.route(.echo) { request in
        received.add(request.body)
        return request.body
      }
    } _: { _, server, client in
      try await client.connect()
      // All in one turn of the loop, at the end of which one write takes what is left.
      let tasks = await client.loop.run {
        let tasks = (0..<5).map { client.submit(.echo, [UInt8($0)]) }
        for index in [0, 2, 4] { tasks[index].cancel() }
        return tasks
      }
      for index in [0, 2, 4] {
        let error = try await failure { try await tasks[index].value }
        #expect(error.code == .cancelled)
        #expect(error.delivery == .notSent)
      }
      for index in [1, 3] { #expect(try await tasks[index].value == [UInt8(index)]) }
      #expect(received.elements == [[1], [3]])
      let counters = await server.counters().connections
      #expect(counters.requestsReceived == 2)
      #expect(counters.cancelsReceived == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a sent request is given up and the server is not told`(_ environment: TestEnvironment)
    async throws
  {
    let (began, goOn) = (Latch(), Latch())
    try await Stage.serving(in: environment) { server in
      server.route(.echo) { request in
        began.open()
        await goOn.wait()
        #expect(!Task.isCancelled)
        return request.body
      }
      server.route(4) { $0.body }
    } _: { stage, server, client in
      let handle = client.submit(.echo, [1], options: RequestOptions(cancelsAtPeer: false))
      await began.wait()
      handle.cancel()
      let error = try await failure { try await handle.value }
      #expect(error.code == .cancelled)
      #expect(error.delivery == .sent)
      goOn.open()
      // The late answer is dropped and counted, and comes before this one.
      try await stage.until { await server.counters().requestsRunning == 0 }
      #expect(try await client.request(4, [2]) == [2])
      #expect(await client.counters().requests.lateReplies == 1)
      let counters = await server.counters().connections
      #expect(counters.cancelsReceived == 0)
      #expect(counters.handlersCancelled == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `the server's handler is cancelled with the request`(_ environment: TestEnvironment)
    async throws
  {
    let (began, cancelled) = (Tally<Void>(), Tally<Void>())
    try await Stage.serving(in: environment) { server in
      server.route(.hang) { request in
        began.add(())
        do {
          try await request.clock.sleep(for: .seconds(1_000_000))
        } catch {
          cancelled.add(())
          throw error
        }
        return request.body
      }
    } _: { stage, server, client in
      let options = RequestOptions(timeout: .seconds(1_000))
      let handle = client.submit(.hang, [1], options: options)
      let task = stage.spawn {
        try await failure { try await client.request(.hang, [2], options: options) }
      }
      await began.reached(2)
      #expect(await server.counters().requestsRunning == 2)
      handle.cancel()
      task.cancel()
      for error in [try await failure { try await handle.value }, try await task.value] {
        #expect(error.code == .cancelled)
        #expect(error.delivery == .sent)
      }
      await cancelled.reached(2)
      try await stage.until { await server.counters().connections.droppedResponses == 2 }
      let counters = await server.counters()
      #expect(counters.requestsRunning == 0)
      #expect(counters.connections.handlersCancelled == 2)
      #expect(counters.connections.cancelsReceived == 2)
      #expect(counters.connections.responsesSent == 0)
      #expect(await client.counters().connections.cancelsSent == 2)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `cancelling after the answer changes nothing`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { _, _, client in
      let handle = client.submit(.echo, [1])
      let answer = try await handle.value
      #expect(answer == [1])
      handle.cancel()
      #expect(try await handle.value == [1])
      let counters = await client.counters()
      #expect(counters.requests.cancelled == 0)
      #expect(counters.connections.cancelsSent == 0)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `cancelling the task that awaits a handle cancels its request`(
    _ environment: TestEnvironment
  )
    async throws
  {
    try await Stage.pair(in: environment) { stage, _, client in
      let handle = client.submit(
        .hang,
        [1],
        options: RequestOptions(timeout: .seconds(1_000))
      )
      let waiter = stage.spawn { try await failure { try await handle.value } }
      try await stage.until { await handle.state == .waiting }
      waiter.cancel()
      #expect(try await waiter.value.code == .cancelled)
      #expect(await handle.state == .completed)
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a large request is cancelled on its way`(_ environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { stage, server, client in
      try await client.connect()
      let body = [UInt8](repeating: 7, count: 8_000_000)
      // Whether all of it has left or not, the server is told.
      let options = RequestOptions(timeout: .seconds(1_000))
      let handle = client.submit(.hang, body, options: options)
      try await stage.until { await handle.state != .created }
      handle.cancel()
      let error = try await failure { try await handle.value }
      #expect(error.code == .cancelled)
      #expect(try await client.request(.echo, [1]) == [1])
      // The rest of it is not owed: the server has forgotten what had come.
      try await stage.until { await server.counters().requestsRunning == 0 }
    }
  }
}
