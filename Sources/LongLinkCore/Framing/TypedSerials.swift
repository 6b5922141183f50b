// SPDX-License-Identifier: Apache-2.0

/// Serials and their message types. The serials of each type form a list in order of arrival, so
/// that a frame which refers to all serials of one type needs no scan of the others.
struct TypedSerials: ~Copyable {
  private struct Entry {
    let type: MessageType
    /// The neighbours in the list of the serial's type; 0 for none.
    var previous: UInt32
    var next: UInt32
  }

  private struct Ends {
    var first: UInt32
    var last: UInt32
  }

  private var entries: SerialTable<Entry>
  /// The ends of each type's list, by type plus one: the table reserves 0 for free slots.
  private var ends: SerialTable<Ends>

  init(mix: UInt32) {
    entries = SerialTable(mix: mix)
    ends = SerialTable(mix: mix)
  }

  /// The type of a serial; nil if the serial is not present.
  subscript(serial: UInt32) -> MessageType? { entries[serial]?.type }

  /// The first serial of a type; nil if there is none.
  func first(of type: MessageType) -> UInt32? { ends[type.rawValue + 1]?.first }

  /// Adds a serial, which must not be present yet.
  mutating func insert(_ serial: UInt32, _ type: MessageType) {
    let last = ends[type.rawValue + 1]?.last ?? 0
    _ = entries.update(last) { $0.next = serial }
    entries.insert(Entry(type: type, previous: last, next: 0), for: serial)
    if last == 0 {
      ends.insert(Ends(first: serial, last: serial), for: type.rawValue + 1)
    } else {
      _ = ends.update(type.rawValue + 1) { $0.last = serial }
    }
  }

  mutating func remove(_ serial: UInt32) {
    guard let entry = entries.remove(serial) else { return }
    _ = entries.update(entry.previous) { $0.next = entry.next }
    _ = entries.update(entry.next) { $0.previous = entry.previous }
    guard entry.previous == 0 || entry.next == 0 else { return }
    guard entry.previous != 0 || entry.next != 0 else {
      ends.remove(entry.type.rawValue + 1)
      return
    }
    _ = ends.update(entry.type.rawValue + 1) { ends in
      if entry.previous == 0 { ends.first = entry.next }
      if entry.next == 0 { ends.last = entry.previous }
    }
  }

  mutating func removeAll() {
    entries.removeAll()
    ends.removeAll()
  }

  mutating func releaseStorage(over slots: Int) {
    entries.releaseStorage(over: slots)
    ends.releaseStorage(over: slots)
  }
}
