// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Which of the requests that wait goes next.
@Suite struct RequestQueueTests {
  private func create(
    _ table: inout RequestTable<Void>, deadline: LinkInstant? = nil, isOrdered: Bool = false
  ) -> RequestID {
    table.create(deadline: deadline, isOrdered: isOrdered, notifiesCancel: true, at: .start)
  }

  private func terms(
    _ priority: UInt32 = 0, _ deadline: LinkInstant = .distantFuture, bytes: Int = 0
  ) -> WaitTerms {
    WaitTerms(priority: priority, deadline: deadline, bytes: bytes)
  }

  /// Takes all that may go to a link and places them there, as whole frames.
  private func drain(_ table: inout RequestTable<Void>, on link: UInt32) -> [RequestID] {
    var order: [RequestID] = []
    while let id = table.nextWaiting(on: link) {
      table.placed(id, on: link, OutputPosition(begin: UInt64(order.count), ordinal: 1))
      order.append(id)
    }
    return order
  }

  @Test func `priority comes first, then the deadline, then the order of submission`() {
    var table = RequestTable<Void>(role: .client)
    let ids = (0..<7).map { _ in create(&table) }
    let all = [
      terms(0), terms(0, .ms(50)), terms(2), terms(0, .ms(20)), terms(2, .ms(90)), terms(0),
      terms(.max),
    ]
    for (id, terms) in zip(ids, all) { table.wait(id, terms) }
    #expect(table.hasNext(on: 1) == true)
    #expect(drain(&table, on: 1) == [6, 4, 2, 3, 1, 0, 5].map { ids[$0] })
    #expect(!table.hasNext(on: 1) && table.waitingCount == 0)
  }

  @Test func `bytes are counted while a request waits, however its wait ends`() {
    var table = RequestTable<Void>(role: .client)
    let ids = (0..<4).map { _ in create(&table, deadline: .ms(10)) }
    for id in ids[0..<3] { table.wait(id, terms(bytes: 100)) }
    table.wait(ids[3], terms(bytes: 1_000), until: .ms(5), at: .start)
    // Who waits already does not wait twice.
    table.wait(ids[0], terms(bytes: 100))
    #expect(table.waitingBytes == 1_300 && table.waitingCount == 4)
    #expect(table.nextWaiting(on: 1) == ids[0])
    #expect(table.waitingBytes == 1_200)
    #expect(table.end(ids[1]) != nil)
    #expect(table.waitingBytes == 1_100)
    table.elapsed(to: .ms(10))
    while table.nextExpired() != nil {}
    #expect(table.waitingBytes == 0 && table.waitingCount == 0 && table.count == 0)
  }

  @Test func `a delayed request lets others pass, and only its own time ends its delay`() {
    var table = RequestTable<Void>(role: .client)
    let (later, other) = (create(&table), create(&table, deadline: .ms(500)))
    table.wait(later, terms(9), until: .ms(100), at: .start)
    #expect(!table.hasNext(on: 1) && table.isNext(other, isOrdered: false, on: 1))
    table.wait(other, terms(0))
    #expect(table.deadline! <= .ms(100))
    #expect(table.nextWaiting(on: 1) == other)
    #expect(table.nextWaiting(on: 1) == nil)
    table.elapsed(to: .ms(99))
    #expect(table.nextExpired() == nil)
    #expect(table.nextWaiting(on: 1) == nil)
    table.elapsed(to: .ms(100))
    #expect(table.nextExpired() == nil)
    #expect(table.nextWaiting(on: 1) == later)
  }

  @Test func `a delayed request that ends leaves nothing behind`() {
    var table = RequestTable<Void>(role: .client)
    let id = create(&table, deadline: .ms(300))
    table.wait(id, terms(), until: .ms(100), at: .start)
    #expect(table.waitingRequests().map(\.id) == [id])
    #expect(table.end(id) != nil)
    #expect(table.deadline == nil && table.waitingCount == 0)
    table.elapsed(to: .ms(1_000))
    #expect(table.nextExpired() == nil)
    #expect(table.hasNext(on: 1) == false)
  }

