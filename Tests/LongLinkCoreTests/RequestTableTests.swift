// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct RequestTableTests {
  private func create(_ table: inout RequestTable<Void>, deadline: LinkInstant? = nil) -> RequestID
  {
    table.create(deadline: deadline, notifiesCancel: true, at: .start)
  }

  private func terms(_ priority: UInt32 = 0) -> WaitTerms {
    WaitTerms(priority: priority, deadline: .distantFuture, bytes: 0)
  }

  @Test func `no request has the identity that means none`() {
    var table = RequestTable<Void>(serials: 1...8)
    let first = create(&table)
    #expect(first.number != RequestID.none.number)
    // It is refused and gets another serial. A request that never got a name is not it.
    let renewed = table.renew(first, deadline: .distantFuture)
    #expect(table.current(first) == renewed && renewed != first)
    #expect(table.current(.none) == .none)
    #expect(table.end(table.current(.none)) == nil)
    #expect(table.count == 1)
  }

  @Test func `a deadline is met however many requests have come and gone since`() {
    var table = RequestTable<Void>(role: .client)
    let late = table.create(deadline: .ms(200), notifiesCancel: false, at: .start)
    let early = table.create(deadline: .ms(100), notifiesCancel: false, at: .start)
    for _ in 0..<3_000 {
      let id = table.create(deadline: .ms(100), notifiesCancel: false, at: .start)
      #expect(table.end(id) != nil)
    }
    #expect(table.deadline == .ms(100))
    table.elapsed(to: .ms(99))
    #expect(table.nextExpired() == nil)
    table.elapsed(to: .ms(100))
    #expect(table.nextExpired()?.id == early)
    #expect(table.nextExpired() == nil)
    table.elapsed(to: .ms(200))
    #expect(table.nextExpired()?.id == late)
    #expect(table.deadline == nil && table.count == 0)
  }

  @Test(arguments: [Role.client, .server])
  func `serials wrap and pass over those in use`(role: Role) {
    var table = RequestTable<Void>(role: role, firstSerial: 0x7FFF_FFFE)
    let bit: UInt32 = role == .server ? 0x8000_0000 : 0
    let first = create(&table)
    let second = create(&table)
    let third = create(&table)
    #expect(first.serial == 0x7FFF_FFFE | bit)
    #expect(second.serial == 0x7FFF_FFFF | bit)
    #expect(third.serial == 50 | bit)
    #expect(role.owns(first.serial) && role.owns(second.serial) && role.owns(third.serial))
  }

  @Test func `a serial in use is passed over after the wrap`() {
    var table = RequestTable<Void>(role: .client, firstSerial: 50)
    let kept = (0..<10).map { _ in create(&table) }
    var wrapped = RequestTable<Void>(role: .client, firstSerial: 0x7FFF_FFFF)
    let last = create(&wrapped)
    let again = (0..<3).map { _ in create(&wrapped) }
    #expect(last.serial == 0x7FFF_FFFF)
    #expect(again.map(\.serial) == kept.prefix(3).map(\.serial))
    #expect(wrapped.end(again[0]) != nil)
    // 50 is free again, but its turn comes only when the count has come round.
    #expect(create(&wrapped).serial == 53)
  }

  @Test func `an abandoned serial is not reused soon if serials are few`() {
    var table = RequestTable<Void>(serials: 1...8)
    let given = create(&table)
    #expect(given.serial == 1 && table.end(given) != nil)
    table.rest(given.serial)
    for serial: UInt32 in [2, 3, 4, 5, 6, 7, 8, 2, 3] {
      let next = create(&table)
      #expect(next.serial == serial && table.end(next) != nil)
    }
    table.endRest(of: 1)
    let lap = (0..<6).map { _ in
      let next = create(&table)
      _ = table.end(next)
      return next.serial
    }
    #expect(lap == [4, 5, 6, 7, 8, 1])
    // The one that was given up first is free again when a quarter of all of them rest.
    for serial: UInt32 in [2, 3, 4] { table.rest(serial) }
    #expect(create(&table).serial == 2)
    table.endRests()
    #expect(create(&table).serial == 3)
  }

  @Test func `each request ends once, whatever ends it`() {
    var table = RequestTable<Void>(role: .client)
    let id = create(&table, deadline: .ms(10))
    table.placed(id, on: 7, OutputPosition(begin: 100, ordinal: 1))
    #expect(table.answered(id.serial, on: 8) == nil, "another link's response is not its own")
    #expect(table.awaits(id.serial, on: 7) && !table.awaits(id.serial, on: 8))
    #expect(table.answered(id.serial, on: 7)?.number == id.number)
    #expect(table.answered(id.serial, on: 7) == nil)
    #expect(table.end(id) == nil)
    table.elapsed(to: .ms(1000))
    #expect(table.nextExpired() == nil)
    #expect(table.count == 0 && table.carriedCount == 0)
    #expect(table.entry(.none) == nil && table.end(.none) == nil)
  }

  @Test func `deadlines end requests wherever they are`() {
    var table = RequestTable<Void>(role: .client)
    let waits = create(&table, deadline: .ms(5))
    let carried = create(&table, deadline: .ms(10))
    let endless = create(&table)
    table.wait(waits, terms())
    table.placed(carried, on: 1, .keptBack)
    #expect(table.deadline! <= .ms(5))
    table.elapsed(to: .ms(4))
    #expect(table.nextExpired() == nil)
    table.elapsed(to: .ms(10))
    #expect(table.nextExpired()?.id == waits)
    #expect(table.nextExpired()?.id == carried)
    #expect(table.nextExpired() == nil)
    #expect(table.waitingCount == 0 && table.carriedCount == 0 && table.count == 1)
    #expect(table.nextWaiting(on: 1) == nil)
    #expect(table.entry(endless) != nil)
  }

  @Test func `what may have happened follows from the bytes that were written`() {
    var table = RequestTable<Void>(role: .client)
    let id = create(&table)
    #expect(table.entry(id)!.delivery(written: .max) == .notSent)
    table.placed(id, on: 1, .keptBack)
    #expect(table.entry(id)!.delivery(written: .max) == .notSent)
    table.began(id.serial, on: 2, at: 5, ordinal: 9)
    #expect(table.entry(id)!.position == .keptBack, "word of another link")
    table.began(id.serial, on: 1, at: 100, ordinal: 3)
    #expect(table.entry(id)!.delivery(written: 99) == .notSent)
    #expect(table.entry(id)!.delivery(written: 100) == .notSent)
    #expect(table.entry(id)!.delivery(written: 101) == .sent)
  }

  @Test func `requests that come back go in front of those submitted later`() {
    var table = RequestTable<Void>(role: .client)
    let ids = (0..<6).map { _ in create(&table) }
    for id in ids[0..<4] { table.placed(id, on: 1, OutputPosition(begin: 0, ordinal: 1)) }
    for id in ids[4...] { table.wait(id, terms()) }
    #expect(table.carried(by: 1).map(\.id) == Array(ids[0..<4]))
    #expect(table.end(ids[2]) != nil)
    for id in [ids[3], ids[0], ids[1], ids[2], ids[0]] {
      table.takeBack(id, .notSent)
      table.wait(id, terms())
    }
    #expect(table.carriedCount == 0 && table.waitingCount == 5)
    #expect(table.entry(ids[0])!.delivery(written: .max) == .notSent)
    #expect(table.entry(ids[0])!.returns == 0)
    #expect(table.waitingRequests().map(\.id) == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    var order: [RequestID] = []
    while let id = table.nextWaiting(on: 1) { order.append(id) }
    #expect(order == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    #expect(table.waitingCount == 0)
  }

  @Test func `requests in flight are counted for each link`() {
    var table = RequestTable<Void>(role: .client)
    let ids = (0..<5).map { _ in create(&table) }
    for (index, id) in ids.enumerated() {
      table.placed(id, on: UInt32(1 + index % 2), OutputPosition(begin: 0, ordinal: 1))
    }
    #expect(table.carriedCount(by: 1) == 3 && table.carriedCount(by: 2) == 2)
    #expect(table.end(ids[0]) != nil)
    table.takeBack(ids[2], .notSent)
    table.takeBack(ids[2], .notSent)
    #expect(table.answered(ids[1].serial, on: 2)?.number == ids[1].number)
    #expect(table.carriedCount(by: 1) == 1 && table.carriedCount(by: 2) == 1)
    #expect(table.carriedCount == 2 && table.carriedCount(by: 3) == 0)
  }

  @Test func `the identity of one that has ended touches no other with its serial`() {
    var table = RequestTable<Void>(role: .client, firstSerial: 0x7FFF_FFFF)
    let old = create(&table)
    #expect(table.end(old) != nil)
    // Another table stands in for the wrap: the same serial, given out once more.
    var wrapped = RequestTable<Void>(role: .client, firstSerial: 0x7FFF_FFFE)
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
    var table = RequestTable<Void>(role: .client)
    let first = create(&table)
    table.wait(first, terms())
    for number in 0..<20_000 {
      let id = create(&table)
      table.wait(id, terms(UInt32(number % 3)))
      _ = table.end(id)
    }
    #expect(table.waitingCount == 1)
    #expect(table.nextWaiting(on: 1) == first)
    #expect(table.hasNext(on: 1) == false)
  }

  @Test(arguments: 0..<60)
  func `random operations end each request exactly once`(seed: Int) {
    var model = RequestTableModel(seed: UInt64(seed))
    for _ in 0..<600 { model.step() }
    model.finish()
    #expect(model.problems == [])
  }
}
