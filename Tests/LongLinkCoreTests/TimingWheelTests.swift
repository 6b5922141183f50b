// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

struct TimingWheelTests {
  @Test func `an empty wheel asks for nothing`() {
    var wheel = TimingWheel(now: .at(5))
    #expect(wheel.isEmpty == true)
    #expect(wheel.nextDeadline == nil)
    wheel.advance(to: .at(1_000_000))
    #expect(wheel.popExpired() == nil)
  }

  @Test func `an entry is due at its millisecond and not before`() {
    var wheel = TimingWheel(now: .at(0))
    _ = wheel.insert(7, at: .at(5_000))
    wheel.advance(to: LinkInstant(nanoseconds: 4_999_999_999))
    #expect(wheel.popExpired() == nil)
    wheel.advance(to: .at(5_000))
    #expect(wheel.popExpired() == 7)
    #expect(wheel.isEmpty == true)
  }

  @Test func `a deadline between two ticks is rounded up`() {
    var wheel = TimingWheel(now: LinkInstant(nanoseconds: -2_500_000))
    _ = wheel.insert(1, at: LinkInstant(nanoseconds: -1_200_000))
    wheel.advance(to: LinkInstant(nanoseconds: -1_100_000))
    #expect(wheel.popExpired() == nil)
    wheel.advance(to: LinkInstant(nanoseconds: -1_000_000))
    #expect(wheel.popExpired() == 1)
  }

  @Test func `a deadline in the past is due at the next advance`() {
    var wheel = TimingWheel(now: .at(100))
    _ = wheel.insert(1, at: .at(3))
    _ = wheel.insert(2, at: .at(1))
    #expect(wheel.popExpired() == nil)
    #expect(wheel.nextDeadline == .at(100))
    wheel.advance(to: .at(100))
    #expect(wheel.popExpired() == 1)
    #expect(wheel.popExpired() == 2)
  }

  @Test func `entries of one tick come in the order they were inserted`() {
    var wheel = TimingWheel(now: .at(0))
    for key in 0..<10 {
      _ = wheel.insert(UInt64(key), at: .at(100_000))
      wheel.advance(to: .at(Int64(key) * 9_999))
    }
    wheel.advance(to: .at(200_000))
    #expect(wheel.popAll() == Array(0..<10))
  }

  @Test func `a stale handle removes nothing`() {
    var wheel = TimingWheel(now: .at(0))
    let first = wheel.insert(1, at: .at(10))
    #expect(wheel.remove(first) == true)
    #expect(wheel.remove(first) == false)
    let second = wheel.insert(2, at: .at(10))
    #expect(first != second)
    #expect(wheel.remove(first) == false)
    #expect(wheel.remove(.none) == false)
    wheel.advance(to: .at(10))
    #expect(wheel.popExpired() == 2)
    #expect(wheel.remove(second) == false)
    #expect(wheel.isEmpty == true)
  }

  @Test func `an entry that is due can still be removed`() {
    var wheel = TimingWheel(now: .at(0))
    let handles = (0..<3).map { wheel.insert($0, at: .at(1)) }
    wheel.advance(to: .at(1))
    #expect(wheel.remove(handles[1]) == true)
    #expect(wheel.popAll() == [0, 2])
  }

  @Test func `the ends of time are held and the last instant is never reached`() {
    var wheel = TimingWheel(now: LinkInstant(nanoseconds: .min))
    _ = wheel.insert(1, at: .distantFuture)
    _ = wheel.insert(2, at: .at(0))
    wheel.advance(to: .distantFuture)
    #expect(wheel.popAll() == [2])
    #expect(wheel.nextDeadline == .distantFuture)
    wheel.expireAll()
    #expect(wheel.popAll() == [1])
    #expect(wheel.nextDeadline == nil)
  }

  @Test(arguments: [1, 63, 64, 4_095, 4_096, 30_000, 299_999, 86_400_000] as [Int64])
  func `a lone entry asks for one call`(milliseconds: Int64) {
    var wheel = TimingWheel(now: .at(12_345))
    _ = wheel.insert(1, at: .at(12_345 + milliseconds))
    #expect(wheel.nextDeadline == .at(12_345 + milliseconds))
    wheel.advance(to: .at(12_345 + milliseconds))
    #expect(wheel.popAll() == [1])
  }

  @Test(arguments: UInt64(0)..<24)
  func `a wheel does what a sorted list does`(seed: UInt64) {
    var pair = WheelAndList(seed: seed)
    for _ in 0..<2_000 {
      pair.step()
    }
    pair.finish()
  }
}

/// The wheel beside the simplest thing that can be right.
private struct WheelAndList: ~Copyable {
  struct Entry {
    var key: UInt64
    var deadline: LinkInstant
    var handle: TimingWheel.Handle
    var isDue = false
    /// Overdue entries count as due at the instant at which they were inserted.
    var tick: Int64
  }

