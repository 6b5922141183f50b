// SPDX-License-Identifier: Apache-2.0

/// The places of connections that wait for something from their clients, in the order of arrival.
/// When all places are taken, the oldest connection makes room.
///
/// A server has such places for connections that are not open yet. So connections that never open
/// do not keep out those that do: a client only has to open its connection before as many others
/// are accepted as there are places. A gateway has such places for connections without a request.
package struct HandshakePlaces<Owner> {
  /// The number of places; if it shrinks, connections keep theirs.
  package var limit: Int
  private var owners: [UInt64: Owner] = [:]
  /// The connections' numbers in order, from index `first` on. Some may have left already.
  private var order: [UInt64] = []
  private var first = 0

  package init(limit: Int) {
    self.limit = limit
  }

  package var count: Int { owners.count }
  /// Whether all places are taken, so that one has to make room for another connection.
  package var isFull: Bool { owners.count >= limit }

  package mutating func enter(_ id: UInt64, _ owner: Owner) {
    owners[id] = owner
    order.append(id)
    // A connection that leaves stays in the order, until many such numbers are dropped together.
    if order.count > 2 * owners.count + 64 {
      order = order[first...].filter { owners[$0] != nil }
      first = 0
    }
  }

  /// Frees the place of a connection that is open, or has ended; false if it had no place.
  @discardableResult
  package mutating func leave(_ id: UInt64) -> Bool {
    owners.removeValue(forKey: id) != nil
  }

  /// Removes and returns the oldest connection; nil if there is none.
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
