// SPDX-License-Identifier: Apache-2.0

/// Connections that wait for something of their clients, in the order in which they came; when the
/// places are full, the oldest one makes room.
///
/// A server keeps those that are not open yet. So connections that never open do not keep those
/// away that do: a client only has to open its connection before as many others are accepted as
/// there are places. A gateway keeps those without a request, before their first one and after it.
package struct HandshakePlaces<Owner> {
  private let limit: Int
  private var owners: [UInt64: Owner] = [:]
  /// The numbers in order, among them those of connections that have left; from `first` on.
  private var order: [UInt64] = []
  private var first = 0

  package init(limit: Int) {
    self.limit = limit
  }

  package var count: Int { owners.count }
  /// Whether one must make room for another.
  package var isFull: Bool { owners.count >= limit }

  package mutating func enter(_ id: UInt64, _ owner: Owner) {
    owners[id] = owner
    order.append(id)
    // Each removal leaves a number in the order, which is dropped together with others.
    if order.count > 2 * owners.count + 64 {
      order = order[first...].filter { owners[$0] != nil }
      first = 0
    }
  }

  /// Removes a connection that is open, or has ended; false if it had no place.
  @discardableResult
  package mutating func leave(_ id: UInt64) -> Bool {
    owners.removeValue(forKey: id) != nil
  }

  /// Removes and returns the oldest; nil if there is none.
  package mutating func evict() -> (id: UInt64, owner: Owner)? {
    while first < order.count {
      let id = order[first]
      first += 1
      if let owner = owners.removeValue(forKey: id) { return (id, owner) }
    }
    return nil
  }
}

extension HandshakePlaces: Sendable where Owner: Sendable {}
