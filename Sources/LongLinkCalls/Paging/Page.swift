// SPDX-License-Identifier: Apache-2.0

/// One part of a list that a server gives in parts.
public struct Page<Element: Sendable, Position: Hashable & Sendable>: Sendable {
  /// What it holds, in the order of the list; may be empty.
  public var elements: [Element]
  /// Where the next page begins; nil at the end of the list.
  public var next: Position?

  /// Makes a page.
  public init(_ elements: [Element], next: Position?) {
    self.elements = elements
    self.next = next
  }
}

extension Page where Position == Int {
  /// Makes a page of a list whose pages are numbered: one that is not full is the last.
  public init(_ elements: [Element], number: Int, size: Int) {
    self.init(elements, next: elements.count < size ? nil : number + 1)
  }
}

/// Which page is asked for.
public struct PageRequest<Position: Hashable & Sendable>: Hashable, Sendable {
  /// Where the page begins: what the page before named, or the list's first position.
  public let position: Position
  /// The most elements that the page is to hold.
  public let size: Int
}
