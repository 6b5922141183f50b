// SPDX-License-Identifier: Apache-2.0

// What people who watch a connection are told of its streams.

extension StreamTable {
  /// The lowest serials of streams, at most `count`, in order.
  package func serials(most count: Int) -> [UInt32] { table.keys.smallest(count) }

  /// The credit that is left in a stream: this side's, or if it sends no items, the peer's.
  package func credit(of serial: UInt32) -> Int {
    guard let slot = slot(of: serial) else { return 0 }
    return self[slot].outgoing?.credit ?? self[slot].incoming?.credit ?? 0
  }

  /// Whether the item that waits to be sent costs more than the credit that is left.
  package func lacksCredit(_ serial: UInt32) -> Bool {
    guard let slot = slot(of: serial), let outflow = self[slot].outgoing,
      let item = pending(serial)
    else { return false }
    let rest = item.body.count - item.sent - (item.queued ?? 0)
    return (item.queued == nil || rest > 0) && outflow.credit < Wire.itemOverhead + rest
  }
}

extension [UInt32] {
  /// The smallest elements, at most `count`, in order: without sorting all of them.
  fileprivate func smallest(_ count: Int) -> [UInt32] {
    var found: [UInt32] = []
    for element in self {
      guard found.count < count || found.last.map({ element < $0 }) == true else { continue }
      if found.count == count { found.removeLast() }
      found.insert(element, at: found.firstIndex { $0 > element } ?? found.endIndex)
    }
    return found
  }
}