  @Test func `a new serial keeps the identity, the deadline and the past`() {
    var table = RequestTable<Void>(role: .client)
    let old = create(&table, deadline: .ms(300))
    table.placed(old, on: 1, OutputPosition(begin: 0, ordinal: 1))
    table.takeBack(old, .refused)
    let new = table.renew(old, deadline: .ms(300))
    #expect(new.serial != old.serial && new.number == old.number)
    #expect(table.current(old) == new && table.current(new) == new)
    #expect(table.entry(old) == nil)
    #expect(table.entry(new)!.past == .refused && table.entry(new)!.returns == 1)
    table.placed(new, on: 1, OutputPosition(begin: 10, ordinal: 2))
    #expect(table.answered(old.serial, on: 1) == nil, "a late answer to the old serial")
    #expect(!table.awaits(old.serial, on: 1) && table.awaits(new.serial, on: 1))
    table.takeBack(new, .refused)
    let newest = table.renew(new, deadline: .ms(300))
    #expect(table.current(old) == newest)
    table.wait(newest, terms(), until: .ms(200), at: .start)
    table.elapsed(to: .ms(299))
    #expect(table.nextExpired() == nil)
    table.elapsed(to: .ms(300))
    #expect(table.nextExpired()?.id == newest)
    #expect(table.current(old) == old && table.deadline == nil)
  }

  @Test func `a hundred thousand wait, and most of them give up`() {
    var table = RequestTable<Void>(role: .client)
    var dice = Seeded(3)
    let ids = (0..<100_000).map { index in
      create(&table, deadline: .ms(Int64(1 + dice.below(1_000))), isOrdered: index % 10 == 0)
    }
    for id in ids { table.wait(id, terms(UInt32(dice.below(4)), bytes: 10)) }
    for id in ids where dice.below(2) == 0 { _ = table.end(id) }
    table.elapsed(to: .ms(500))
    while table.nextExpired() != nil {}
    let left = table.waitingCount
    #expect(left > 10_000 && table.waitingBytes == 10 * left)
    #expect(drain(&table, on: 1).count == left)
    #expect(table.carriedCount(by: 1) == left && table.carriedCount == left)
    #expect(table.waitingBytes == 0)
  }
}

/// The order of submission, for those that want it.
@Suite struct OrderedLaneTests {
  private let terms = WaitTerms(priority: 0, deadline: .distantFuture, bytes: 0)
  private let whole = OutputPosition(begin: 0, ordinal: 1)

  private func ordered(_ table: inout RequestTable<Void>, _ count: Int) -> [RequestID] {
    (0..<count).map { _ in
      table.create(deadline: nil, isOrdered: true, notifiesCancel: false, at: .start)
    }
  }

