// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkCore
@testable import LongLinkDriver

/// The receiving half of a stream, without a link.
@Suite struct ItemReadingTests {
  private func add(_ count: Int, cost: Int, to reading: inout ItemReading) {
    for _ in 0..<count {
      guard case .inbox = reading.place(cost: cost) else { return }
      reading.inbox.append(joined: [1], cost: cost)
    }
  }

  @Test func `an item goes to the reader that waits, else to the inbox, else nowhere`() {
    var reading = ItemReading()
    var places: [String] = []
    func note(_ place: ItemReading.Place) {
      switch place {
      case .reader: places.append("reader")
      case .inbox: places.append("inbox")
      case .nowhere: places.append("nowhere")
      }
    }
    _ = reading.wait { _ in }
    note(reading.place(cost: 20))
    note(reading.place(cost: 20))
    _ = reading.discard()
    note(reading.place(cost: 20))
    #expect(places == ["reader", "inbox", "nowhere"])
    #expect(reading.count == 1)
  }

  @Test func `what was taken is reported from 16 KiB on, or once nothing waits`() {
    var reading = ItemReading()
    add(4, cost: 10_000, to: &reading)
    var reports: [Int?] = []
    for _ in 0..<5 {
      reports.append(reading.takeBack())
      _ = reading.next()
    }
    reports.append(reading.takeBack())
    // The application holds the last item that it got.
    #expect(reports == [nil, nil, 20_000, nil, 20_000, nil])
  }

  @Test func `a read returns items of 64 KiB, and one more at most`() {
    var reading = ItemReading()
    add(20, cost: 30_000, to: &reading)
    let few = reading.next(upTo: 2)?.count
    _ = reading.takeBack()
    let most = reading.next(upTo: 64)?.count
    #expect(few == 2 && most == 3)
  }

  @Test func `a stuck peer goes on once, when the application has all items`() {
    var reading = ItemReading()
    add(1, cost: 100, to: &reading)
    reading.setPeerStuck(true)
    var unsticks = [reading.unsticks()]
    _ = reading.next()
    unsticks += [reading.unsticks(), reading.unsticks()]
    #expect(unsticks == [false, true, false])
  }

  @Test func `a wait ends by its number, or once its time is over`() {
    var reading = ItemReading()
    let first = reading.wait { _ in }
    let isOther = reading.cancel(first + 1) != nil
    let isFirst = reading.cancel(first) != nil
    _ = reading.wait { _ in }
    reading.deadline = LinkInstant(nanoseconds: 5)
    let isEarly = reading.expire(at: LinkInstant(nanoseconds: 4)) != nil
    let isDue = reading.expire(at: LinkInstant(nanoseconds: 5)) != nil
    #expect([isOther, isFirst, isEarly, isDue] == [false, true, false, true])
    #expect(!reading.isAwaited && reading.deadline == .distantFuture)
  }
}
