// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkServer

/// The places of a gateway's connections. It decides which connection makes room for a new one.
///
/// When all places are taken, a connection without a request makes room: the oldest whose client
/// the server has not accepted yet, or else the one that has waited longest for its next request.
/// Requests of clients that are not accepted yet do not count, as they cost their senders nothing.
struct GatewayPlaces<Owner: Sendable>: Sendable {
  struct Admission: Sendable {
    let id: UInt64
    /// The owner of the connection to close for the new one; nil if none has to.
    let evicted: Owner?
  }

  private struct Connection: Sendable {
    let owner: Owner
    /// The number of the connection's place among those that can make room; nil while it runs a
    /// request.
    var place: UInt64?
    /// The number of the last request whose client was accepted; 0 for none.
    var opened = 0
    /// Whether the connection was told to make room.
    var isLeaving = false
  }

  /// The most connections that are closing to make room at a time; they are open beyond the limit.
  static var mostLeaving: Int { 64 }

  private let limit: Int
  private var connections: [UInt64: Connection] = [:]
  private var leaving = 0
  private var lastID: UInt64 = 0
  private var lastPlace: UInt64 = 0
  /// The connections that can make room, by the numbers of their places: strangers, which were
  /// never accepted, and idle ones, which were.
  private var strangers = HandshakePlaces<UInt64>(limit: .max)
  private var idle = HandshakePlaces<UInt64>(limit: .max)

  init(limit: Int) {
    self.limit = limit
  }

  var isEmpty: Bool { connections.isEmpty }
  var owners: [Owner] { connections.values.map(\.owner) }

  /// Gives a new connection a place, if necessary that of another connection; nil if no connection
  /// can make room.
  mutating func admit(_ owner: Owner) -> Admission? {
    var evicted: Owner?
    if connections.count - leaving >= limit {
      guard leaving < Self.mostLeaving,
        let id = (strangers.evict() ?? idle.evict())?.owner, let oldest = connections[id]
      else { return nil }
      connections[id]?.isLeaving = true
      leaving += 1
      evicted = oldest.owner
    }
    lastID += 1
    lastPlace += 1
    strangers.enter(lastPlace, lastID)
    connections[lastID] = Connection(owner: owner, place: lastPlace)
    return Admission(id: lastID, evicted: evicted)
  }

  /// Records that the client of a request was accepted. Returns false if the connection has ended,
  /// or makes room.
  mutating func opened(_ id: UInt64, request number: Int) -> Bool {
    guard var connection = connections[id], !connection.isLeaving else { return false }
    leave(connection)
    connection.place = nil
    connection.opened = number
    connections[id] = connection
    return true
  }

  /// Whether the client of this request was accepted.
  func wasOpened(_ id: UInt64, request number: Int) -> Bool { connections[id]?.opened == number }

  /// Records that a request is answered. The next one may already run.
  mutating func answered(_ id: UInt64, request number: Int) {
    guard var connection = connections[id], connection.place == nil, connection.opened <= number
    else { return }
    lastPlace += 1
    idle.enter(lastPlace, id)
    connection.place = lastPlace
    connections[id] = connection
  }

  /// Frees the place of a connection that has ended; returns false if it had none.
  mutating func remove(_ id: UInt64) -> Bool {
    guard let connection = connections.removeValue(forKey: id) else { return false }
    leave(connection)
    if connection.isLeaving { leaving -= 1 }
    return true
  }

  private mutating func leave(_ connection: Connection) {
    guard let place = connection.place else { return }
    strangers.leave(place)
    idle.leave(place)
  }
}
#endif
