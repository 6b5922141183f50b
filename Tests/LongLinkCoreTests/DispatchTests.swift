// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct DispatchTests {
  private func create(_ dispatch: inout Dispatch, deadline: LinkInstant? = nil) -> RequestID {
    dispatch.create(deadline: deadline, notifiesCancel: true, at: .start)
  }

  private func terms(_ priority: UInt32 = 0) -> WaitTerms {
    WaitTerms(priority: priority, deadline: .distantFuture, bytes: 0)
  }

  @Test func `no request has the name that names none`() {
    var dispatch = Dispatch(serials: 1...8)
    let first = create(&dispatch)
    #expect(first.number != RequestID.none.number)
    // It is refused and gets another serial. A request that never got a name is not it.
    let renewed = dispatch.renew(first, deadline: .distantFuture)
    #expect(dispatch.current(first) == renewed && renewed != first)
    #expect(dispatch.current(.none) == .none)
    #expect(dispatch.end(dispatch.current(.none)) == nil)
    #expect(dispatch.count == 1)
  }

  @Test func `a deadline is met however many requests have come and gone since`() {
    var dispatch = Dispatch(role: .client)
    let late = dispatch.create(deadline: .ms(200), notifiesCancel: false, at: .start)
    let early = dispatch.create(deadline: .ms(100), notifiesCancel: false, at: .start)
    for _ in 0..<3_000 {
      let id = dispatch.create(deadline: .ms(100), notifiesCancel: false, at: .start)
      #expect(dispatch.end(id) != nil)
    }
    #expect(dispatch.deadline == .ms(100))
    dispatch.elapsed(to: .ms(99))
    #expect(dispatch.nextExpired() == nil)
    dispatch.elapsed(to: .ms(100))
    #expect(dispatch.nextExpired()?.id == early)
    #expect(dispatch.nextExpired() == nil)
    dispatch.elapsed(to: .ms(200))
    #expect(dispatch.nextExpired()?.id == late)
    #expect(dispatch.deadline == nil && dispatch.count == 0)
  }

  @Test(arguments: [Role.client, .server])
  func `serials wrap and pass over those in use`(role: Role) {
    var dispatch = Dispatch(role: role, firstSerial: 0x7FFF_FFFE)
    let bit: UInt32 = role == .server ? 0x8000_0000 : 0
    let first = create(&dispatch)
    let second = create(&dispatch)
    let third = create(&dispatch)
    #expect(first.serial == 0x7FFF_FFFE | bit)
    #expect(second.serial == 0x7FFF_FFFF | bit)
    #expect(third.serial == 50 | bit)
    #expect(role.owns(first.serial) && role.owns(second.serial) && role.owns(third.serial))
  }

  @Test func `a serial in use is passed over after the wrap`() {
    var dispatch = Dispatch(role: .client, firstSerial: 50)
    let kept = (0..<10).map { _ in create(&dispatch) }
    var wrapped = Dispatch(role: .client, firstSerial: 0x7FFF_FFFF)
    let last = create(&wrapped)
    let again = (0..<3).map { _ in create(&wrapped) }
    #expect(last.serial == 0x7FFF_FFFF)
    #expect(again.map(\.serial) == kept.prefix(3).map(\.serial))
    #expect(wrapped.end(again[0]) != nil)
    // 50 is free again, but its turn comes only when the count has come round.
    #expect(create(&wrapped).serial == 53)
  }

  @Test func `a serial that was given up rests where there are few`() {
    var dispatch = Dispatch(serials: 1...8)
    let given = create(&dispatch)
    #expect(given.serial == 1 && dispatch.end(given) != nil)
    dispatch.rest(given.serial)
    for serial: UInt32 in [2, 3, 4, 5, 6, 7, 8, 2, 3] {
      let next = create(&dispatch)
      #expect(next.serial == serial && dispatch.end(next) != nil)
    }
    dispatch.endRest(of: 1)
    let lap = (0..<6).map { _ in
      let next = create(&dispatch)
      _ = dispatch.end(next)
      return next.serial
    }
    #expect(lap == [4, 5, 6, 7, 8, 1])
    // The one that was given up first is free again when a quarter of all of them rest.
    for serial: UInt32 in [2, 3, 4] { dispatch.rest(serial) }
    #expect(create(&dispatch).serial == 2)
    dispatch.endRests()
    #expect(create(&dispatch).serial == 3)
  }

  @Test func `each ends once, whatever ends it`() {
    var dispatch = Dispatch(role: .client)
    let id = create(&dispatch, deadline: .ms(10))
    dispatch.placed(id, on: 7, RequestPlacement(begin: 100, ordinal: 1))
    #expect(dispatch.answered(id.serial, on: 8) == nil, "another link's response is not its own")
    #expect(dispatch.awaits(id.serial, on: 7) && !dispatch.awaits(id.serial, on: 8))
    #expect(dispatch.answered(id.serial, on: 7) == id)
    #expect(dispatch.answered(id.serial, on: 7) == nil)
    #expect(dispatch.end(id) == nil)
    dispatch.elapsed(to: .ms(1000))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.count == 0 && dispatch.carriedCount == 0)
    #expect(dispatch.entry(.none) == nil && dispatch.end(.none) == nil)
  }

  @Test func `deadlines end requests wherever they are`() {
    var dispatch = Dispatch(role: .client)
    let waits = create(&dispatch, deadline: .ms(5))
    let carried = create(&dispatch, deadline: .ms(10))
    let endless = create(&dispatch)
    dispatch.wait(waits, terms())
    dispatch.placed(carried, on: 1, .keptBack)
    #expect(dispatch.deadline! <= .ms(5))
    dispatch.elapsed(to: .ms(4))
    #expect(dispatch.nextExpired() == nil)
    dispatch.elapsed(to: .ms(10))
    #expect(dispatch.nextExpired()?.id == waits)
    #expect(dispatch.nextExpired()?.id == carried)
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.waitingCount == 0 && dispatch.carriedCount == 0 && dispatch.count == 1)
    #expect(dispatch.nextWaiting(on: 1) == nil)
    #expect(dispatch.entry(endless) != nil)
  }

  @Test func `what may have happened follows from the bytes that were written`() {
    var dispatch = Dispatch(role: .client)
    let id = create(&dispatch)
    #expect(dispatch.entry(id)!.delivery(written: .max) == .notSent)
    dispatch.placed(id, on: 1, .keptBack)
    #expect(dispatch.entry(id)!.delivery(written: .max) == .notSent)
    dispatch.began(id.serial, on: 2, at: 5, ordinal: 9)
    #expect(dispatch.entry(id)!.placement == .keptBack, "word of another link")
    dispatch.began(id.serial, on: 1, at: 100, ordinal: 3)
    #expect(dispatch.entry(id)!.delivery(written: 99) == .notSent)
    #expect(dispatch.entry(id)!.delivery(written: 100) == .notSent)
    #expect(dispatch.entry(id)!.delivery(written: 101) == .sent)
  }

  @Test func `what comes back goes in front of what was submitted later`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<6).map { _ in create(&dispatch) }
    for id in ids[0..<4] { dispatch.placed(id, on: 1, RequestPlacement(begin: 0, ordinal: 1)) }
    for id in ids[4...] { dispatch.wait(id, terms()) }
    #expect(dispatch.carried(by: 1).map(\.id) == Array(ids[0..<4]))
    #expect(dispatch.end(ids[2]) != nil)
    for id in [ids[3], ids[0], ids[1], ids[2], ids[0]] {
      dispatch.takeBack(id, .notSent)
      dispatch.wait(id, terms())
    }
    #expect(dispatch.carriedCount == 0 && dispatch.waitingCount == 5)
    #expect(dispatch.entry(ids[0])!.delivery(written: .max) == .notSent)
    #expect(dispatch.entry(ids[0])!.returns == 0)
    #expect(dispatch.waitingRequests().map(\.id) == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    var order: [RequestID] = []
    while let id = dispatch.nextWaiting(on: 1) { order.append(id) }
    #expect(order == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    #expect(dispatch.waitingCount == 0)
  }

  @Test func `what links carry is counted for each`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<5).map { _ in create(&dispatch) }
    for (index, id) in ids.enumerated() {
      dispatch.placed(id, on: UInt32(1 + index % 2), RequestPlacement(begin: 0, ordinal: 1))
    }
    #expect(dispatch.carriedCount(by: 1) == 3 && dispatch.carriedCount(by: 2) == 2)
    #expect(dispatch.end(ids[0]) != nil)
    dispatch.takeBack(ids[2], .notSent)
    dispatch.takeBack(ids[2], .notSent)
    #expect(dispatch.answered(ids[1].serial, on: 2) == ids[1])
    #expect(dispatch.carriedCount(by: 1) == 1 && dispatch.carriedCount(by: 2) == 1)
    #expect(dispatch.carriedCount == 2 && dispatch.carriedCount(by: 3) == 0)
  }

  @Test func `the identity of one that has ended touches no other with its serial`() {
    var dispatch = Dispatch(role: .client, firstSerial: 0x7FFF_FFFF)
    let old = create(&dispatch)
    #expect(dispatch.end(old) != nil)
    // Another table stands in for the wrap: the same serial, given out once more.
    var wrapped = Dispatch(role: .client, firstSerial: 0x7FFF_FFFE)
    _ = create(&wrapped)
    let new = create(&wrapped)
    #expect(new.serial == old.serial && new != old)
    wrapped.wait(old, terms())
    wrapped.placed(old, on: 1, .keptBack)
    wrapped.takeBack(old, .sent)
    #expect(wrapped.waitingCount == 0 && wrapped.carriedCount == 0)
    #expect(wrapped.end(old) == nil)
    #expect(wrapped.waitingCount == 0 && wrapped.carriedCount == 0)
  }

  @Test func `requests that end while they wait leave nothing behind`() {
    var dispatch = Dispatch(role: .client)
    let first = create(&dispatch)
    dispatch.wait(first, terms())
    for number in 0..<20_000 {
      let id = create(&dispatch)
      dispatch.wait(id, terms(UInt32(number % 3)))
      _ = dispatch.end(id)
    }
    #expect(dispatch.waitingCount == 1)
    #expect(dispatch.nextWaiting(on: 1) == first)
    #expect(dispatch.hasTurn(on: 1) == false)
  }

  @Test(arguments: 0..<60)
  func `random operations end each request exactly once`(seed: Int) {
    var model = DispatchModel(seed: UInt64(seed))
    for _ in 0..<600 { model.step() }
    model.finish()
    #expect(model.problems == [])
  }
}
