// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLinkTesting
import LongLinkTransport
import Synchronization
import Testing

@testable import LongLinkUploadsServer

@Suite struct FlowTests {
  private final class Tally: Sendable {
    let state = Mutex((now: 0, most: 0, order: [Int]()))

    func work(_ number: Int) -> Int {
      state.withLock(of: self) { state in
        state.now += 1
        state.most = max(state.most, state.now)
        state.order.append(number)
      }
      state.withLock(of: self) { $0.now -= 1 }
      return number
    }
  }

  @Test func `all calls are made, by as many threads as are allowed`() async throws {
    let loop = try EventLoop()
    defer { loop.shutDown() }
    let threads = FileThreads(2)
    let tally = Tally()
    await withTaskGroup(of: Int.self) { group in
      for number in 0..<500 {
        group.addTask {
          await threads.run(of: "\(number % 3)", on: loop) { tally.work(number) }
        }
      }
      var sum = 0
      for await number in group { sum += number }
      #expect(sum == 500 * 499 / 2)
    }
    let (most, order) = tally.state.withLock(of: tally) { ($0.most, $0.order) }
    #expect(most <= 2 && order.sorted() == Array(0..<500))
  }

  /// The owners of steps that were made, in order.
  private final class Order: Sendable {
    let owners = Mutex<[String]>([])
    var now: [String] { owners.withLock { $0 } }

    func add(_ owner: String) { owners.withLock { $0.append(owner) } }
  }

  private final class Job: Sendable {
    private let left: Mutex<Int>
    init(_ steps: Int) { left = Mutex(steps) }

    /// Makes a step; nil if there are more.
    func step() -> Void? {
      left.withLock { left in
        left -= 1
        return left == 0 ? () : nil
      }
    }
  }

  /// Runs jobs on threads, the first of which waits until all were given.
  private func order(
    threads count: Int, _ jobs: [(owner: String, steps: Int)]
  ) async throws -> [String] {
    let loop = try EventLoop()
    defer { loop.shutDown() }
    let threads = FileThreads(count)
    let gate = DispatchSemaphore(value: 0)
    let order = Order()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await threads.run(of: "first", on: loop) { gate.wait() } }
      while !threads.isRunning("first") { await Task.yield() }
      for (index, job) in jobs.enumerated() {
        let rest = Job(job.steps)
        group.addTask {
          await threads.run(of: job.owner, on: loop) { () -> Void? in
            order.add(job.owner)
            return rest.step()
          }
        }
        while threads.waiting != index + 1 { await Task.yield() }
      }
      gate.signal()
    }
    return order.now
  }

  @Test func `owners take turns, however many jobs one has, and however long they are`()
    async throws
  {
    var jobs = [(owner: String, steps: Int)](repeating: ("many", 1), count: 200)
    jobs += [("long", 500), ("honest", 3)]
    let order = try await order(threads: 1, jobs)
    #expect(order.count == 703)
    // One step of each other owner is in front of each of its own.
    let honest = order.prefix(9).filter { $0 == "honest" }
    #expect(honest.count == 3, "\(order.prefix(20))")
  }

  @Test func `the jobs of one owner take turns as well`() async throws {
    let order = try await order(threads: 1, [("a", 100), ("a", 1), ("b", 1)])
    #expect(order.firstIndex(of: "b") == 1 && order.count == 102)
  }

  @Test func `an owner leaves a thread to others, and has one while others wait`() async throws {
    let loop = try EventLoop()
    defer { loop.shutDown() }
    let threads = FileThreads(4)
    let gates = (0..<3).map { _ in DispatchSemaphore(value: 0) }
    let begun = Order()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<5 {
        group.addTask {
          await threads.run(of: "a", on: loop) {
            begun.add("a")
            gates[min(number, 2)].wait()
          }
        }
        while threads.waiting + begun.now.count != number + 1 { await Task.yield() }
      }
      #expect(begun.now == ["a", "a", "a"])
      // It runs although all of the first owner's are stuck.
      await threads.run(of: "b", on: loop) { begun.add("b") }
      #expect(begun.now == ["a", "a", "a", "b"])
      for gate in gates { gate.signal() }
      for _ in 0..<2 { gates[2].signal() }
    }
    #expect(begun.now.count == 6)
  }

  @Test func `in a simulation a call is made at once`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let tally = Tally()
      FileThreads(1).start(of: "a", on: simulation.mainLoop) {
        tally.work(7) == 0
      }
      #expect(tally.state.withLock(of: tally) { $0.order } == [7])
    }
  }

  @Test func `bytes that wait are bounded`() {
    let bytes = WaitingBytes(10)
    #expect(bytes.take(10) && !bytes.take(1))
    bytes.giveBack(4)
    #expect(bytes.take(4) && !bytes.take(1))
  }
}
