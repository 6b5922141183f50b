// SPDX-License-Identifier: Apache-2.0

/// The deadlines of recently registered requests, unsorted.
///
/// Most requests end long before sorting their deadlines is worthwhile. A request that ends is not
/// removed here; the caller that takes the deadlines out skips requests that have ended.
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
  /// A lower bound of all deadlines; the distant future if there are none.
  @usableFromInline var earliest = LinkInstant.distantFuture

  /// The buffer is full at `perRequest` deadlines per open request, but at least `fewest` and at
  /// most `most` deadlines.
  @inlinable static var fewest: Int { 256 }
  @inlinable static var most: Int { 8192 }
  @inlinable static var perRequest: Int { 8 }

  /// Whether the buffer is full, given the number of open requests, so that it should be emptied.
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

  /// The request and deadline at an index, in order of arrival.
  @inlinable subscript(index: Int) -> (id: RequestID, deadline: LinkInstant) {
    (items[index].id, items[index].deadline)
  }

  /// Empties the buffer, and frees its storage if that has grown.
  @usableFromInline mutating func removeAll() {
    items.removeAll(keepingCapacity: items.capacity <= YoungDeadlines.fewest * 2)
    earliest = .distantFuture
  }

  /// Frees the buffer's storage if it is empty.
  mutating func releaseStorage() {
    if items.isEmpty { items = [] }
  }
}
