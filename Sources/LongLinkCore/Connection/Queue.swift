// SPDX-License-Identifier: Apache-2.0

/// A first-in, first-out queue in an array, which is compacted occasionally.
@usableFromInline package struct Queue<Element> {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var head = 0

  /// Makes an empty queue without allocating.
  @inlinable package init() {}

  /// The number of elements.
  @inlinable package var count: Int { storage.count - head }
  /// Whether there are no elements.
  @inlinable package var isEmpty: Bool { head == storage.count }
  /// The element at the front.
  @inlinable package var first: Element? { isEmpty ? nil : storage[head] }

  /// Adds an element at the back.
  @inlinable package mutating func append(_ element: Element) {
    storage.append(element)
  }

  /// Removes and returns the element at the front; nil if there is none.
  @inlinable package mutating func popFirst() -> Element? {
    guard head < storage.count else { return nil }
    let element = storage[head].take()
    head += 1
    if head == storage.count {
      storage.removeAll(keepingCapacity: storage.capacity <= 1024)
      head = 0
    } else if head >= 1024, head >= storage.count / 2 {
      storage.removeSubrange(0..<head)
      head = 0
    }
    return element
  }

  /// Removes and returns the first element that matches.
  @inlinable package mutating func remove(where matches: (Element) -> Bool) -> Element? {
    guard let index = storage[head...].firstIndex(where: { $0.map(matches) ?? false }) else {
      return nil
    }
    let element = storage.remove(at: index)
    if head == storage.count {
      storage.removeAll(keepingCapacity: true)
      head = 0
    }
    return element
  }

  /// Removes all elements and frees the storage.
  @inlinable package mutating func removeAll() {
    storage = []
    head = 0
  }

  /// Removes every element that matches.
  @inlinable package mutating func removeAll(where matches: (Element) -> Bool) {
    storage.removeAll { $0.map(matches) ?? true }
    head = 0
  }

  /// The elements, front first.
  @inlinable package var elements: [Element] { storage[head...].compactMap { $0 } }
}

extension Queue: Equatable where Element: Equatable {
  /// Whether both contain the same elements in the same order.
  @inlinable package static func == (lhs: Queue, rhs: Queue) -> Bool {
    lhs.elements == rhs.elements
  }
}

extension Queue: Sendable where Element: Sendable {}
