// SPDX-License-Identifier: Apache-2.0

/// One page of a list that a server returns in pages.
public struct Page<Element: Sendable, Position: Hashable & Sendable>: Sendable {
  /// The elements of the page, in the order of the list; may be empty.
  public var elements: [Element]
  /// The position of the next page; nil at the end of the list.
  public var next: Position?

  /// Makes a page.
  public init(_ elements: [Element], next: Position?) {
    self.elements = elements
    self.next = next
  }
}

extension Page where Position == Int {
  /// Makes a page of a list with numbered pages, in which a page that is not full is the last.
  public init(_ elements: [Element], number: Int, size: Int) {
    self.init(elements, next: elements.count < size ? nil : number + 1)
  }
}
