// SPDX-License-Identifier: Apache-2.0

/// The serials of requests that ended here without a cancel to the peer, oldest first.
///
/// Each takes a slot at the peer until its response arrives.
@usableFromInline package struct OwedAnswers: ~Copyable {
  @usableFromInline var serials = SerialTable<Void>()
  private var order = Queue<UInt32>()

  package init() {}

  @inlinable package var count: Int { serials.count }

  package mutating func add(_ serial: UInt32) {
    serials[serial] = ()
    order.append(serial)
  }

  package func contains(_ serial: UInt32) -> Bool { serials.contains(serial) }

  /// Removes a serial, because its response has arrived.
  package mutating func remove(_ serial: UInt32) {
    guard serials.remove(serial) != nil else { return }
    if serials.isEmpty {
      order.removeAll()
    } else if order.count > 2 * serials.count + 64 {
      let left = order.elements.filter { serials.contains($0) }
      order.removeAll()
      for serial in left { order.append(serial) }
    }
  }

  /// Removes and returns the oldest serial.
  package mutating func takeOldest() -> UInt32? {
    while let serial = order.popFirst() {
      if serials.remove(serial) != nil { return serial }
    }
    return nil
  }
}
