// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Large bodies wait by themselves while a link takes none.
@Suite struct LargeWaitingTests {
  private let now = LinkInstant.start

  private func wait(
    _ dispatch: inout Dispatch, _ bytes: Int, priority: UInt32 = 0, isOrdered: Bool = false
  ) -> RequestID {
    let id = dispatch.create(
      deadline: nil, isOrdered: isOrdered, notifiesCancel: false, at: now)
    dispatch.wait(
      id, WaitTerms(priority: priority, deadline: .distantFuture, bytes: bytes))
    return id
  }

  @Test func `small ones pass large ones that a link does not take`() {
    var dispatch = Dispatch(role: .client)
    let large = wait(&dispatch, 65_537, priority: 3)
    let small = wait(&dispatch, 65_536)
    let other = wait(&dispatch, 1, priority: 1)
    #expect(dispatch.hasTurn(on: 1, takesLarge: false) == true)
    #expect(dispatch.nextWaiting(on: 1, takesLarge: false) == other)
    #expect(dispatch.nextWaiting(on: 1, takesLarge: false) == small)
    #expect(dispatch.hasTurn(on: 1, takesLarge: false) == false)
    #expect(dispatch.nextWaiting(on: 1, takesLarge: false) == nil)
    #expect(dispatch.waitingCount == 1 && dispatch.hasTurn(on: 1))
    #expect(dispatch.nextWaiting(on: 1) == large)
    #expect(dispatch.waitingCount == 0 && dispatch.waitingBytes == 0)
  }

  @Test func `where a link takes all, size is no reason to wait`() {
    var dispatch = Dispatch(role: .client)
    let ids = [70_000, 1, 80_000, 2].map { wait(&dispatch, $0) }
    var order: [RequestID] = []
    while let id = dispatch.nextWaiting(on: 1) { order.append(id) }
    #expect(order == ids)
  }

  @Test func `a new small request goes before large ones that wait`() {
    var dispatch = Dispatch(role: .client)
    _ = wait(&dispatch, 70_000)
    let id = dispatch.create(deadline: nil, isOrdered: false, notifiesCancel: false, at: now)
    #expect(dispatch.isNext(id, isOrdered: false, on: 1) == false)
    #expect(dispatch.isNext(id, isOrdered: false, on: 1, takesLarge: false) == true)
  }

  @Test func `ordered ones wait behind a large one of theirs`() {
    var dispatch = Dispatch(role: .client)
    let first = wait(&dispatch, 70_000, isOrdered: true)
    let second = wait(&dispatch, 1, isOrdered: true)
    #expect(dispatch.hasTurn(on: 1, takesLarge: false) == false)
    #expect(dispatch.nextWaiting(on: 1, takesLarge: false) == nil)
    #expect(dispatch.nextWaiting(on: 1) == first)
    #expect(dispatch.nextWaiting(on: 1, takesLarge: false) == second)
  }

  @Test func `a large one that ends leaves nothing behind`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<100).map { wait(&dispatch, $0 % 2 == 0 ? 70_000 : 1) }
    for id in ids { #expect(dispatch.end(id) != nil) }
    #expect(!dispatch.hasTurn(on: 1) && dispatch.waitingBytes == 0)
  }
}
