// SPDX-License-Identifier: Apache-2.0

/// A binary heap with the least element first, from which any element can be removed by its handle.
///
/// The heap tracks the position of each element: inserting and removing any element cost O(log n).
package struct IndexedHeap<Element: Comparable> {
  private struct Node {
    var element: Element
    var handle: UInt32
  }

  private var nodes: [Node] = []
  /// The position of each handle's element; for a free handle, the next free handle.
  private var positions: [UInt32] = []
  private var firstFree: UInt32?

  package init() {}

  package var count: Int { nodes.count }
  package var isEmpty: Bool { nodes.isEmpty }
  /// The least element.
  package var first: Element? { nodes.first?.element }
  /// All elements, in arbitrary order.
  package var elements: [Element] { nodes.map(\.element) }

  /// Adds an element; its handle is valid until the element is removed.
  package mutating func insert(_ element: Element) -> UInt32 {
    let handle = takeHandle()
    nodes.append(Node(element: element, handle: handle))
    rise(from: nodes.count - 1)
    return handle
  }

  /// Removes an element by its handle, which must be valid.
  @discardableResult
  package mutating func remove(_ handle: UInt32) -> Element {
    let position = Int(positions[Int(handle)])
    precondition(nodes[position].handle == handle, "the element has left")
    let element = nodes[position].element
    let last = nodes.removeLast()
    if position < nodes.count {
      put(last, at: position)
      if position > 0, last.element < nodes[(position - 1) / 2].element {
        rise(from: position)
      } else {
        sink(from: position)
      }
    }
    release(handle)
    return element
  }

  /// Removes the least element.
  package mutating func popFirst() -> Element? {
    guard let handle = nodes.first?.handle else { return nil }
    return remove(handle)
  }

  private mutating func takeHandle() -> UInt32 {
    guard let handle = firstFree else {
      positions.append(0)
      return UInt32(positions.count - 1)
    }
    let next = positions[Int(handle)]
    firstFree = next == handle ? nil : next
    return handle
  }

  private mutating func release(_ handle: UInt32) {
    guard !nodes.isEmpty else {
      // No handle is valid any more. Frees the memory if there were very many.
      let keeps = positions.count <= 1024
      positions.removeAll(keepingCapacity: keeps)
      nodes.removeAll(keepingCapacity: keeps)
      firstFree = nil
      return
    }
    // The last free handle refers to itself.
    positions[Int(handle)] = firstFree ?? handle
    firstFree = handle
  }

  private mutating func put(_ node: Node, at position: Int) {
    nodes[position] = node
    positions[Int(node.handle)] = UInt32(position)
  }

  private mutating func rise(from start: Int) {
    let node = nodes[start]
    var position = start
    while position > 0 {
      let parent = (position - 1) / 2
      guard node.element < nodes[parent].element else { break }
      put(nodes[parent], at: position)
      position = parent
    }
    put(node, at: position)
  }

  private mutating func sink(from start: Int) {
    let node = nodes[start]
    var position = start
    while true {
      var child = 2 * position + 1
      guard child < nodes.count else { break }
      if child + 1 < nodes.count, nodes[child + 1].element < nodes[child].element { child += 1 }
      guard nodes[child].element < node.element else { break }
      put(nodes[child], at: position)
      position = child
    }
    put(node, at: position)
  }
}

extension IndexedHeap: Equatable {
  package static func == (lhs: IndexedHeap, rhs: IndexedHeap) -> Bool {
    lhs.elements.sorted() == rhs.elements.sorted()
  }
}
