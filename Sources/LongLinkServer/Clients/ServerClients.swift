// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import Synchronization

/// The clients of a server that have a `client_id` or a principal. Any thread may use it.
///
/// A client without either is its connection alone, and needs no entry.
final class ServerClients: Sendable {
  /// The clients under one hash; in most cases, a single one.
  private enum Bucket {
    case one(ServerClient)
    case many([UInt64: ServerClient])

    /// In the order of their numbers, which is the same when a simulation is repeated.
    var all: [ServerClient] {
      switch self {
      case .one(let client): [client]
      case .many(let clients): clients.values.sorted { $0.id < $1.id }
      }
    }

    mutating func insert(_ client: ServerClient) {
      switch self {
      case .one(let first): self = .many([first.id: first, client.id: client])
      case .many(var clients):
        self = .many([:])
        clients[client.id] = client
        self = .many(clients)
      }
    }

    /// Removes a client, and returns whether the bucket is now empty.
    mutating func remove(_ client: ServerClient) -> Bool {
      switch self {
      case .one(let first): return first === client
      case .many(var clients):
        self = .many([:])
        clients[client.id] = nil
        self = .many(clients)
        return clients.isEmpty
      }
    }
  }

  /// A client that is forgotten.
  private struct Departed: Hashable {
    let clientID: ClientID
    let principal: String?
  }

  private struct State {
    /// By a hash of their `client_id` and principal, and of their principal: the clients have both,
    /// and so few bytes are here.
    var byID: [Int: Bucket] = [:]
    var byPrincipal: [Int: Bucket] = [:]
    /// The number of clients without an entry.
    var others = 0
    var count = 0
    /// The numbers of the clients without a connection that may still come back.
    var away: Set<UInt64> = []
    /// The number of the last broadcast that has begun.
    var broadcasts: UInt64 = 0
    /// The last broadcasts that clients have got which left while one was under way. On another
    /// loop its turn may be yet to come, and the client may be back there.
    var departed: [Departed: UInt64] = [:]

    func clients(of principal: String) -> [ServerClient] {
      (byPrincipal[principal.hashValue]?.all ?? []).filter { $0.isOf(principal) }
    }

    /// The open connections of these clients; without arrays of clients, since most often there is
    /// one.
    func open(of principal: String) -> [Peer] {
      switch byPrincipal[principal.hashValue] {
      case nil: []
      case .one(let client): client.isOf(principal) ? client.open : []
      case .many?: clients(of: principal).flatMap(\.open)
      }
    }
  }

  /// The most forgotten clients of which it is known what they have got. Beyond it, one may get a
  /// broadcast twice.
  static let mostDeparted = 1_024

  private let state = Mutex(State())
  /// The broadcasts that were handed to loops and have not ended there.
  private let underWay = Atomic(0)
  private let shared: ServerClient.Shared

  init(mostHandedOver: Int) {
    shared = ServerClient.Shared(mostHandedOver: mostHandedOver)
  }

  var departedCount: Int { state.withLock { $0.departed.count } }

  /// The number of connected or awaited clients, and of pushes that were lost between loops.
  var counts: (clients: Int, pushesLost: UInt64) {
    let clients = state.withLock { $0.count + $0.others }
    return (clients, shared.pushesLost.load(ordering: .relaxed))
  }

  /// Whether a loop has a broadcast yet to send.
  var areBroadcastsUnderWay: Bool { underWay.load(ordering: .acquiring) > 0 }
  /// Records that a broadcast is handed to a loop. Call it where the broadcast begins.
  func broadcastHandedOver() { underWay.add(1, ordering: .relaxed) }
  /// Records that a loop has sent a broadcast.
  func broadcastEnded() { underWay.subtract(1, ordering: .releasing) }

  /// Begins a broadcast: calls `begin` with its number. No other broadcast begins meanwhile, so
  /// that all loops get broadcasts in the same order.
  func broadcast(_ begin: (UInt64) -> Void) {
    state.withLock { state in
      state.broadcasts += 1
      begin(state.broadcasts)
    }
  }

