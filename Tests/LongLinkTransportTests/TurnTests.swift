// SPDX-License-Identifier: Apache-2.0

import CLongLinkSystem
import LongLinkCore
import Synchronization
import Testing

@_spi(Loop) @testable import LongLinkTransport

@Suite struct TurnTests {
  private let driver = ManualDriver()
  private let journal = Journal()
  private let loop: EventLoop

  init() {
    loop = EventLoop(driver: driver, name: "turns")
  }

  private func onLoop<R>(_ body: () throws -> R) rethrows -> R {
    let former = unsafe cll_current_loop()
    unsafe cll_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
    defer { unsafe cll_set_current_loop(former) }
    return try body()
  }

  /// Notes an entry when the loop gets to it.
  private func execute(_ entry: String) {
    let bound = LoopBound(journal, on: loop)
    loop.execute { bound.value.note(entry) }
  }

  @Test func `a turn goes from events over timers and jobs to its end`() {
    onLoop {
      _ = loop.schedule(at: driver.now, journal, token: 1)
      loop.atEndOfTurn(journal, token: 2)
      execute("job")
    }
    driver.onWait = { [unowned driver, journal] in
      if driver.deadlines.count == 1 { journal.note("event") }
    }
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == ["event", "timer 1", "job", "end 2"])
  }

  @Test func `the loop looks for events once more before a timer fires`() {
    driver.onWait = { [unowned driver, journal] in
      // The process was held up after the wait; something has come meanwhile.
      if driver.deadlines.count == 1 { driver.advance(by: .seconds(60)) }
      if driver.deadlines.count == 2 { journal.note("event") }
    }
    onLoop { _ = loop.schedule(at: driver.now.advanced(by: .seconds(1)), journal, token: 1) }
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == ["event", "timer 1"])
  }

  @Test func `a turn does not wait while there is work`() {
    execute("job")
    loop.turn(waitingUntil: nil)
    #expect(driver.deadlines == [.distantPast])
    onLoop { loop.atEndOfTurn(journal, token: 1) }
    loop.turn(waitingUntil: nil)
    #expect(driver.deadlines == [.distantPast, .distantPast])
    loop.turn(waitingUntil: nil)
    #expect(driver.deadlines.last == .some(nil))
    #expect(journal.entries == ["job", "end 1"])
  }

  @Test func `jobs that take long leave a turn to sockets after 10 ms`() {
    let (driver, journal) = (LoopBound(self.driver, on: loop), LoopBound(self.journal, on: loop))
    for number in 1...60 {
      loop.execute {
        driver.value.advance(by: .milliseconds(2))
        journal.value.note("\(number)")
      }
    }
    loop.turn(waitingUntil: nil)
    #expect(self.journal.entries.count == 16)
    #expect(onLoop { self.loop.hasBacklog && self.loop.leavesJobs })
    for _ in 0..<3 { loop.turn(waitingUntil: nil) }
    #expect(onLoop { !self.loop.hasBacklog && !self.loop.leavesJobs })
    #expect(self.journal.entries == (1...60).map { "\($0)" })
    #expect(self.driver.deadlines == Array(repeating: .distantPast, count: 4))
  }

  @Test func `a wait ends at the limit or the first timer`() {
    let (near, far) = (
      driver.now.advanced(by: .milliseconds(5)), driver.now.advanced(by: .milliseconds(9))
    )
    onLoop { _ = loop.schedule(at: far, journal, token: 1) }
    loop.turn(waitingUntil: near)
    #expect(driver.now == near)
    #expect(journal.entries.isEmpty)
    loop.turn(waitingUntil: nil)
    #expect(driver.now == far)
    #expect(journal.entries == ["timer 1"])
    #expect(loop.nextDeadline == nil)
  }

  @Test func `jobs that jobs ask for run in the same turn, up to a bound`() {
    let journal = LoopBound(journal, on: loop)
    let loop = loop
    @Sendable func again(_ left: Int) {
      journal.value.note("job")
      if left > 0 { loop.execute { again(left - 1) } }
    }
    loop.execute { again(9999) }
    loop.turn(waitingUntil: nil)
    #expect(self.journal.entries.count == 4096)
    #expect(loop.hasWork)
    while loop.hasWork { loop.turn(waitingUntil: nil) }
    #expect(self.journal.entries.count == 10000)
  }

  @Test func `the end of a turn comes once, and what it asks for comes in the next`() {
    onLoop {
      for token in 0..<3 { loop.atEndOfTurn(journal, token: UInt64(token)) }
      journal.onTurnEnd = { [unowned loop, unowned journal] token in
        if token == 0 { loop.atEndOfTurn(journal, token: 9) }
      }
    }
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == ["end 0", "end 1", "end 2"])
    #expect(loop.hasWork)
    loop.turn(waitingUntil: nil)
    #expect(journal.entries.last == "end 9")
    #expect(!loop.hasWork)
  }

  @Test func `closures run in the order in which they were handed over`() {
    for index in 0..<1000 { execute("\(index)") }
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == (0..<1000).map { "\($0)" })
  }

  @Test func `a burst from outside costs one wake-up, and none while the loop is busy`() {
    for _ in 0..<100 { execute("early") }
    #expect(driver.wakes.load(ordering: .relaxed) == 0)
    loop.turn(waitingUntil: nil)
    let sender = LoopSender(loop)
    driver.onWait = { for _ in 0..<100 { sender.send() } }
    defer { driver.onWait = nil }
    loop.turn(waitingUntil: nil)
    #expect(driver.wakes.load(ordering: .relaxed) == 1)
    #expect(sender.received.load(ordering: .relaxed) == 100)
  }

  @Test func `turning one loop inside another makes each the current one in its time`() {
    let inner = EventLoop(driver: ManualDriver(), name: "inner")
    let seen = Shared<[Bool]>([])
    loop.execute { [loop] in
      inner.execute { seen.update { $0 += [inner.isCurrent, loop.isCurrent] } }
      inner.turn(waitingUntil: nil)
      seen.update { $0 += [inner.isCurrent, loop.isCurrent] }
    }
    loop.turn(waitingUntil: nil)
    #expect(seen.value == [true, false, false, true])
    #expect(!loop.isCurrent)
  }

  @Test func `the time stays the same within a turn`() {
    driver.onWait = { [driver, loop, journal] in
      let first = loop.now
      driver.advance(by: .seconds(1))
      journal.note(first == loop.now ? "same" : "moved")
    }
    loop.turn(waitingUntil: nil)
    #expect(journal.entries == ["same"])
    driver.onWait = nil
    loop.turn(waitingUntil: nil)
    #expect(loop.now == driver.now)
  }
}

/// Hands closures to a loop as another thread would, whichever thread it is on.
private final class LoopSender: Sendable {
  private let loop: EventLoop
  let received = Atomic(0)

  init(_ loop: EventLoop) {
    self.loop = loop
  }

  func send() {
    let former = unsafe cll_current_loop()
    cll_set_current_loop(nil)
    loop.execute { [self] in _ = received.add(1, ordering: .relaxed) }
    unsafe cll_set_current_loop(former)
  }
}
