// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem
import LongLinkCore
import Testing

@testable import LongLinkTransport

@Suite struct TimerTests {
  private let driver = ManualDriver()
  private let journal = Journal()
  private let loop: EventLoop

  init() {
    loop = EventLoop(driver: driver, name: "timers")
  }

  private func onLoop<R>(_ body: () throws -> R) rethrows -> R {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
    defer { unsafe cll_set_current_loop(former) }
    return try body()
  }

  private func schedule(in duration: Duration, token: UInt64) -> LoopTimer {
    onLoop { loop.schedule(at: driver.now.advanced(by: duration), journal, token: token) }
  }

  private func turnUntilIdle() {
    while loop.nextDeadline != nil { loop.turn(waitingUntil: nil) }
  }

  @Test
  func `timers fire in the order of their times, and equal ones in the order of their creation`() {
    for (token, milliseconds) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 0)] {
      _ = schedule(in: .milliseconds(milliseconds), token: UInt64(token))
    }
    turnUntilIdle()
    #expect(journal.entries == ["timer 5", "timer 2", "timer 4", "timer 3", "timer 1"])
  }

  @Test func `a timer fires at its time and not before`() {
    let due = driver.now.advanced(by: .microseconds(2500))
    _ = schedule(in: .microseconds(2500), token: 1)
    var fired: LinkInstant?
    journal.onTimer = { [driver] _ in fired = driver.now }
    turnUntilIdle()
    #expect(fired.map { $0 >= due && $0 < due.advanced(by: .milliseconds(1)) } == true)
  }

  @Test func `a cancelled timer does not fire and lets go of its handler`() {
    var handler: Journal? = Journal()
    weak let remembered = handler
    let timer = onLoop { loop.schedule(at: driver.now, handler!, token: 1) }
    handler = nil
    #expect(remembered != nil)
    onLoop { loop.cancel(timer) }
    #expect(remembered == nil)
    #expect(loop.nextDeadline == nil)
  }

  @Test func `cancelling a timer that has fired does not touch its successor`() {
    let former = schedule(in: .milliseconds(1), token: 1)
    turnUntilIdle()
    let latter = schedule(in: .milliseconds(1), token: 2)
    #expect(former != latter)
    onLoop {
      loop.cancel(former)
      loop.cancel(.none)
    }
    turnUntilIdle()
    #expect(journal.entries == ["timer 1", "timer 2"])
  }

  @Test func `a timer may cancel another one that is due with it`() {
    _ = schedule(in: .milliseconds(1), token: 1)
    let second = schedule(in: .milliseconds(1), token: 2)
    journal.onTimer = { [unowned loop] _ in loop.cancel(second) }
    turnUntilIdle()
    #expect(journal.entries == ["timer 1"])
  }

  @Test func `a timer that asks for another one in the past does not hold the turn up`() {
    journal.onTimer = { [driver, unowned journal, unowned loop] token in
      if token < 5 { _ = loop.schedule(at: driver.now, journal, token: token + 1) }
    }
    _ = schedule(in: .zero, token: 1)
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == ["timer 1"])
    turnUntilIdle()
    #expect(journal.entries.count == 5)
  }

  @Test func `a hundred thousand timers all fire or are cancelled`() {
    let count = 100_000
    var timers: [LoopTimer] = []
    for index in 0..<count {
      // Spread over three days, in no order.
      timers.append(schedule(in: .milliseconds(index &* 2_654_435 % 259_200_000), token: 0))
    }
    onLoop { for index in stride(from: 0, to: count, by: 2) { loop.cancel(timers[index]) } }
    turnUntilIdle()
    #expect(journal.entries.count == count / 2)
  }
}

@Suite struct LoopContainerTests {
  @Test func `a key is never used twice`() {
    var table = SlotTable<Int>()
    var keys: Set<UInt64> = []
    for index in 0..<100 {
      let key = table.insert(index)
      #expect(keys.insert(key).inserted)
      #expect(table[key] == index)
      #expect(table.remove(key) == index)
      #expect(table[key] == nil)
      #expect(table.remove(key) == nil)
    }
    #expect(table.count == 0)
  }

  @Test func `elements keep their keys while others come and go`() {
    var table = SlotTable<Int>()
    let keys = (0..<10).map { table.insert($0) }
    for key in keys where key % 2 == 0 { table.remove(key) }
    table[keys[1]] = 77
    _ = table.insert(100)
    #expect(table[keys[1]] == 77)
    #expect(table[keys[3]] == 3)
    #expect(table.count == 6)
    #expect(table.removeAll().count == 6)
    #expect(table.count == 0)
  }

  @Test func `a ring keeps its order while it grows and wraps`() {
    var ring = Ring<Work>()
    var next: UInt64 = 0
    var expected: UInt64 = 0
    for round in 0..<2000 {
      for _ in 0..<(round % 7 + 1) {
        ring.append(.timer(LoopTimer(key: next)))
        next += 1
      }
      for _ in 0..<(round % 5) where !ring.isEmpty {
        guard case .timer(let timer) = ring.removeFirst() else { continue }
        #expect(timer.key == expected)
        expected += 1
      }
    }
    while !ring.isEmpty {
      guard case .timer(let timer) = ring.removeFirst() else { continue }
      #expect(timer.key == expected)
      expected += 1
    }
    #expect(expected == next)
  }
}
