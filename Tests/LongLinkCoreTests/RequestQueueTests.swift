// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Which of the requests that wait goes next.
@Suite struct RequestQueueTests {
  private func create(
    _ dispatch: inout Dispatch, deadline: LinkInstant? = nil, isOrdered: Bool = false
  ) -> RequestID {
    dispatch.create(deadline: deadline, isOrdered: isOrdered, notifiesCancel: true, at: .start)
  }

  private func terms(
    _ priority: UInt32 = 0, _ deadline: LinkInstant = .distantFuture, bytes: Int = 0
  ) -> WaitTerms {
    WaitTerms(priority: priority, deadline: deadline, bytes: bytes)
  }

  /// Takes all that may go to a link and places them there, as whole frames.
  private func drain(_ dispatch: inout Dispatch, on link: UInt32) -> [RequestID] {
    var order: [RequestID] = []
    while let id = dispatch.nextWaiting(on: link) {
      dispatch.placed(id, on: link, RequestPlacement(begin: UInt64(order.count), ordinal: 1))
      order.append(id)
    }
    return order
  }

  @Test func `priority comes first, then the deadline, then the order of submission`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<7).map { _ in create(&dispatch) }
    let all = [
      terms(0), terms(0, .ms(50)), terms(2), terms(0, .ms(20)), terms(2, .ms(90)), terms(0),
      terms(.max),
    ]
    for (id, terms) in zip(ids, all) { dispatch.wait(id, terms) }
    #expect(dispatch.hasTurn(on: 1) == true)
    #expect(drain(&dispatch, on: 1) == [6, 4, 2, 3, 1, 0, 5].map { ids[$0] })
    #expect(!dispatch.hasTurn(on: 1) && dispatch.waitingCount == 0)
  }

  @Test func `bytes are counted while a request waits, however it stops to`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<4).map { _ in create(&dispatch, deadline: .ms(10)) }
    for id in ids[0..<3] { dispatch.wait(id, terms(bytes: 100)) }
    dispatch.wait(ids[3], terms(bytes: 1_000), until: .ms(5), at: .start)
    // Who waits already does not wait twice.
    dispatch.wait(ids[0], terms(bytes: 100))
    #expect(dispatch.waitingBytes == 1_300 && dispatch.waitingCount == 4)
    #expect(dispatch.nextWaiting(on: 1) == ids[0])
    #expect(dispatch.waitingBytes == 1_200)
    #expect(dispatch.end(ids[1]) != nil)
    #expect(dispatch.waitingBytes == 1_100)
    dispatch.elapsed(to: .ms(10))
    while dispatch.nextExpired() != nil {}
    #expect(dispatch.waitingBytes == 0 && dispatch.waitingCount == 0 && dispatch.count == 0)
  }

  @Test func `one that waits for its time lets others pass, and no other time ends the wait`() {
    var dispatch = Dispatch(role: .client)
    let (later, other) = (create(&dispatch), create(&dispatch, deadline: .ms(500)))
    dispatch.wait(later, terms(9), until: .ms(100), at: .start)
    #expect(!dispatch.hasTurn(on: 1) && dispatch.isNext(other, isOrdered: false, on: 1))
    dispatch.wait(other, terms(0))
    #expect(dispatch.deadline! <= .ms(100))
    #expect(dispatch.nextWaiting(on: 1) == other)
    #expect(dispatch.nextWaiting(on: 1) == nil)
    dispatch.elapsed(to: .ms(99))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.nextWaiting(on: 1) == nil)
    dispatch.elapsed(to: .ms(100))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.nextWaiting(on: 1) == later)
  }

  @Test func `one that ends while it waits for its time leaves nothing behind`() {
    var dispatch = Dispatch(role: .client)
    let id = create(&dispatch, deadline: .ms(300))
    dispatch.wait(id, terms(), until: .ms(100), at: .start)
    #expect(dispatch.waitingRequests().map(\.id) == [id])
    #expect(dispatch.end(id) != nil)
    #expect(dispatch.deadline == nil && dispatch.waitingCount == 0)
    dispatch.elapsed(to: .ms(1_000))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.hasTurn(on: 1) == false)
  }

  @Test func `a new serial keeps the identity, the deadline and the past`() {
    var dispatch = Dispatch(role: .client)
    let old = create(&dispatch, deadline: .ms(300))
    dispatch.placed(old, on: 1, RequestPlacement(begin: 0, ordinal: 1))
    dispatch.takeBack(old, .refused)
    let new = dispatch.renew(old, deadline: .ms(300))
    #expect(new.serial != old.serial && new.number == old.number)
    #expect(dispatch.current(old) == new && dispatch.current(new) == new)
    #expect(dispatch.entry(old) == nil)
    #expect(dispatch.entry(new)!.past == .refused && dispatch.entry(new)!.returns == 1)
    dispatch.placed(new, on: 1, RequestPlacement(begin: 10, ordinal: 2))
    #expect(dispatch.answered(old.serial, on: 1) == nil, "a late answer to the old serial")
    #expect(!dispatch.awaits(old.serial, on: 1) && dispatch.awaits(new.serial, on: 1))
    dispatch.takeBack(new, .refused)
    let newest = dispatch.renew(new, deadline: .ms(300))
    #expect(dispatch.current(old) == newest)
    dispatch.wait(newest, terms(), until: .ms(200), at: .start)
    dispatch.elapsed(to: .ms(299))
    #expect(dispatch.nextExpired() == nil)
    dispatch.elapsed(to: .ms(300))
    #expect(dispatch.nextExpired()?.id == newest)
    #expect(dispatch.current(old) == old && dispatch.deadline == nil)
  }

  @Test func `a hundred thousand wait, and most of them give up`() {
    var dispatch = Dispatch(role: .client)
    var dice = Seeded(3)
    let ids = (0..<100_000).map { index in
      create(&dispatch, deadline: .ms(Int64(1 + dice.below(1_000))), isOrdered: index % 10 == 0)
    }
    for id in ids { dispatch.wait(id, terms(UInt32(dice.below(4)), bytes: 10)) }
    for id in ids where dice.below(2) == 0 { _ = dispatch.end(id) }
    dispatch.elapsed(to: .ms(500))
    while dispatch.nextExpired() != nil {}
    let left = dispatch.waitingCount
    #expect(left > 10_000 && dispatch.waitingBytes == 10 * left)
    #expect(drain(&dispatch, on: 1).count == left)
    #expect(dispatch.carriedCount(by: 1) == left && dispatch.carriedCount == left)
    #expect(dispatch.waitingBytes == 0)
  }
}