  /// Begins a broadcast to a principal's clients: calls `begin` also with their open connections.
  func broadcast(to principal: String, _ begin: (UInt64, [Peer]) -> Void) {
    state.withLock { state in
      state.broadcasts += 1
      begin(state.broadcasts, state.open(of: principal))
    }
  }

  /// Makes a newly opened connection the current one of its client. Returns the client and its
  /// older connections; nil if the connection is a client of its own, without an entry. `last` is
  /// the number of the last broadcast that has begun on the connection's loop.
  func join(
    _ peer: Peer, _ clientID: ClientID?, principal: String?, after last: UInt64
  ) -> (client: ServerClient, isNew: Bool, older: ServerClient.Older)? {
    state.withLock { state in
      guard clientID != nil || principal != nil else {
        state.others += 1
        return nil
      }
      let key = clientID.map { Self.key($0, principal) }
      if let key,
        let client = state.byID[key]?.all.first(where: {
          $0.clientID == clientID && $0.principal.isSame(as: principal)
        })
      {
        state.away.remove(client.id)
        return (client, false, client.join(peer, since: state.broadcasts, onLoop: last))
      }
      let client = ServerClient(id: peer.connectionID, clientID, principal: principal, shared)
      state.count += 1
      if let key { Self.insert(client, at: key, in: &state.byID) }
      if let principal { Self.insert(client, at: principal.hashValue, in: &state.byPrincipal) }
      var sent: UInt64 = 0
      if let clientID, !state.departed.isEmpty {
        let departed = Departed(clientID: clientID, principal: principal)
        sent = state.departed.removeValue(forKey: departed) ?? 0
      }
      return (client, true, client.join(peer, since: state.broadcasts, onLoop: last, sent: sent))
    }
  }

  /// Records that a client without an entry has left.
  func otherLeft() { state.withLock { $0.others -= 1 } }

  /// Forgets a client that is absent. Returns false if it has come back since the absence began.
  func forget(_ client: ServerClient, since absence: UInt64) -> Bool {
    state.withLock { state in
      guard client.isGone(since: absence) else { return false }
      if let clientID = client.clientID {
        Self.remove(client, at: Self.key(clientID, client.principal), from: &state.byID)
        let isOver = !areBroadcastsUnderWay
        if isOver || state.departed.count >= Self.mostDeparted { state.departed = [:] }
        if !isOver {
          let departed = Departed(clientID: clientID, principal: client.principal)
          state.departed[departed] = client.sent
        }
      }
      if let name = client.principal {
        Self.remove(client, at: name.hashValue, from: &state.byPrincipal)
      }
      state.count -= 1
      state.away.remove(client.id)
      return true
    }
  }

  /// Starts to wait for an absent client to return. Returns false if `most` clients are waited for
  /// already, if it has come back, or if it could not be recognised.
  func awaits(_ client: ServerClient, since absence: UInt64, most: Int) -> Bool {
    guard client.clientID != nil else { return false }
    return state.withLock { state in
      guard state.away.count < most, client.isAway(since: absence) else { return false }
      state.away.insert(client.id)
      return true
    }
  }

  /// The current connections of a principal's clients, in the order in which the clients arrived.
  func peers(of principal: String) -> [Peer] {
    state.withLock { $0.clients(of: principal) }.sorted { $0.id < $1.id }.compactMap(\.current)
  }

  private static func key(_ clientID: ClientID, _ principal: String?) -> Int {
    var hasher = Hasher()
    hasher.combine(clientID)
    hasher.combine(principal)
    return hasher.finalize()
  }

  private static func insert(_ client: ServerClient, at key: Int, in buckets: inout [Int: Bucket]) {
    if buckets[key]?.insert(client) == nil { buckets[key] = .one(client) }
  }

  private static func remove(
    _ client: ServerClient, at key: Int, from buckets: inout [Int: Bucket]
  ) {
    if buckets[key]?.remove(client) == true { buckets[key] = nil }
  }
}

extension String? {
  /// Whether both are nil, or have the same bytes.
  fileprivate func isSame(as other: String?) -> Bool {
    switch (self, other) {
    case (nil, nil): true
    case (let one?, let other?): one.isSameBytes(as: other)
    default: false
    }
  }
}
