// SPDX-License-Identifier: Apache-2.0

/// The deadlines of recently registered requests, unsorted.
///
/// Most requests end long before sorting their deadlines is worthwhile. A request that ends is not
/// removed here; the caller that takes the deadlines out skips requests that have ended.
struct YoungDeadlines: ~Copyable {
  private struct Item {
    let id: RequestID
    let deadline: LinkInstant
  }

  private var items: [Item] = []
  /// A lower bound of all deadlines; the distant future if there are none.
  private(set) var earliest = LinkInstant.distantFuture

  /// The buffer is full at `perRequest` deadlines per open request, within these two bounds.
  private static let fewest = 256
  private static let most = 8192
  private static let perRequest = 8

  /// Whether the deadlines should be taken out, given the number of open requests.
  func isFull(beside requests: Int) -> Bool {
    items.count >= YoungDeadlines.fewest
      && items.count >= min(requests &* YoungDeadlines.perRequest, YoungDeadlines.most)
  }

  mutating func append(_ id: RequestID, _ deadline: LinkInstant) {
    items.append(Item(id: id, deadline: deadline))
    if deadline < earliest { earliest = deadline }
  }

  var count: Int { items.count }

  /// The deadline at an index, in order of arrival.
  subscript(index: Int) -> (id: RequestID, deadline: LinkInstant) {
    (items[index].id, items[index].deadline)
  }

  /// Empties it, and frees the storage if it has grown.
  mutating func removeAll() {
    items.removeAll(keepingCapacity: items.capacity <= YoungDeadlines.fewest * 2)
    earliest = .distantFuture
  }

  /// Frees the storage if it is empty.
  mutating func releaseStorage() {
    if items.isEmpty { items = [] }
  }
}
