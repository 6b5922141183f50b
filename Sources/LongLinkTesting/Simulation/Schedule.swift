// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Scheduled events, ordered by time and then by insertion: a binary heap.
struct Schedule<Event> {
  private struct Entry {
    let time: LinkInstant
    let number: UInt64
    let event: Event

    func comes(before other: Entry) -> Bool {
      time == other.time ? number < other.number : time < other.time
    }
  }

  private var heap: [Entry] = []
  private var added: UInt64 = 0

  /// When the first event is due; nil if there is none.
  var nextTime: LinkInstant? { heap.first?.time }

  var count: Int { heap.count }

  mutating func add(_ event: Event, at time: LinkInstant) {
    added += 1
    heap.append(Entry(time: time, number: added, event: event))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].comes(before: heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes and returns the first event that is due by `time`.
  mutating func popFirst(at time: LinkInstant) -> Event? {
    guard let first = heap.first, first.time <= time else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first.event }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && heap[child].comes(before: heap[least]) {
        least = child
      }
      guard least != parent else { return first.event }
      heap.swapAt(least, parent)
      parent = least
    }
  }

  mutating func removeAll() {
    heap = []
  }
}
