// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkDriver
@testable import LongLinkCore

/// What a connection tells its server's memory budget, and how it ranks for eviction.
@Suite struct MemoryAccountTests {
  private static func at(_ milliseconds: Int64) -> LinkInstant {
    LinkInstant(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
  }

  @Test func `small changes are told once they add up`() {
    var account = MemoryAccount()
    #expect(account.change(to: HeldMemory(open: 4_095), at: Self.at(0)) == nil)
    #expect(account.told == HeldMemory())
    let first = HeldMemory(open: 4_096, room: 100)
    #expect(account.change(to: first, at: Self.at(1)) == first)
    #expect(account.change(to: HeldMemory(open: 8_191, room: 4_195), at: Self.at(2)) == nil)
    // Filling a buffer changes only its room.
    let more = account.change(to: HeldMemory(open: 8_191, room: 4_196), at: Self.at(3))
    #expect(more == HeldMemory(open: 4_095, room: 4_096))
    let less = account.change(to: HeldMemory(open: 4_000), at: Self.at(4))
    #expect(less == HeldMemory(open: -4_191, room: -4_196))
    #expect(account.told == HeldMemory(open: 4_000))
  }

  @Test func `a connection that holds nothing any more says so`() {
    var account = MemoryAccount()
    _ = account.change(to: HeldMemory(open: 5_000), at: Self.at(0))
    _ = account.change(to: HeldMemory(open: 10), at: Self.at(1))
    #expect(account.change(to: HeldMemory(), at: Self.at(2)) == HeldMemory(open: -10))
    #expect(account.change(to: HeldMemory(), at: Self.at(3)) == nil)
  }

  @Test func `the memory of abandoned requests is told to the byte`() {
    var account = MemoryAccount()
    #expect(
      account.change(to: HeldMemory(open: 7, outlived: 1), at: Self.at(0))
        == HeldMemory(open: 7, outlived: 1))
    #expect(
      account.change(to: HeldMemory(open: 9), at: Self.at(1))
        == HeldMemory(open: 2, outlived: -1))
  }

  @Test func `the weight grows with the time for which memory is held`() {
    var account = MemoryAccount()
    #expect(account.weight(at: Self.at(50)).amount == 0)
    _ = account.change(to: HeldMemory(open: 10_000), at: Self.at(100))
    // Below 0.1 s and above 1 s, the time does not matter.
    #expect(account.weight(at: Self.at(100)).amount == 1_000_000)
    #expect(account.weight(at: Self.at(200)).amount == 1_000_000)
    #expect(account.weight(at: Self.at(600)).amount == 5_000_000)
    #expect(account.weight(at: Self.at(1_100)).amount == 10_000_000)
    #expect(account.weight(at: Self.at(9_000)).amount == 10_000_000)
    // More memory is not held for less time.
    _ = account.change(to: HeldMemory(open: 20_000), at: Self.at(9_000))
    #expect(account.weight(at: Self.at(9_000)).amount == 20_000_000)
  }

  @Test func `the time begins again with what is held after little was`() {
    var account = MemoryAccount()
    _ = account.change(to: HeldMemory(open: 10_000), at: Self.at(0))
    _ = account.change(to: HeldMemory(open: 1_000), at: Self.at(2_000))
    #expect(account.weight(at: Self.at(2_000)).amount == 1_000_000)
    _ = account.change(to: HeldMemory(open: 10_000), at: Self.at(3_000))
    #expect(account.weight(at: Self.at(3_200)).amount == 2_000_000)
  }

  @Test func `what waits for the peer weighs more by the second, until it moves`() {
    var account = MemoryAccount()
    func weight(_ time: Int64) -> MemoryAccount.Weight {
      account.weight(at: Self.at(time), unfinished: 80_000, longest: 60_000_000_000)
    }
    _ = account.change(to: HeldMemory(open: 80_000), at: Self.at(0), moved: 80_000)
    #expect(weight(50).amount == 8_000_000 && !weight(50).isStalled)
    #expect(weight(30_000).amount == 2_400_000_000 && weight(30_000).isStalled)
    #expect(weight(90_000).amount == weight(60_000).amount)
    // Less than an eighth more is no progress.
    _ = account.change(to: HeldMemory(open: 89_000), at: Self.at(30_000), moved: 89_000)
    #expect(weight(31_000).amount == 80_000 * 31_000 + 9_000 * 1_000)
    _ = account.change(to: HeldMemory(open: 93_100), at: Self.at(32_000), moved: 93_100)
    #expect(!weight(32_100).isStalled)
    // What handlers hold waits for them: after a second it weighs no more.
    #expect(account.weight(at: Self.at(90_000), decoded: 1_000).amount == 94_100_000)
  }

  @Test func `a request that comes in steps too small to be told makes progress`() {
    var (moving, still) = (MemoryAccount(), MemoryAccount())
    _ = moving.change(to: HeldMemory(open: 80_000), at: Self.at(0), moved: 80_000)
    _ = still.change(to: HeldMemory(open: 80_000), at: Self.at(0), moved: 80_000)
    func weight(_ account: MemoryAccount, _ time: Int64) -> MemoryAccount.Weight {
      account.weight(at: Self.at(time), unfinished: 80_000)
    }
    for step in 1...1_000 {
      let time = Int64(step) * 5
      let moved = UInt64(80_000 + step * 1_000)
      #expect(moving.change(to: HeldMemory(open: 80_000), at: Self.at(time), moved: moved) == nil)
      #expect(!weight(moving, time).isStalled)
    }
    #expect(weight(moving, 5_000).amount == 80_000 * 100)
    #expect(weight(still, 5_000).amount == 80_000 * 5_000 && weight(still, 5_000).isStalled)
  }
}
