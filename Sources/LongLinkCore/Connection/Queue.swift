// SPDX-License-Identifier: Apache-2.0

/// First in, first out, in an array that gives taken room back now and then.
@usableFromInline package struct Queue<Element> {
  @usableFromInline var storage: [Element?] = []
  @usableFromInline var head = 0

  /// Makes an empty queue, which allocates nothing.
  @inlinable package init() {}

  /// Elements that have not been taken.
  @inlinable package var count: Int { storage.count - head }
  /// Whether all elements have been taken.
  @inlinable package var isEmpty: Bool { head == storage.count }
  /// The element that leaves next.
  @inlinable package var first: Element? { isEmpty ? nil : storage[head] }

  /// Adds an element at the back.
  @inlinable package mutating func append(_ element: Element) {
    storage.append(element)
  }

  /// Takes the element at the front; nil where there is none.
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

  /// Changes the element that leaves next.
  @inlinable package mutating func updateFirst(_ change: (inout Element) -> Void) {
    precondition(!isEmpty)
    change(&storage[head]!)
  }

  /// Takes out the first element that matches.
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

  /// Takes everything and gives the storage back.
  @inlinable package mutating func removeAll() {
    storage = []
    head = 0
  }

  /// Takes out every element that matches.
  @inlinable package mutating func removeAll(where matches: (Element) -> Bool) {
    storage.removeAll { $0.map(matches) ?? true }
    head = 0
  }

  /// The elements in their order.
  @inlinable package var elements: [Element] { storage[head...].compactMap { $0 } }
}

extension Queue: Equatable where Element: Equatable {
  /// Whether the same elements are left in both, in the same order.
  @inlinable package static func == (lhs: Queue, rhs: Queue) -> Bool {
    lhs.elements == rhs.elements
  }
}

extension Queue: Sendable where Element: Sendable {}
