// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct RetryPolicyTests {
  private let policy = RetryPolicy(baseDelay: .milliseconds(100), maxDelay: .seconds(1))

  @Test func `delays double up to the longest, and at least half of each is waited`() {
    let halves: [Int64] = [50, 100, 200, 400, 500, 500]
    for (index, half) in halves.enumerated() {
      let least = policy.delay(time: index + 1, askedFor: 0, bits: 0)
      let most = policy.delay(time: index + 1, askedFor: 0, bits: .max)
      #expect(least == half * 1_000_000)
      #expect(most == 2 * half * 1_000_000)
      let middle = policy.delay(time: index + 1, askedFor: 0, bits: 1 << 63)
      #expect(abs(middle - half * 1_500_000) <= 1)
    }
    #expect(policy.delay(time: 100, askedFor: 0, bits: .max) == 1_000_000_000)
  }

  @Test func `the delay is what the peer asks for, and jitter`() {
    #expect(policy.delay(time: 1, askedFor: 3_000_000_000, bits: 0) == 3_000_000_000)
    #expect(policy.delay(time: 1, askedFor: 3_000_000_000, bits: .max) == 3_050_000_000)
    // Less than this side would wait by itself counts for nothing.
    #expect(policy.delay(time: 4, askedFor: 1_000_000, bits: 0) == 400_000_000)
    #expect(policy.delay(time: 1, askedFor: .max, bits: .max) == .max)
  }

  @Test func `streams that the peer asks to wait do not come back in the same instant`() {
    func delay(_ failures: Int, askedFor hint: Int64, bits: UInt64) -> Int64 {
      var delays = ReopenDelays(ReconnectPolicy())
      for _ in 0..<failures { _ = delays.next(askedFor: 0, bits: 0) }
      return delays.next(askedFor: hint, bits: bits) / 1_000_000
    }
    for (failures, window) in [(0, 1_000), (1, 2_000), (2, 4_000), (9, 30_000)] as [(Int, Int64)] {
      #expect(delay(failures, askedFor: 60_000_000_000, bits: 0) == 60_000)
      #expect(delay(failures, askedFor: 60_000_000_000, bits: 1 << 63) == 60_000 + window / 4)
      #expect(delay(failures, askedFor: 60_000_000_000, bits: .max) == 60_000 + window / 2)
    }
    // Not beyond the longest, but for the jitter.
    #expect(delay(0, askedFor: .max, bits: .max) == 300_500)
    // What is drawn is longer.
    #expect(delay(2, askedFor: 500_000_000, bits: .max) == 2_000)
    #expect(delay(0, askedFor: 0, bits: 1 << 62) == 250)
  }

  @Test func `very long delays do not overflow`() {
    let policy = RetryPolicy(
      baseDelay: .seconds(9_000_000_000), maxDelay: .seconds(9_000_000_000))
    #expect(policy.delay(time: 60, askedFor: 0, bits: .max) > 0)
    #expect(policy.delay(time: 60, askedFor: .max - 5, bits: .max) == .max)
  }

  @Test func `half of a budget can be spent, and successes refill it`() {
    var tokens = RetryTokens(10, perSuccess: 0.5)
    let allowed = (0..<8).map { _ in tokens.lost() }
    #expect(allowed == [true, true, true, true, true, false, false, false])
    #expect(tokens.left == 2)
    for _ in 0..<7 { tokens.succeeded() }
    #expect(tokens.left == 5.5)
    let isAllowed = tokens.lost()
    #expect(!isAllowed, "what is below half is not spent, but it is gone")
    #expect(tokens.left == 4.5)
    for _ in 0..<100 { tokens.succeeded() }
    #expect(tokens.left == 10)
    for _ in 0..<20 { _ = tokens.lost() }
    #expect(tokens.left == 0)
  }

  @Test func `an empty budget allows no retry`() {
    var tokens = RetryTokens(0, perSuccess: 1)
    tokens.succeeded()
    let isAllowed = tokens.lost()
    #expect(!isAllowed && tokens.left == 0)
  }

  @Test func `the delivery covers all attempts together`() {
    for first in Delivery.allCases {
      for second in Delivery.allCases {
        let both = second.after(first)
        #expect(both == first.after(second))
        #expect(both.isSafeToRetry == (first.isSafeToRetry && second.isSafeToRetry))
        #expect(first.after(first) == first)
      }
    }
    #expect(Delivery.refused.after(.sent) == .sent)
    #expect(Delivery.notSent.after(.refused) == .refused)
    #expect(Delivery.answered.after(.sent) == .answered)
  }
}
