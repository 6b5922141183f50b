// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTransport

/// Work that is done once for many that ask for it.
@Suite struct SparseWorkTests {
  @Test func `it is done at once, and for all later ones once more after the interval`() {
    let (jobs, times) = (Shared([(Int, SparseWork.Job)]()), Shared(0))
    let work = SparseWork(every: 100) { delay, job in
      jobs.update { $0.append((delay, job)) }
    } _: {
      times.update { $0 += 1 }
    }
    /// Runs the one job there is; returns its delay.
    func run() -> Int {
      let next = jobs.value
      jobs.update { $0 = [] }
      #expect(next.count == 1)
      next.first?.1()
      return next.first?.0 ?? -1
    }
    for _ in 0..<50 { work.ask() }
    #expect(times.value == 0, "not where it is asked for")
    #expect(run() == 0 && times.value == 1)
    for _ in 0..<50 { work.ask() }
    #expect(run() == 100 && times.value == 1)
    #expect(run() == 0 && times.value == 2)
    #expect(run() == 100 && jobs.value.isEmpty)
    work.ask()
    #expect(run() == 0 && times.value == 3)
    // A job that waited here would keep the work, and so this list, for ever.
    #expect(run() == 100 && jobs.value.isEmpty)
  }
}
