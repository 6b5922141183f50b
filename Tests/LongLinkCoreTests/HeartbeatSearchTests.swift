// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct HeartbeatSearchTests {
  private let policy = AdaptiveHeartbeat(
    shortest: .seconds(30), step: .seconds(20), successes: 2, backOff: .seconds(25), failures: 2)

  private func search(_ learned: LearnedHeartbeat? = nil) -> HeartbeatSearch {
    HeartbeatSearch(policy, longest: seconds(100), learned: learned)
  }

  private func seconds(_ count: Int64) -> Int64 { count * 1_000_000_000 }

  @Test func `the interval grows by a step after enough answers and ends at the longest`() {
    var search = search()
    var seen: [Int64] = []
    for _ in 0..<12 {
      seen.append(search.interval / seconds(1))
      _ = search.answered(after: search.interval)
    }
    #expect(seen == [30, 30, 50, 50, 70, 70, 90, 90, 100, 100, 100, 100])
    #expect(search.learned == LearnedHeartbeat(interval: .seconds(100), failures: 0))
  }

  @Test func `an answer after a shorter silence proves nothing`() {
    var search = search()
    for _ in 0..<10 { _ = search.answered(after: seconds(26)) }
    #expect(search.interval == seconds(30))
  }

  @Test func `remembering more losses than are needed changes nothing`() {
    var search = search(LearnedHeartbeat(interval: .seconds(70), failures: .max))
    #expect(search.isOver)
    let isBlamed = search.lost(after: seconds(70))
    #expect(isBlamed && search.interval == seconds(45))
    #expect(search.learned.failures == 2)
  }

  @Test func `a proven interval is reported once`() {
    var search = search()
    let isNew = (0..<6).map { _ in search.answered(after: search.interval) }
    #expect(isNew == [false, false, false, true, false, true])
    #expect(search.learned.interval == .seconds(70))
  }

  @Test func `a loss at a lengthened interval backs off and enough of them end the search`() {
    var search = search()
    for _ in 0..<4 { _ = search.answered(after: search.interval) }
    #expect(search.interval == seconds(70))
    let blamed1 = search.lost(after: seconds(70))
    #expect(blamed1)
    #expect(search.interval == seconds(45))
    #expect(search.learned == LearnedHeartbeat(interval: .seconds(45), failures: 1))
    for _ in 0..<2 { _ = search.answered(after: search.interval) }
    #expect(search.interval == seconds(65))
    let blamed2 = search.lost(after: seconds(65))
    #expect(blamed2)
    #expect(search.isOver)
    for _ in 0..<20 { _ = search.answered(after: search.interval) }
    #expect(search.interval == seconds(40))
    // The path got worse: the interval still shrinks.
    let blamed3 = search.lost(after: seconds(40))
    #expect(blamed3)
    #expect(search.interval == seconds(30))
  }

  @Test
  func `a loss at the shortest interval or after a short silence is not blamed on the interval`() {
    var search = search()
    let blamed4 = search.lost(after: seconds(30))
    #expect(!blamed4)
    for _ in 0..<2 { _ = search.answered(after: search.interval) }
    let blamed5 = search.lost(after: seconds(5))
    #expect(!blamed5)
    #expect(search.interval == seconds(50))
    #expect(search.learned.failures == 0)
  }

  @Test func `answers have to come in a row`() {
    var search = search()
    _ = search.answered(after: seconds(30))
    _ = search.lost(after: seconds(1))
    _ = search.answered(after: seconds(30))
    #expect(search.interval == seconds(30))
  }

  @Test func `a remembered interval is used within the present limits`() {
    let known = search(LearnedHeartbeat(interval: .seconds(70), failures: 1))
    #expect(known.interval == seconds(70))
    #expect(!known.isOver)
    #expect(search(LearnedHeartbeat(interval: .seconds(900), failures: 2)).interval == seconds(100))
    #expect(search(LearnedHeartbeat(interval: .seconds(1), failures: -3)).interval == seconds(30))
    #expect(search(LearnedHeartbeat(interval: .seconds(60), failures: 2)).isOver)
  }
}
