// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem
import LongLinkCore
import Testing

@testable import LongLinkTransport

/// A loop waits a little for work that is likely to come from other threads.
struct LingerTests {
  private let driver = ManualDriver()
  private let loop: EventLoop

  init() {
    loop = EventLoop(driver: driver, name: "linger")
  }

  /// Hands work over as another thread does.
  private func handOver(_ work: @escaping @Sendable () -> Void = {}) {
    let current = unsafe cll_current_loop()
    cll_set_current_loop(nil)
    loop.execute(work)
    unsafe cll_set_current_loop(current)
  }

  /// Runs a turn in which the loop comes to expect work; how often the sockets were looked at.
  private func turn(expecting count: Int, _ body: () -> Void = {}) -> Int {
    withoutActuallyEscaping(body) { body in
      let waits = driver.deadlines.count
      driver.onWait = { [loop] in
        for _ in 0..<count { loop.expectWork() }
        body()
      }
      loop.turn(waitingUntil: .distantPast)
      driver.onWait = nil
      return driver.deadlines.count - waits
    }
  }

  @Test func `work that comes meanwhile is done before the sockets are looked at, once`() {
    var lets = 0
    defer { driver.onLettingOthersRun = nil }
    driver.onLettingOthersRun = {
      lets += 1
      handOver()
    }
    for _ in 0..<3 {
      #expect(turn(expecting: 1) == 1)
      #expect(lets == 0)
      #expect(turn(expecting: 0) == 0)
      #expect(lets == 1)
      lets = 0
    }
    // Work alone is not to keep the loop from its sockets.
    #expect(turn(expecting: 1) == 1)
    driver.onLettingOthersRun = {
      handOver { [loop] in loop.expectWork() }
    }
    #expect((0..<4).map { _ in turn(expecting: 0) } == [0, 1, 0, 1])
  }

  @Test func `work that has come already is not waited for`() {
    var lets = 0
    driver.onLettingOthersRun = { lets += 1 }
    #expect(turn(expecting: 2) { (0..<2).forEach { _ in handOver() } } == 1)
    #expect(turn(expecting: 0) == 1)
    #expect(lets == 0)
  }

  @Test func `after a wait in vain the next waits are skipped`() {
    var lets = 0
    driver.onLettingOthersRun = { [unowned driver] in
      lets += 1
      driver.advance(by: .microseconds(15))
    }
    var waited: [Int] = []
    for number in 0..<40 {
      #expect(turn(expecting: 1) == 1)
      if lets > 0 { waited.append(number) }
      #expect(lets == 0 || lets == 2)
      lets = 0
    }
    #expect(waited == [1, 3, 7, 15, 31])
  }

  @Test func `without other threads there is no wait`() {
    #expect(turn(expecting: 1) == 1)
    #expect(turn(expecting: 0) == 1)
  }
}
