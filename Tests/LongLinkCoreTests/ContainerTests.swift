// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct QueueTests {
  @Test(arguments: 0..<10)
  func `a queue does what an array does`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var queue = Queue<Int>()
    var isEqual = true
    var array: [Int] = []
    for number in 0..<4000 {
      switch dice.below(12) {
      case 0..<7:
        queue.append(number)
        array.append(number)
      case 7, 8, 9:
        isEqual = isEqual && queue.popFirst() == (array.isEmpty ? nil : array.removeFirst())
      case 10:
        let wanted = number - dice.below(40)
        let index = array.firstIndex(of: wanted)
        isEqual = isEqual && queue.remove { $0 == wanted } == index.map { array.remove(at: $0) }
      default:
        let divisor = 2 + dice.below(30)
        if dice.below(20) == 0 {
          queue.removeAll { $0.isMultiple(of: divisor) }
          array.removeAll { $0.isMultiple(of: divisor) }
        }
      }
      isEqual = isEqual && queue.count == array.count && queue.first == array.first
    }
    #expect(isEqual)
    #expect(queue.elements == array)
    for element in array { isEqual = isEqual && queue.popFirst() == element }
    #expect(isEqual && queue.isEmpty)
  }

  @Test func `equality is that of the elements`() {
    var left = Queue<Int>()
    var right = Queue<Int>()
    for number in 0..<5 { left.append(number) }
    for number in -3..<5 { right.append(number) }
    #expect(left != right)
    for _ in 0..<3 { _ = right.popFirst() }
    #expect(left == right)
    left.removeAll()
    #expect(left.isEmpty)
  }
}

@Suite struct SerialTableTests {
  @Test(arguments: 0..<40)
  func `a table does what a dictionary does`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var table = SerialTable<Int>()
    var dictionary: [UInt32: Int] = [:]
    var isEqual = true
    // Some runs follow one another, some collide in every size of table, some are anything.
    let serials: [UInt32] = (0..<200).map { index in
      switch seed % 3 {
      case 0: UInt32(50 + index)
      case 1: UInt32(1 + index % 7) &+ UInt32(index) << 16
      default: max(1, UInt32(truncatingIfNeeded: dice.next()))
      }
    }
    for number in 0..<4000 {
      let serial = serials[dice.below(serials.count)]
      switch dice.below(6) {
      case 0, 1:
        guard dictionary[serial] == nil else { continue }
        table.insert(number, for: serial)
        dictionary[serial] = number
      case 2:
        table[serial] = number
        dictionary[serial] = number
      case 3:
        let isThere = table.update(serial) { $0 += 1 } != nil
        isEqual = isEqual && isThere == (dictionary[serial] != nil)
        dictionary[serial]? += 1
      default:
        isEqual = isEqual && table.remove(serial) == dictionary.removeValue(forKey: serial)
      }
      isEqual = isEqual && table.count == dictionary.count
    }
    #expect(isEqual)
    for serial in serials { isEqual = isEqual && table[serial] == dictionary[serial] }
    #expect(isEqual)
    #expect(Set(table.keys) == Set(dictionary.keys))
    for serial in serials {
      table[serial] = nil
      isEqual = isEqual && !table.contains(serial)
    }
    #expect(isEqual && table.isEmpty)
    table.releaseStorage(over: 16)
    #expect(table.capacity <= 16)
  }

  @Test func `serial 0 is never there`() {
    var table = SerialTable<Int>()
    for serial: UInt32 in 1...5 { table.insert(1, for: serial) }
    #expect(table.contains(0) == false)
    #expect(table[0] == nil)
    #expect(table.update(0) { $0 += 1 } == nil)
    #expect(table.remove(0) == nil)
    #expect(table.count == 5)
  }

  @Test func `a table ends what is left in it and copies what it holds`() {
    final class Counted {
      nonisolated(unsafe) static var living = 0
      init() { unsafe Counted.living += 1 }
      deinit { unsafe Counted.living -= 1 }
    }
    do {
      var table = SerialTable<Counted>()
      for serial: UInt32 in 1...100 { table.insert(Counted(), for: serial << 8) }
      for serial: UInt32 in 1...40 { table.remove(serial << 8) }
      table[50 << 8] = Counted()
      #expect(unsafe Counted.living == 60)
      let other = table.copy()
      table.remove(51 << 8)
      #expect(other.count == 60 && table.count == 59)
      #expect(other[51 << 8] != nil && table[51 << 8] == nil)
      #expect(unsafe Counted.living == 60)
    }
    #expect(unsafe Counted.living == 0)
  }
}

