// SPDX-License-Identifier: Apache-2.0

/// A queue whose owners take turns, however much one of them has in it.
///
/// An owner without a running element comes first; only if there is none, another owner is next.
/// Owners take turns in order, and the elements of one owner leave in the order of arrival.
///
/// It is inlinable, because one that is not specialized allocates at each step.
@usableFromInline package struct Turns<Owner: Hashable, Element> {
  @usableFromInline struct Entry {
    @usableFromInline var waiting = Queue<Element>()
    @usableFromInline var running = 0

    @inlinable init() {}
  }

  /// Only owners that have an element which waits or runs.
  @usableFromInline var entries: [Owner: Entry] = [:]
  /// The owners that have an element which waits, each once, in the order of their turns.
  @usableFromInline var owners = Queue<Owner>()
  /// How many elements wait.
  @usableFromInline package internal(set) var count = 0
  /// How many elements run.
  @usableFromInline package internal(set) var running = 0

  @inlinable package init() {}

  /// Adds an element behind the others of its owner.
  @inlinable package mutating func append(_ element: Element, of owner: Owner) {
    if entries[owner, default: Entry()].waiting.isEmpty { owners.append(owner) }
    entries[owner, default: Entry()].waiting.append(element)
    count += 1
  }

  /// Removes and returns the next element, which runs from now on. Nil if no element waits, or if
  /// the owners of all waiting elements already have `most` running ones.
  @inlinable package mutating func popFirst(
    atMost most: Int = .max
  ) -> (owner: Owner, element: Element)? {
    let owner =
      owners.remove { entries[$0, default: Entry()].running == 0 }
      ?? owners.remove { entries[$0, default: Entry()].running < most }
    guard let owner, let element = entries[owner]?.waiting.popFirst() else { return nil }
    entries[owner]?.running += 1
    running += 1
    count -= 1
    if entries[owner]?.waiting.isEmpty == false { owners.append(owner) }
    return (owner, element)
  }

  /// Notes that an element of an owner no longer runs.
  @inlinable package mutating func ended(_ owner: Owner) {
    running -= 1
    entries[owner]?.running -= 1
    if let entry = entries[owner], entry.running == 0, entry.waiting.isEmpty {
      entries[owner] = nil
    }
  }

  /// How many elements of an owner run.
  @inlinable package func running(of owner: Owner) -> Int { entries[owner]?.running ?? 0 }

  /// Removes elements that wait.
  @inlinable package mutating func removeAll(where matches: (Element) -> Bool) {
    for owner in owners.elements {
      entries[owner]?.waiting.removeAll(where: matches)
      if let entry = entries[owner], entry.running == 0, entry.waiting.isEmpty {
        entries[owner] = nil
      }
    }
    owners.removeAll { entries[$0]?.waiting.isEmpty ?? true }
    count = owners.elements.reduce(0) { $0 + (entries[$1]?.waiting.count ?? 0) }
  }
}

extension Turns.Entry: Sendable where Owner: Sendable, Element: Sendable {}
extension Turns: Sendable where Owner: Sendable, Element: Sendable {}
