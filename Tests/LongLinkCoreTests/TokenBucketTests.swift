// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Limits of how often something happens.
@Suite struct TokenBucketTests {
  private static func at(_ milliseconds: Int64) -> LinkInstant {
    LinkInstant(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
  }

  @Test func `a burst passes, and then so many per second`() {
    let rate = TokenBucket.Rate(perSecond: 50, burst: 200)
    var bucket = TokenBucket(at: Self.at(0))
    let first = (0..<1_000).count { _ in bucket.take(of: rate, at: Self.at(0)) }
    #expect(first == 200)
    let then = [19, 20, 20].map { bucket.take(of: rate, at: Self.at($0)) }
    #expect(then == [false, true, false])
    // What is refused costs nothing: the next second has its 50.
    let next = (21...1_020).count { bucket.take(of: rate, at: Self.at(Int64($0))) }
    #expect(next == 50)
  }

  @Test func `a bucket is full again after the time of its burst, and no fuller later`() {
    let rate = TokenBucket.Rate(perSecond: 10, burst: 30)
    var bucket = TokenBucket(at: Self.at(0))
    for pause: Int64 in [0, 3_000, 1_000_000] {
      let taken = (0..<100).count { _ in bucket.take(of: rate, at: Self.at(pause)) }
      #expect(taken == 30)
    }
  }

  @Test func `an instant before the last one gives no tokens`() {
    let rate = TokenBucket.Rate(perSecond: 1, burst: 2)
    var bucket = TokenBucket(at: Self.at(1_000))
    let taken = [1_000, 1_000, 500].map { bucket.take(of: rate, at: Self.at($0)) }
    #expect(taken == [true, true, false])
  }

  @Test func `what is spent beyond a second's worth has to be waited for`() {
    var bucket = TokenBucket(at: Self.at(0))
    let waits = [(1_000, 0), (500, 0), (0, 500), (1, 500)].map { count, time in
      bucket.spend(count, perSecond: 1_000, at: Self.at(time))
    }
    #expect(waits == [0, 500_000_000, 0, 1_000_000])
  }

  @Test(arguments: [(Int.max, 1), (Int.max, Int.max), (1, Int.max), (0, 1)])
  func `no number overflows, and no debt is of more than an hour`(_ count: Int, _ rate: Int) {
    var bucket = TokenBucket(at: Self.at(0))
    for _ in 0..<3 {
      let wait = bucket.spend(count, perSecond: rate, at: Self.at(0))
      #expect((0...3 * 3_600_000_000_000).contains(wait))
    }
  }
}
