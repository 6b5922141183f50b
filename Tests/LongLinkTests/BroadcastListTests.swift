// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkDriver

/// Many subscribers of one list.
@Suite struct BroadcastListTests {
  private struct Item: Broadcastable {
    let bufferedBytes = 1
    static var plural: String { "items" }
  }

  private typealias List = BroadcastList<Int, Item>

  @Test func `of many subscribers that leave, few make the list move the others`() {
    let list = List()
    var subscriptions: [BroadcastSubscription<Item>?] = (0..<1_000).map { _ in
      list.subscription(to: nil, .dropOldest(4))
    }
    var moves = 0
    // 7 and 1,000 have no common divisor: each leaves once, in no order.
    for step in 0..<1_000 {
      let places = list.placeCount
      subscriptions[step * 7 % 1_000] = nil
      if list.placeCount < places { moves += 1 }
      #expect(list.subscriberCount == 999 - step)
      #expect(list.placeCount <= 2 * list.subscriberCount)
    }
    #expect(moves <= 12)
    #expect(!list.publish(Item(), for: 0))
  }

  @Test func `those that stay get what is published, those that left nothing`() {
    let list = List()
    var leaving: [BroadcastSubscription<Item>] = []
    var staying: [BroadcastSubscription<Item>] = []
    for index in 0..<100 {
      let subscription = list.subscription(to: index % 2, .dropOldest(4))
      if index.isMultiple(of: 3) {
        staying.append(subscription)
      } else {
        leaving.append(subscription)
      }
    }
    let gone = leaving.map(\.box)
    leaving = []
    #expect(list.publish(Item(), for: 0))
    let buffered = staying.map { $0.box.counts.buffered }
    let expected: [Int] = (0..<34).map { 1 - $0 % 2 }
    #expect(buffered == expected)
    #expect(gone.allSatisfy { $0.counts.buffered == 0 })
    list.close()
    #expect(list.subscriberCount == 0 && list.placeCount == 0)
  }
}
