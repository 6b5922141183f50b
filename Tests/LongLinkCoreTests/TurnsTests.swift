// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Owners that wait for the same thing.
@Suite struct TurnsTests {
  @Test func `owners take turns, and each has its elements in order`() {
    var turns = Turns<String, Int>()
    for number in 1...100 { turns.append(number, of: "many") }
    turns.append(1, of: "few")
    turns.append(2, of: "few")
    var order: [String] = []
    while let (owner, number) = turns.popFirst() {
      order.append("\(owner) \(number)")
      turns.ended(owner)
    }
    #expect(order.prefix(5) == ["many 1", "few 1", "many 2", "few 2", "many 3"])
    #expect(order.count == 102 && turns.count == 0 && turns.running == 0)
  }

  @Test func `an owner of whose elements none runs comes first, and each has a bound`() {
    var turns = Turns<String, Int>()
    for number in 1...5 { turns.append(number, of: "a") }
    var taken: [Int] = []
    while let (_, number) = turns.popFirst(atMost: 3) { taken.append(number) }
    #expect(taken == [1, 2, 3] && turns.running == 3 && turns.count == 2)
    turns.append(9, of: "b")
    #expect(turns.running(of: "a") == 3 && turns.running(of: "b") == 0)
    turns.ended("a")
    let next = turns.popFirst(atMost: 3)
    #expect(next?.owner == "b" && next?.element == 9)
    #expect(turns.popFirst(atMost: 3)?.element == 4)
    let none = turns.popFirst(atMost: 3)
    #expect(none == nil)
  }

  @Test func `elements that wait can be removed`() {
    var turns = Turns<String, Int>()
    for number in 1...10 { turns.append(number, of: number < 5 ? "a" : "b") }
    turns.removeAll { $0 < 5 || $0 % 2 == 0 }
    #expect(turns.count == 3)
    var taken: [Int] = []
    while let (_, number) = turns.popFirst() { taken.append(number) }
    #expect(taken == [5, 7, 9])
  }
}
