// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing

@testable import LongLinkDriver
@testable import LongLinkCore
@testable import LongLinkTransport

/// What the connections of a server may hold together.
@Suite struct MemoryBudgetTests {
  @Test func `handlers that go on leave less to open connections, but always a quarter`() {
    let budget = MemoryBudget(limit: 1_000)
    let share = budget.makeShare(
      on: EventLoop(driver: StillDriver(), name: "a"), relieve: {}, recover: {})
    share.add(HeldMemory(open: 700))
    #expect(!budget.mustEvict)
    share.add(HeldMemory(outlived: 400))
    #expect(budget.mustEvict && budget.isExhausted)
    share.add(HeldMemory(open: -100))
    #expect(!budget.mustEvict && !budget.isRelieved)
    share.add(HeldMemory(open: -110))
    #expect(budget.isRelieved)
    share.add(HeldMemory(open: -240, outlived: 1_000))
    #expect(!budget.mustEvict)
    share.add(HeldMemory(open: 1))
    #expect(budget.mustEvict)
  }

  @Test func `memory that many handlers free is returned to the system once, off the loop`() {
    let (jobs, returns) = (Tally<SparseWork.Job>(), Tally<Void>())
    let returning = SparseWork(every: 100) { delay, job in
      if delay == 0 { jobs.add(job) }
    } _: {
      returns.add(())
    }
    let large = 2_000_000
    let budget = MemoryBudget(limit: 100 * large) { returning.ask() }
    let loop = EventLoop(driver: StillDriver(), name: "a")
    // Of connections that are evicted, and whose handlers run on.
    let shares = Tally<MemoryShare>()
    let share = budget.makeShare(on: loop) {
      shares.elements[0].add(HeldMemory(open: -90 * large, outlived: 90 * large))
    } recover: {
    }
    shares.add(share)
    share.add(HeldMemory(open: 90 * large))
    loop.turn(waitingUntil: .distantPast)
    #expect(!budget.mustEvict && budget.held == 90 * large)
    for _ in 0..<90 { share.add(HeldMemory(outlived: -large)) }
    #expect(jobs.count == 1 && returns.count == 0)
    jobs.elements.first?()
    #expect(returns.count == 1)
  }

  @Test func `memory is freed until there is enough, even while other connections take more`() {
    let budget = MemoryBudget(limit: 1_000)
    let loops = (0..<2).map { EventLoop(driver: StillDriver(), name: "\($0)") }
    final class Shares {
      var all: [MemoryShare] = []
      var calls: [Int] = []
    }
    let shares = Shares()
    // All runs on this thread.
    nonisolated(unsafe) let held = shares
    for (index, loop) in loops.enumerated() {
      let share = budget.makeShare(on: loop) {
        let shares = unsafe held
        shares.calls.append(index)
        shares.all[index].add(HeldMemory(open: index == 0 ? -100 : -500))
        // The other one takes more than was freed.
        if index == 0 { shares.all[1].add(HeldMemory(open: 400)) }
      } recover: {
      }
      shares.all.append(share)
    }
    shares.all[0].add(HeldMemory(open: 600))
    shares.all[1].add(HeldMemory(open: 200))
    for _ in 0..<4 { for loop in loops { loop.turn(waitingUntil: .distantPast) } }
    #expect(shares.calls == [0, 1])
    #expect(!budget.mustEvict)
  }

  @Test func `of threads that decode at once, one takes the last room`() async {
    let budget = MemoryBudget(limit: 1_200)
    let share = budget.makeShare(
      on: EventLoop(driver: StillDriver(), name: "a"), relieve: {}, recover: {})
    let (ready, taken) = (Box(Atomic(0)), Box(Atomic(0)))
    let over = Tally<Void>()
    let count = 4
    let decode: @Sendable () -> Void = {
      ready.value.add(1, ordering: .relaxed)
      while ready.value.load(ordering: .relaxed) < count { sched_yield() }
      _ = budget.addDecoded(700, isLittle: false) {
        // Long enough for the others to decide as well, if nothing kept them from it.
        for _ in 0..<1_000 { sched_yield() }
        taken.value.add(1, ordering: .relaxed)
        share.add(HeldMemory(open: 700))
      }
      over.add(())
    }
    for _ in 0..<count { Thread.detachNewThread(decode) }
    await over.reached(count)
    #expect(taken.value.load(ordering: .relaxed) == 1)
    #expect(budget.held == 700)
  }
}