  @Test func `priorities and deadlines change nothing among ordered ones`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 3)
    let free = (0..<2).map { _ in
      table.create(deadline: nil, notifiesCancel: false, at: .start)
    }
    table.wait(ids[2], WaitTerms(priority: 9, deadline: .ms(1), bytes: 0))
    table.wait(ids[1], WaitTerms(priority: 0, deadline: .ms(1), bytes: 0))
    table.wait(ids[0], WaitTerms(priority: 3, deadline: .distantFuture, bytes: 0))
    table.wait(free[0], WaitTerms(priority: 5, deadline: .distantFuture, bytes: 0))
    table.wait(free[1], WaitTerms(priority: 1, deadline: .distantFuture, bytes: 0))
    var order: [RequestID] = []
    while let id = table.nextWaiting(on: 1) {
      table.placed(id, on: 1, whole)
      order.append(id)
    }
    // The lane has the urgency of its first: 3, then 0, then 9.
    #expect(order == [free[0], ids[0], free[1], ids[1], ids[2]])
  }

  @Test func `a later one waits until an earlier one has been encoded to its end`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 2)
    #expect(table.isNext(ids[0], isOrdered: true, on: 1) == true)
    table.placed(ids[0], on: 1, .keptBack)
    #expect(table.isNext(ids[1], isOrdered: true, on: 1) == false)
    table.wait(ids[1], terms)
    table.began(ids[0].serial, on: 1, at: 0, ordinal: 1)
    #expect(table.nextWaiting(on: 1) == nil)
    table.finished(ids[0].serial, on: 2)
    #expect(table.hasNext(on: 1) == false, "word of another link")
    table.finished(ids[0].serial, on: 1)
    #expect(table.nextWaiting(on: 1) == ids[1])
  }

  @Test func `a request that ends before it was sent whole holds up no other`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 2)
    table.placed(ids[0], on: 1, .keptBack)
    table.wait(ids[1], terms)
    #expect(table.end(ids[0]) != nil)
    #expect(table.nextWaiting(on: 1) == ids[1])
  }

  @Test func `no later one overtakes on another link`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 3)
    table.placed(ids[0], on: 1, whole)
    table.placed(ids[1], on: 1, whole)
    #expect(table.isNext(ids[2], isOrdered: true, on: 2) == false)
    table.wait(ids[2], terms)
    #expect(table.answered(ids[0].serial, on: 1)?.number == ids[0].number)
    #expect(table.nextWaiting(on: 2) == nil)
    #expect(table.answered(ids[1].serial, on: 1)?.number == ids[1].number)
    #expect(table.nextWaiting(on: 2) == ids[2])
  }

  @Test func `later ones wait while the first waits for its time`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 2)
    table.placed(ids[0], on: 1, whole)
    table.takeBack(ids[0], .refused)
    table.wait(ids[0], terms, until: .ms(50), at: .start)
    #expect(table.isNext(ids[1], isOrdered: true, on: 1) == false)
    table.wait(ids[1], terms)
    #expect(table.hasNext(on: 1) == false)
    table.elapsed(to: .ms(50))
    #expect(table.nextExpired() == nil)
    #expect(table.nextWaiting(on: 1) == ids[0])
    table.placed(ids[0], on: 1, whole)
    #expect(table.nextWaiting(on: 1) == ids[1])
  }

  @Test func `a refused one comes back only while no later one is under way or has arrived`() {
    var table = RequestTable<Void>(role: .client)
    let ids = ordered(&table, 4)
    func keepsOrder(_ index: Int) -> Bool {
      table.keepsOrder(ids[index], table.entry(ids[index])!)
    }
    for id in ids[0...2] { table.placed(id, on: 1, whole) }
    #expect(!keepsOrder(0) && !keepsOrder(1) && keepsOrder(2))
    #expect(table.answered(ids[2].serial, on: 1, isRefused: true)?.number == ids[2].number)
    #expect(!keepsOrder(0) && keepsOrder(1), "what was refused did not arrive")
    table.takeBack(ids[1], .sent)
    #expect(!keepsOrder(1), "its first sending may still arrive, behind later ones")
    #expect(!keepsOrder(0))
    table.placed(ids[3], on: 1, whole)
    table.takeBack(ids[3], .refused)
    let last = ordered(&table, 1)[0]
    table.placed(last, on: 1, whole)
    #expect(table.end(last) != nil)
    #expect(keepsOrder(3), "the later one was taken back before it left")
    let other = ordered(&table, 1)[0]
    table.placed(other, on: 1, whole)
    #expect(table.answered(other.serial, on: 1)?.number == other.number)
    #expect(!keepsOrder(3))
  }

  @Test func `unordered requests keep no order`() {
    var table = RequestTable<Void>(role: .client)
    let first = table.create(deadline: nil, notifiesCancel: false, at: .start)
    let second = ordered(&table, 1)[0]
    table.placed(second, on: 1, whole)
    #expect(table.keepsOrder(first, table.entry(first)!) == true)
    table.placed(first, on: 1, .keptBack)
    let third = ordered(&table, 1)[0]
    #expect(table.isNext(third, isOrdered: true, on: 1) == true)
  }
}
