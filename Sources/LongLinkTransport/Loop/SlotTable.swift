// SPDX-License-Identifier: Apache-2.0

/// A table of elements whose keys are never reused: a key is a slot's index and its generation.
struct SlotTable<Element> {
  private struct Slot {
    var element: Element?
    /// Starts at 1, so that no key is 0.
    var generation: UInt32
    var nextFree: UInt32
  }

  private var slots: [Slot] = []
  private var firstFree = UInt32.max
  private(set) var count = 0

  /// Stores an element and returns its key.
  mutating func insert(_ element: Element) -> UInt64 {
    count += 1
    guard firstFree != .max else {
      slots.append(Slot(element: element, generation: 1, nextFree: .max))
      return 1 << 32 | UInt64(slots.count - 1)
    }
    let index = Int(firstFree)
    firstFree = slots[index].nextFree
    slots[index].element = element
    return UInt64(slots[index].generation) << 32 | UInt64(index)
  }

  /// The element for a key; nil for a stale key.
  subscript(key: UInt64) -> Element? {
    get {
      guard let index = index(of: key) else { return nil }
      return slots[index].element
    }
    set {
      guard let index = index(of: key), let newValue else { return }
      slots[index].element = newValue
    }
  }

  /// Removes the element for a key; nil for a stale key.
  @discardableResult
  mutating func remove(_ key: UInt64) -> Element? {
    guard let index = index(of: key) else { return nil }
    let element = slots[index].element.take()
    count -= 1
    // A slot whose generations are used up is never used again.
    if slots[index].generation < .max - 1 {
      slots[index].nextFree = firstFree
      firstFree = UInt32(index)
    }
    slots[index].generation += 1
    return element
  }

  /// All elements, in the order of the slots.
  var all: [Element] { slots.compactMap(\.element) }

  /// Removes and returns all elements, in the order of the slots.
  mutating func removeAll() -> [Element] {
    let keys = slots.indices.filter { slots[$0].element != nil }.map {
      UInt64(slots[$0].generation) << 32 | UInt64($0)
    }
    return keys.compactMap { remove($0) }
  }

  private func index(of key: UInt64) -> Int? {
    let index = Int(UInt32(truncatingIfNeeded: key))
    guard index < slots.count, slots[index].generation == UInt32(key >> 32) else { return nil }
    return index
  }
}