/// The order of submission, for those that want it.
@Suite struct OrderedLaneTests {
  private let terms = WaitTerms(priority: 0, deadline: .distantFuture, bytes: 0)
  private let whole = RequestPlacement(begin: 0, ordinal: 1)

  private func ordered(_ dispatch: inout Dispatch, _ count: Int) -> [RequestID] {
    (0..<count).map { _ in
      dispatch.create(deadline: nil, isOrdered: true, notifiesCancel: false, at: .start)
    }
  }

  @Test func `priorities and deadlines change nothing among ordered ones`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 3)
    let free = (0..<2).map { _ in
      dispatch.create(deadline: nil, notifiesCancel: false, at: .start)
    }
    dispatch.wait(ids[2], WaitTerms(priority: 9, deadline: .ms(1), bytes: 0))
    dispatch.wait(ids[1], WaitTerms(priority: 0, deadline: .ms(1), bytes: 0))
    dispatch.wait(ids[0], WaitTerms(priority: 3, deadline: .distantFuture, bytes: 0))
    dispatch.wait(free[0], WaitTerms(priority: 5, deadline: .distantFuture, bytes: 0))
    dispatch.wait(free[1], WaitTerms(priority: 1, deadline: .distantFuture, bytes: 0))
    var order: [RequestID] = []
    while let id = dispatch.nextWaiting(on: 1) {
      dispatch.placed(id, on: 1, whole)
      order.append(id)
    }
    // The lane has the urgency of its first: 3, then 0, then 9.
    #expect(order == [free[0], ids[0], free[1], ids[1], ids[2]])
  }

  @Test func `a later one waits until an earlier one has been encoded to its end`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 2)
    #expect(dispatch.isNext(ids[0], isOrdered: true, on: 1) == true)
    dispatch.placed(ids[0], on: 1, .keptBack)
    #expect(dispatch.isNext(ids[1], isOrdered: true, on: 1) == false)
    dispatch.wait(ids[1], terms)
    dispatch.began(ids[0].serial, on: 1, at: 0, ordinal: 1)
    #expect(dispatch.nextWaiting(on: 1) == nil)
    dispatch.finished(ids[0].serial, on: 2)
    #expect(dispatch.hasTurn(on: 1) == false, "word of another link")
    dispatch.finished(ids[0].serial, on: 1)
    #expect(dispatch.nextWaiting(on: 1) == ids[1])
  }

  @Test func `one that ends before it was sent whole holds up nobody`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 2)
    dispatch.placed(ids[0], on: 1, .keptBack)
    dispatch.wait(ids[1], terms)
    #expect(dispatch.end(ids[0]) != nil)
    #expect(dispatch.nextWaiting(on: 1) == ids[1])
  }

  @Test func `no later one overtakes on another link`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 3)
    dispatch.placed(ids[0], on: 1, whole)
    dispatch.placed(ids[1], on: 1, whole)
    #expect(dispatch.isNext(ids[2], isOrdered: true, on: 2) == false)
    dispatch.wait(ids[2], terms)
    #expect(dispatch.answered(ids[0].serial, on: 1) == ids[0])
    #expect(dispatch.nextWaiting(on: 2) == nil)
    #expect(dispatch.answered(ids[1].serial, on: 1) == ids[1])
    #expect(dispatch.nextWaiting(on: 2) == ids[2])
  }

  @Test func `later ones wait while the first waits for its time`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 2)
    dispatch.placed(ids[0], on: 1, whole)
    dispatch.takeBack(ids[0], .refused)
    dispatch.wait(ids[0], terms, until: .ms(50), at: .start)
    #expect(dispatch.isNext(ids[1], isOrdered: true, on: 1) == false)
    dispatch.wait(ids[1], terms)
    #expect(dispatch.hasTurn(on: 1) == false)
    dispatch.elapsed(to: .ms(50))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.nextWaiting(on: 1) == ids[0])
    dispatch.placed(ids[0], on: 1, whole)
    #expect(dispatch.nextWaiting(on: 1) == ids[1])
  }

  @Test func `a refused one comes back only while no later one is under way or has arrived`() {
    var dispatch = Dispatch(role: .client)
    let ids = ordered(&dispatch, 4)
    func keepsOrder(_ index: Int) -> Bool {
      dispatch.keepsOrder(ids[index], dispatch.entry(ids[index])!)
    }
    for id in ids[0...2] { dispatch.placed(id, on: 1, whole) }
    #expect(!keepsOrder(0) && !keepsOrder(1) && keepsOrder(2))
    #expect(dispatch.answered(ids[2].serial, on: 1, isRefused: true) == ids[2])
    #expect(!keepsOrder(0) && keepsOrder(1), "what was refused did not arrive")
    dispatch.takeBack(ids[1], .sent)
    #expect(!keepsOrder(1), "its first sending may still arrive, behind later ones")
    #expect(!keepsOrder(0))
    dispatch.placed(ids[3], on: 1, whole)
    dispatch.takeBack(ids[3], .refused)
    let last = ordered(&dispatch, 1)[0]
    dispatch.placed(last, on: 1, whole)
    #expect(dispatch.end(last) != nil)
    #expect(keepsOrder(3), "the later one was taken back before it left")
    let other = ordered(&dispatch, 1)[0]
    dispatch.placed(other, on: 1, whole)
    #expect(dispatch.answered(other.serial, on: 1) == other)
    #expect(!keepsOrder(3))
  }

  @Test func `those that are not ordered keep no order`() {
    var dispatch = Dispatch(role: .client)
    let first = dispatch.create(deadline: nil, notifiesCancel: false, at: .start)
    let second = ordered(&dispatch, 1)[0]
    dispatch.placed(second, on: 1, whole)
    #expect(dispatch.keepsOrder(first, dispatch.entry(first)!) == true)
    dispatch.placed(first, on: 1, .keptBack)
    let third = ordered(&dispatch, 1)[0]
    #expect(dispatch.isNext(third, isOrdered: true, on: 1) == true)
  }
}
