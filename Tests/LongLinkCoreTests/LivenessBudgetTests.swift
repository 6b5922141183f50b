// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct LivenessBudgetTests {
  private func solve(_ bound: Int64, _ wakeUps: Int64) throws -> (interval: Int64, timeout: Int64) {
    try LivenessBudget(bound: bound, wakeUps: wakeUps).solved()
  }

  @Test func `a quarter of the bound is for the response if the wake-ups allow it`() throws {
    #expect(try solve(40_000, 120) == (30_000, 10_000))
    #expect(try solve(40_000, 3_600) == (30_000, 10_000))
  }

  @Test func `few wake-ups leave the answer less`() throws {
    #expect(try solve(40_000, 100) == (36_000, 4_000))
    #expect(try solve(61_000, 60) == (60_000, 1_000))
  }

  @Test func `the timeout is at most half a minute`() throws {
    #expect(try solve(600_000, 60) == (570_000, 30_000))
  }

  @Test func `an impossible budget is refused with the nearest possible ones`() {
    #expect(
      throws: LivenessBudget.Refusal.wakeUpsTooFew(
        bound: 60_000, wakeUps: 60, shortestBound: 61_000, leastWakeUps: 62)
    ) { try solve(60_000, 60) }
    #expect(throws: LivenessBudget.Refusal.noWakeUps) { try solve(60_000, 0) }
    #expect(throws: LivenessBudget.Refusal.boundTooShort(least: 300)) { try solve(299, 100_000) }
  }

  @Test func `the smallest and largest budgets`() throws {
    #expect(try solve(300, 100_000) == (200, 100))
    #expect(try solve(3_601_000, 1) == (3_600_000, 1_000))
    let (interval, timeout) = try solve(.max, .max)
    #expect(interval + timeout == 4_000_000_000)
  }

  /// Each solution keeps the budget, and each refusal names numbers that work and are the best.
  @Test(
    arguments: [300, 301, 999, 1_000, 3_999, 4_000, 4_001, 59_999, 60_000, 7_200_000] as [Int64])
  func `solutions keep the budget, and the budgets that a refusal names are possible`(bound: Int64)
    throws
  {
    for wakeUps in [1, 2, 59, 60, 61, 62, 999, 1_200, 1_201, 3_600, 7_201, 18_000] as [Int64] {
      do {
        let (interval, timeout) = try solve(bound, wakeUps)
        #expect(interval + timeout == bound)
        #expect(interval >= 200 && timeout >= 100)
        #expect(interval * wakeUps >= 3_600_000)
      } catch let refusal as LivenessBudget.Refusal {
        guard case .wakeUpsTooFew(_, _, let shortest, let least) = refusal else {
          Issue.record("\(refusal)")
          continue
        }
        #expect(shortest > bound && least > wakeUps)
        _ = try solve(shortest, wakeUps)
        _ = try solve(bound, least)
        #expect(throws: LivenessBudget.Refusal.self) { try solve(shortest - 1, wakeUps) }
        #expect(throws: LivenessBudget.Refusal.self) { try solve(bound, least - 1) }
      }
    }
  }
}