  var dice: Seeded
  var now: LinkInstant
  var wheel: TimingWheel
  var list: [Entry] = []
  var stale: [TimingWheel.Handle] = []
  var nextKey: UInt64 = 0

  init(seed: UInt64) {
    dice = Seeded(seed)
    now = LinkInstant(nanoseconds: Int64(truncatingIfNeeded: dice.next()) >> (2 + dice.below(40)))
    wheel = TimingWheel(now: now)
  }

  mutating func step() {
    switch dice.below(10) {
    case 0..<5: insert()
    case 5..<7: remove()
    default: advance()
    }
    #expect(wheel.count == list.count)
    #expect(wheel.isEmpty == list.isEmpty)
    checkNextDeadline()
  }

  mutating func finish() {
    let cancelled = list.filter { $0.deadline == .distantFuture }
    for entry in cancelled {
      #expect(wheel.remove(entry.handle) == true)
    }
    list.removeAll { $0.deadline == .distantFuture }
    wheel.advance(to: .distantFuture)
    let keys = list.sorted { ($0.tick, $0.key) < ($1.tick, $1.key) }.map(\.key)
    #expect(wheel.popAll() == keys)
    #expect(wheel.isEmpty == true)
    #expect(wheel.nextDeadline == nil)
  }

  private mutating func insert() {
    let deadline: LinkInstant
    switch dice.below(8) {
    case 0: deadline = now + Int64(dice.below(3_000_000))
    case 1: deadline = now + Int64(dice.below(100)) * 1_000_000
    case 2: deadline = now + -Int64(dice.below(100_000_000))
    case 3: deadline = list.last?.deadline ?? now
    case 4: deadline = now + Int64(dice.next() >> (1 + dice.below(30)))
    case 5 where dice.below(4) == 0: deadline = .distantFuture
    default: deadline = now + Int64(dice.below(60_000)) * 1_000_000
    }
    let handle = wheel.insert(nextKey, at: deadline)
    list.append(
      Entry(
        key: nextKey,
        deadline: deadline,
        handle: handle,
        tick: max(deadline.tickNotBefore, now.tickNotAfter)
      )
    )
    nextKey += 1
  }

  private mutating func remove() {
    if let handle = stale.last, dice.below(2) == 0 {
      #expect(wheel.remove(handle) == false)
      return
    }
    guard !list.isEmpty else { return }
    let entry = list.remove(at: dice.below(list.count))
    #expect(wheel.remove(entry.handle) == true)
    stale.append(entry.handle)
  }

  private mutating func advance() {
    let bound = max(now, LinkInstant(nanoseconds: 1 << 62))
    now = min(nextInstant(), bound) + Int64(dice.below(3) * 999)
    wheel.advance(to: now)
    let tick = now.tickNotAfter
    for index in list.indices where list[index].tick <= tick {
      list[index].isDue = true
    }
    let expected = list.filter(\.isDue).sorted { ($0.tick, $0.key) < ($1.tick, $1.key) }
    // Now and then some are left for a later turn.
    let taken = dice.below(4) == 0 ? dice.below(expected.count + 1) : expected.count
    for entry in expected.prefix(taken) {
      #expect(wheel.popExpired() == entry.key)
      stale.append(entry.handle)
    }
    if taken == expected.count { #expect(wheel.popExpired() == nil) }
    let gone = Set(expected.prefix(taken).map(\.key))
    list.removeAll { gone.contains($0.key) }
  }

  private mutating func nextInstant() -> LinkInstant {
    switch dice.below(12) {
    case 0: now
    case 1: now + Int64(dice.next() >> (8 + dice.below(20)))
    case 2: list.map(\.deadline).min().map { max($0, now) } ?? now
    case 3: wheel.nextDeadline.map { max($0, now) } ?? now
    case 4..<8: now + Int64(dice.below(5_000_000))
    default: now + Int64(dice.below(5_000)) * 1_000_000
    }
  }

  private func checkNextDeadline() {
    guard let first = list.map(\.tick).min() else {
      #expect(wheel.nextDeadline == nil)
      return
    }
    let next = wheel.nextDeadline
    #expect(next != nil)
    guard let next else { return }
    #expect(next.tickNotAfter <= max(first, now.tickNotAfter))
    // While nothing is due it lies ahead, so that a loop that sleeps until then does not spin.
    if first > now.tickNotAfter { #expect(next > now) }
  }
}

extension LinkInstant {
  fileprivate static func at(_ milliseconds: Int64) -> LinkInstant {
    LinkInstant(nanoseconds: milliseconds * 1_000_000)
  }

  fileprivate var tickNotAfter: Int64 {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder < 0 ? quotient - 1 : quotient
  }

  fileprivate var tickNotBefore: Int64 {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder > 0 ? quotient + 1 : quotient
  }
}

extension TimingWheel {
  fileprivate mutating func popAll() -> [UInt64] {
    var keys: [UInt64] = []
    while let key = popExpired() { keys.append(key) }
    return keys
  }
}
