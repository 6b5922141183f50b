// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// Completion handlers on the client's loop.
@Suite struct CallbackTests {
  /// Makes a request again from its own completion, so many times.
  private final class Retrier: Sendable {
    private let client: LongLinkClient
    private let left: Atomic<Int>
    let done = Latch()

    init(_ client: LongLinkClient, times: Int) {
      self.client = client
      left = Atomic(times)
    }

    func request() {
      guard left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 else {
        done.open()
        return
      }
      client.request(.echo, [1], on: .connectionLoop) { result in
        #expect(throws: LongLinkError.self) { try result.get() }
        self.request()
      }
    }
  }

  @Test func `a request that fails at once may be made again from its completion`() async throws {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(to: [.host("127.0.0.1", port: 1)])
      await client.close()
      let retrier = Retrier(client, times: 100_000)
      retrier.request()
      await retrier.done.wait()
      let counters = await client.counters().requests
      #expect(counters.submitted == 100_000 && counters.lost == 100_000)
    }
  }

  /// Runs a task's next step in the call that makes it ready.
  private final class EagerExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      // The test keeps the executor for as long as its task.
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  @Test(arguments: [false, true])
  func `all completions are called before a close returns`(isClosed: Bool) async throws {
    try await Stage.simulate { stage, _ in
      let client = try stage.client(to: [.host("127.0.0.1", port: 1)])
      if isClosed { await client.close() }
      let order = Tally<String>()
      let executor = EagerExecutor()
      // As from another thread: the request has its turn on the loop before the close.
      client.loop.execute {
        client.request(
          .echo, [1], options: RequestOptions(waitsForConnection: false), on: .connectionLoop
        ) { _ in
          order.add("completed")
        }
      }
      let closing = Task(executorPreference: executor) {
        await client.close()
        order.add("closed")
      }
      await closing.value
      #expect(order.elements == ["completed", "closed"])
    }
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }

    func set() { value.store(true, ordering: .relaxed) }
  }

  @Test func `no completion is called within the call that makes the request`() async throws {
    try await Stage.pair { _, _, client in
      try await client.connect()
      let tooLarge = [UInt8](repeating: 0, count: 20_000_000)
      let ends = Tally<LongLinkError.Code?>()
      await client.loop.run {
        for body in [[1], tooLarge] {
          let hasReturned = Flag()
          let task = client.request(.echo, body, on: .connectionLoop) { result in
            #expect(hasReturned.isSet)
            if case .failure(let error) = result { ends.add(error.code) } else { ends.add(nil) }
          }
          #expect(task.serial != nil)
          hasReturned.set()
        }
      }
      await ends.reached(2)
      #expect(ends.elements == [.tooLarge, nil])
    }
  }

  /// Asks a peer again from its own completion, so many times.
  private final class Asker: Sendable {
    private let peer: Peer
    private let left: Atomic<Int>
    let done = Latch()

    init(_ peer: Peer, times: Int) {
      self.peer = peer
      left = Atomic(times)
    }

    func ask() {
      guard left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 else {
        done.open()
        return
      }
      let hasReturned = Flag()
      peer.request(.echo, [1], on: .connectionLoop) { result in
        #expect(hasReturned.isSet)
        guard case .failure(let error) = result, error.code == .closed else { return }
        self.ask()
      }
      hasReturned.set()
    }
  }

  @Test func `a peer that has ended may be asked again from a completion`() async throws {
    try await Stage.pair { stage, server, client in
      try await client.connect()
      let peer = try #require(await server.peers().first)
      await client.close()
      try await stage.until { await server.counters().openConnections == 0 }
      let asker = Asker(peer, times: 100_000)
      peer.loop.execute { asker.ask() }
      await asker.done.wait()
    }
  }

  @Test func `completions are called before their connection has ended`() async throws {
    let order = Tally<String>()
    try await Stage.serving {
      $0.routeBasics()
      $0.onDisconnect { _ in order.add("disconnected") }
    } _: { _, server, client in
      client.onRequest(.hang) { request in
        try await request.clock.sleep(for: .seconds(1_000_000))
        return request.body
      }
      try await client.connect()
      let peer = try #require(await server.peers().first)
      peer.request(.hang, [1], on: .connectionLoop) { _ in order.add("completed") }
      await server.shutDown(within: .zero)
      order.add("shut down")
      #expect(order.elements == ["completed", "disconnected", "shut down"])
    }
  }

  @Test func `a suspend returns after the completions of what it ends`() async throws {
    try await Stage.pair { _, _, client in
      try await client.connect()
      let order = Tally<String>()
      let options = RequestOptions(timeout: .seconds(1_000), waitsForConnection: false)
      client.request(.hang, [1], options: options, on: .connectionLoop) { _ in
        order.add("completed")
      }
      await client.suspend(within: .zero)
      order.add("suspended")
      #expect(order.elements == ["completed", "suspended"])
    }
  }

  @Test(arguments: TestEnvironment.allCases)
  func `a handle shows its request and cancels it`(environment: TestEnvironment) async throws {
    try await Stage.pair(in: environment) { stage, _, client in
      try await client.connect()
      let ends = Tally<LongLinkError.Code?>()
      let begin: @Sendable () -> RequestHandle = {
        client.request(.hang, [1], on: .connectionLoop) { result in
          if case .failure(let error) = result { ends.add(error.code) } else { ends.add(nil) }
        }
      }
      let here = await client.loop.run { begin() }
      let elsewhere = begin()
      for handle in [here, elsewhere] {
        try await stage.until { await handle.state == .waiting }
        #expect(handle.serial != nil && handle.type == .hang)
      }
      let early = begin()
      early.cancel()
      await ends.reached(1)
      #expect(await early.state == .completed)
      #expect(ends.elements == [.cancelled])
      here.cancel()
      elsewhere.cancel()
      await ends.reached(3)
      #expect(ends.elements == [.cancelled, .cancelled, .cancelled])
      for handle in [here, elsewhere] { #expect(await handle.state == .completed) }
      let counters = await client.counters().requests
      #expect(counters.submitted == 3 && counters.cancelled == 3)
    }
  }
}
