// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Large bodies wait by themselves while a link takes none.
@Suite struct LargeWaitingTests {
  private let now = LinkInstant.start

  private func wait(
    _ table: inout RequestTable<Void>, _ bytes: Int, priority: UInt32 = 0, isOrdered: Bool = false
  ) -> RequestID {
    let id = table.create(
      deadline: nil, isOrdered: isOrdered, notifiesCancel: false, at: now)
    table.wait(
      id, WaitTerms(priority: priority, deadline: .distantFuture, bytes: bytes))
    return id
  }

  @Test func `small requests pass large ones that a link does not take`() {
    var table = RequestTable<Void>(role: .client)
    let large = wait(&table, 65_537, priority: 3)
    let small = wait(&table, 65_536)
    let other = wait(&table, 1, priority: 1)
    #expect(table.hasNext(on: 1, takesLarge: false) == true)
    #expect(table.nextWaiting(on: 1, takesLarge: false) == other)
    #expect(table.nextWaiting(on: 1, takesLarge: false) == small)
    #expect(table.hasNext(on: 1, takesLarge: false) == false)
    #expect(table.nextWaiting(on: 1, takesLarge: false) == nil)
    #expect(table.waitingCount == 1 && table.hasNext(on: 1))
    #expect(table.nextWaiting(on: 1) == large)
    #expect(table.waitingCount == 0 && table.waitingBytes == 0)
  }

  @Test func `if a link takes all requests, size is no reason to wait`() {
    var table = RequestTable<Void>(role: .client)
    let ids = [70_000, 1, 80_000, 2].map { wait(&table, $0) }
    var order: [RequestID] = []
    while let id = table.nextWaiting(on: 1) { order.append(id) }
    #expect(order == ids)
  }

  @Test func `a new small request goes before large ones that wait`() {
    var table = RequestTable<Void>(role: .client)
    _ = wait(&table, 70_000)
    let id = table.create(deadline: nil, isOrdered: false, notifiesCancel: false, at: now)
    #expect(table.isNext(id, isOrdered: false, on: 1) == false)
    #expect(table.isNext(id, isOrdered: false, on: 1, takesLarge: false) == true)
  }

  @Test func `ordered requests wait behind a large ordered one`() {
    var table = RequestTable<Void>(role: .client)
    let first = wait(&table, 70_000, isOrdered: true)
    let second = wait(&table, 1, isOrdered: true)
    #expect(table.hasNext(on: 1, takesLarge: false) == false)
    #expect(table.nextWaiting(on: 1, takesLarge: false) == nil)
    #expect(table.nextWaiting(on: 1) == first)
    #expect(table.nextWaiting(on: 1, takesLarge: false) == second)
  }

  @Test func `a large request that ends leaves nothing behind`() {
    var table = RequestTable<Void>(role: .client)
    let ids = (0..<100).map { wait(&table, $0 % 2 == 0 ? 70_000 : 1) }
    for id in ids { #expect(table.end(id) != nil) }
    #expect(!table.hasNext(on: 1) && table.waitingBytes == 0)
  }
}
