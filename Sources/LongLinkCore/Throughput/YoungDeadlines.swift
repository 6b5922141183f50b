// SPDX-License-Identifier: Apache-2.0

/// The deadlines of requests that were registered of late.
///
/// Most requests have ended long before it is worth sorting their deadlines in, and one that ends
/// is not even looked for here: whoever takes them out asks which requests there still are.
@usableFromInline struct YoungDeadlines: ~Copyable {
  @usableFromInline struct Item {
    @usableFromInline let id: RequestID
    @usableFromInline let deadline: LinkInstant

    @inlinable init(id: RequestID, deadline: LinkInstant) {
      self.id = id
      self.deadline = deadline
    }
  }

  @usableFromInline var items: [Item] = []
  /// None is before it; the distant future where there are none.
  @usableFromInline var earliest = LinkInstant.distantFuture

  /// The fewest and the most that are kept, and how many of them for each request that there is.
  @inlinable static var fewest: Int { 256 }
  @inlinable static var most: Int { 8192 }
  @inlinable static var perRequest: Int { 8 }

  /// Whether they should be taken out, beside so many requests that have not ended.
  @inlinable @inline(__always)
  func isFull(beside requests: Int) -> Bool {
    items.count >= YoungDeadlines.fewest
      && items.count >= min(requests &* YoungDeadlines.perRequest, YoungDeadlines.most)
  }

  @inlinable @inline(__always)
  mutating func append(_ id: RequestID, _ deadline: LinkInstant) {
    items.append(Item(id: id, deadline: deadline))
    if deadline < earliest { earliest = deadline }
  }

  @inlinable var count: Int { items.count }

  /// One of them, in the order in which they came.
  @inlinable subscript(index: Int) -> (id: RequestID, deadline: LinkInstant) {
    (items[index].id, items[index].deadline)
  }

  /// Empties it, and gives the storage back where that has grown.
  @usableFromInline mutating func removeAll() {
    items.removeAll(keepingCapacity: items.capacity <= YoungDeadlines.fewest * 2)
    earliest = .distantFuture
  }

  /// Gives the storage back of one that is empty.
  mutating func releaseStorage() {
    if items.isEmpty { items = [] }
  }
}