@Suite struct ByteQueueTests {
  private func filled(_ bytes: [UInt8]) -> ByteQueue {
    var queue = ByteQueue()
    unsafe queue.append(bytes.span.bytes)
    return queue
  }

  private func contents(_ queue: borrowing ByteQueue) -> [UInt8] {
    unsafe queue.withStorage { storage in
      unsafe [UInt8](storage[queue.position..<queue.position + queue.count])
    }
  }

  @Test(arguments: 0..<30)
  func `a queue does what an array does`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var queue = ByteQueue()
    var array: [UInt8] = []
    for _ in 0..<400 {
      switch dice.below(6) {
      case 0, 1, 2:
        let bytes = dice.bytes(dice.below(dice.below(3) == 0 ? 9000 : 40))
        unsafe queue.append(bytes.span.bytes)
        array += bytes
      case 3:
        let count = dice.below(array.count + 1)
        queue.removeFirst(count)
        array.removeFirst(count)
      case 4:
        let count = dice.below(array.count + 1)
        let position = queue.position
        queue.skip(count)
        #expect(queue.position == position + count)
        array.removeFirst(count)
      default:
        if dice.below(10) == 0 {
          let rest = queue.detachRest()
          #expect(queue.isEmpty && queue.position == 0)
          queue = rest
        }
      }
      #expect(queue.count == array.count && queue.isEmpty == array.isEmpty)
    }
    #expect(contents(queue) == array)
    #expect(queue.takeAll() == array)
    #expect(queue.isEmpty && queue.capacity == 0)
  }

  @Test func `positions stay good until the next append`() {
    var queue = filled([1, 2, 3, 4, 5])
    let position = queue.position
    queue.skip(5)
    #expect(queue.count == 0)
    #expect(unsafe queue.withStorage { unsafe $0[position + 4] } == 5)
  }

  @Test func `taken bytes are reclaimed while others wait`() {
    var queue = ByteQueue()
    let piece = [UInt8](repeating: 1, count: 1000)
    for _ in 0..<5000 {
      unsafe queue.append(piece.span.bytes)
      if queue.count > 3000 { queue.skip(1000) }
    }
    #expect(queue.capacity < 40_000)
  }

  @Test func `a body that throws leaves the queue as it was`() {
    struct Failure: Error {}
    var queue = filled([1, 2])
    #expect(throws: Failure.self) {
      try queue.append(capacity: 10) { (span) throws(Failure) in
        span.append(7)
        throw Failure()
      }
    }
    #expect(contents(queue) == [1, 2])
    queue.append(capacity: 10) { span in span.append(3) }
    #expect(contents(queue) == [1, 2, 3])
  }

  @Test func `storage is given back only when it is empty and large`() {
    var queue = filled([UInt8](repeating: 1, count: 5000))
    queue.releaseStorage(over: 100)
    #expect(queue.count == 5000)
    queue.removeFirst(5000)
    queue.releaseStorage(over: 100_000)
    #expect(queue.capacity >= 5000)
    queue.releaseStorage(over: 100)
    #expect(queue.capacity == 0)
  }
}

@Suite struct ConnectionTimersTests {
  @Test(arguments: 0..<30)
  func `the deadline is the earliest, and what is due comes once`(seed: Int) {
    var dice = Seeded(UInt64(seed))
    var timers = ConnectionTimers()
    var model = [LinkInstant](repeating: .distantFuture, count: ConnectionTimer.allCases.count)
    for _ in 0..<500 {
      let timer = ConnectionTimer.allCases[dice.below(model.count)]
      let instant = LinkInstant.ms(Int64(dice.below(20)))
      switch dice.below(4) {
      case 0, 1:
        timers[timer] = instant
        model[timer.rawValue] = instant
      case 2:
        timers.clear(timer)
        model[timer.rawValue] = .distantFuture
      default:
        let due = timers.nextDue(at: instant)
        let expected = model.firstIndex { $0 <= instant }
        #expect(due?.timer.rawValue == expected)
        #expect(due?.due == expected.map { model[$0] })
        if let expected { model[expected] = .distantFuture }
      }
      #expect(timers.deadline == model.min())
      #expect(timers[timer] == model[timer.rawValue])
    }
  }
}
