// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct IndexedHeapTests {
  @Test(arguments: 0..<20)
  func `a heap does what a sorted array does`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var heap = IndexedHeap<Int>()
    var handles: [(element: Int, handle: UInt32)] = []
    var problems: [String] = []
    for step in 0..<4_000 {
      switch dice.below(step % 1_000 < 600 ? 6 : 12) {
      case 0..<4:
        // Several may be equal.
        let element = dice.below(500)
        handles.append((element, heap.insert(element)))
      case 4:
        guard let index = handles.indices.randomElement(using: &dice) else { continue }
        let (element, handle) = handles.remove(at: index)
        if heap.remove(handle) != element { problems.append("another one was removed") }
      default:
        let least = heap.popFirst()
        if least != handles.map(\.element).min() { problems.append("not the least") }
        guard let least else { continue }
        // Which of the equal ones it was shows in those that are left.
        let left = handles.indices.filter { handles[$0].element == least }
        guard left.count == 1 else {
          rebuild(&heap, &handles)
          continue
        }
        handles.remove(at: left[0])
      }
      if heap.count != handles.count { problems.append("count") }
      if heap.first != handles.map(\.element).min() { problems.append("first") }
    }
    #expect(problems == [])
    #expect(heap.elements.sorted() == handles.map(\.element).sorted())
  }

  private func rebuild(
    _ heap: inout IndexedHeap<Int>, _ handles: inout [(element: Int, handle: UInt32)]
  ) {
    let elements = heap.elements
    heap = IndexedHeap()
    handles = elements.map { ($0, 0) }
    for index in handles.indices { handles[index].handle = heap.insert(handles[index].element) }
  }

  @Test func `equality is that of the elements`() {
    var (left, right) = (IndexedHeap<Int>(), IndexedHeap<Int>())
    for element in [3, 1, 2] { _ = left.insert(element) }
    let handle = right.insert(0)
    for element in [1, 2, 3] { _ = right.insert(element) }
    #expect(left != right)
    right.remove(handle)
    #expect(left == right)
  }

  /// Counts how often it is compared.
  private struct Counted: Comparable {
    final class Counter {
      var comparisons = 0
    }

    let value: UInt64
    let counter: Counter

    static func == (lhs: Counted, rhs: Counted) -> Bool { lhs.value == rhs.value }

    static func < (lhs: Counted, rhs: Counted) -> Bool {
      lhs.counter.comparisons += 1
      return lhs.value < rhs.value
    }
  }

  @Test(arguments: ["rising", "falling", "mixed"])
  func `a hundred thousand come and go in few comparisons`(order: String) {
    let count = 100_000
    let counter = Counted.Counter()
    var dice = Seeded(7)
    var heap = IndexedHeap<Counted>()
    var handles: [UInt32] = []
    for number in 0..<count {
      let value: UInt64 =
        switch order {
        case "rising": UInt64(number)
        case "falling": UInt64(count - number)
        default: dice.next()
        }
      handles.append(heap.insert(Counted(value: value, counter: counter)))
    }
    // Every second one is cancelled, wherever it stands, and the others leave in their order.
    for index in stride(from: 0, to: count, by: 2) { heap.remove(handles[index]) }
    var last: UInt64 = 0
    var isSorted = true
    while let next = heap.popFirst() {
      isSorted = isSorted && last <= next.value
      last = next.value
    }
    #expect(isSorted)
    // 17 levels: one comparison each on the way up, two on the way down.
    #expect(counter.comparisons < count * (17 + 2 * 17))
  }
}
