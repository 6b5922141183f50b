// SPDX-License-Identifier: Apache-2.0

/// Which broadcasts came to which clients.
///
/// Each run of a server numbers its broadcasts. A client gets none twice. Over one connection it
/// gets all numbers from the first to the last one that it gets; between two it may miss some.
struct SoakBroadcasts {
  /// A broadcast's key: the number of the server's run, and that of the broadcast, in 24 bits.
  static func key(run: UInt64, number: UInt64) -> UInt64 { run << 24 | number }

  /// A client while it has one connection, at one run of a server.
  private struct Place: Hashable {
    let client: UInt32
    let stretch: UInt32
    let run: UInt64
  }

  private struct Receipt: Hashable {
    let client: UInt32
    let key: UInt64
  }

  private var receipts: Set<Receipt> = []
  private var places: [Place: ClosedRange<UInt64>] = [:]
  private var skipped: Set<UInt64> = []
  private(set) var doubledKeys: Set<UInt64> = []

  /// How many came to some client.
  var count: Int { receipts.count }

  /// A client got a broadcast in a stretch of its time; 0 if it was between two connections.
  mutating func received(_ key: UInt64, by client: UInt32, in stretch: UInt32) {
    guard receipts.insert(Receipt(client: client, key: key)).inserted else {
      doubledKeys.insert(key)
      return
    }
    guard stretch > 0 else { return }
    let place = Place(client: client, stretch: stretch, run: key >> 24)
    let range = places[place] ?? key...key
    places[place] = min(range.lowerBound, key)...max(range.upperBound, key)
  }

  /// A server did not send a broadcast to all clients, and does not know to which.
  mutating func withheld(_ key: UInt64) { skipped.insert(key) }

  /// The keys of those that came twice to one client; nil if there are none.
  var doubled: [UInt64]? { doubledKeys.isEmpty ? nil : doubledKeys.sorted() }

  /// The keys of those that are missing between others; nil if there are none.
  var missed: [UInt64]? {
    var missed: Set<UInt64> = []
    for (place, range) in places {
      for key in range where !skipped.contains(key) {
        let receipt = Receipt(client: place.client, key: key)
        if !receipts.contains(receipt) { missed.insert(key) }
      }
    }
    return missed.isEmpty ? nil : missed.sorted()
  }
}
