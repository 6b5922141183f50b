// SPDX-License-Identifier: Apache-2.0

import LongLink
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
          .echo, [1], options: RequestOptions(offline: .failUnlessConnecting), on: .connectionLoop
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
    try await Stage.simulate { stage, _ in
      let client = try stage.client(of: try await stage.serve())
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
}
