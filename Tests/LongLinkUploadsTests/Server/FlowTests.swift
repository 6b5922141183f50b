// SPDX-License-Identifier: Apache-2.0

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
          await threads.run(on: loop) { tally.work(number) }
        }
      }
      var sum = 0
      for await number in group { sum += number }
      #expect(sum == 500 * 499 / 2)
    }
    let (most, order) = tally.state.withLock(of: tally) { ($0.most, $0.order) }
    #expect(most <= 2 && order.sorted() == Array(0..<500))
  }

  @Test func `in a simulation a call is made at once`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let tally = Tally()
      FileThreads(1).start(on: simulation.mainLoop) { _ = tally.work(7) }
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
