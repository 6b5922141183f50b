// SPDX-License-Identifier: Apache-2.0

internal import LongLinkServer
internal import Synchronization

/// Records the clients that servers report as connected, and the broadcasts that clients receive.
final class ClientLedger: Sendable {
  private struct Arrival: Hashable {
    let broadcast: UInt64
    let client: Int
  }

  /// A client that its server has reported as connected, and not yet as gone.
  private struct Presence: Hashable {
    var connections = 0
    /// How often the number of the client's connections has changed.
    var changes = 0
  }

  private struct Watched {
    let name: String
    weak var server: LongLinkServer?
    let isAlive: @Sendable () -> Bool
  }

  private struct State {
    /// The connected clients, by the name of the server and the ID of the peer.
    var clients: [String: Presence] = [:]
    var servers: [Watched] = []
    var arrived: Set<Arrival> = []
    /// Clients that may have connections both with and without a principal: these are different
    /// peers.
    var several: Set<Int> = []
    var broken: [(OraclePromise, String)] = []
    /// The clients that had a connection and were not in the server's list, and since when.
    var missing: [String: (presence: Presence, since: LinkInstant)] = [:]
  }

  /// The longest time that closing a connection may take, including a pause of the process.
  private static let longestEnd = Duration.seconds(15)

  private let state = Mutex(State())

  /// Listens to a server's hooks. While `isAlive` returns false, nothing is recorded or checked.
  func watch(_ server: LongLinkServer, named name: String, isAlive: @escaping @Sendable () -> Bool)
  {
    state.withLock {
      $0.servers.append(Watched(name: name, server: server, isAlive: isAlive))
    }
    server.onConnect { [self] peer in if isAlive() { came(peer, to: name) } }
    server.onConnectionEnded { [self] peer in
      guard isAlive() else { return }
      change("\(name) \(peer.id)", "lost a connection that it had not") {
        $0.flatMap { $0 > 0 ? $0 - 1 : nil }
      }
    }
    server.onDisconnect { [self] peer in
      guard isAlive() else { return }
      let client = "\(name) \(peer.id)"
      change(client, "is gone, and has a connection or was not there") { $0 == 0 ? 0 : nil }
      state.withLock { $0.clients[client] = nil }
    }
  }

  /// Records that a server has reported a client as connected.
  func came(_ peer: Peer, to name: String) {
    change("\(name) \(peer.id)", "came twice") { $0 == nil ? 0 : nil }
  }

  /// Records that a connection of a client has opened. Call it from the server's
  /// `onConnectionOpened`.
  func opened(_ peer: Peer, of name: String) {
    change("\(name) \(peer.id)", "has a connection, and was not reported") { $0.map { $0 + 1 } }
  }

  /// Records that a client has received a broadcast.
  func received(_ broadcast: UInt64, at client: Int) {
    state.withLock { state in
      let isFirst = state.arrived.insert(Arrival(broadcast: broadcast, client: client)).inserted
      if !isFirst, !state.several.contains(client) {
        state.broken.append((.onePeer, "client \(client) got broadcast \(broadcast) twice"))
      }
    }
  }

  /// Records that a client was accepted without a principal: it may now be several peers.
  func mayBeSeveral(_ client: Int) {
    state.withLock { _ = $0.several.insert(client) }
  }

  /// Checks that each server lists the clients that have a connection.
  ///
  /// Call it now and then from a task of the simulation. It waits for paused processes.
  /// A client may be missing while its last connection is being closed.
  func checkLists(at now: LinkInstant) async {
    for watched in state.withLock({ $0.servers }) where watched.isAlive() {
      guard let server = watched.server else { continue }
      let before = connected(to: watched.name)
      let listed = Set(await server.peers().map { "\(watched.name) \($0.id)" })
      guard watched.isAlive() else { continue }
      let after = connected(to: watched.name)
      // Clients whose connections changed during the call may be in the list or not.
      let missing = before.filter { after[$0.key] == $0.value && !listed.contains($0.key) }
      state.withLock { state in
        // A connection that the server is closing is not listed, but has not ended either.
        for client in missing.keys.sorted() {
          guard let last = state.missing[client], last.presence == missing[client] else {
            state.missing[client] = missing[client].map { ($0, since: now) }
            continue
          }
          guard last.since.duration(to: now) >= ClientLedger.longestEnd else { continue }
          state.missing[client]?.since = .distantFuture
          state.broken.append((.onePeer, "client \(client) has a connection, and is not listed"))
        }
        for client in before.keys where missing[client] == nil { state.missing[client] = nil }
      }
    }
  }

  private func connected(to name: String) -> [String: Presence] {
    state.withLock { state in
      state.clients.filter { $0.key.hasPrefix(name + " ") && $0.value.connections > 0 }
    }
  }

  /// Sets the number of a client's connections to what `next` returns; nil means a broken promise.
  private func change(_ client: String, _ problem: String, _ next: (Int?) -> Int?) {
    state.withLock { state in
      let presence = state.clients[client]
      if let count = next(presence?.connections) {
        state.clients[client] = Presence(
          connections: count, changes: (presence?.changes ?? 0) + 1)
      } else {
        state.broken.append((.onePeer, "client \(client) \(problem)"))
      }
    }
  }

  var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { $0.broken.map { (promise: $0.0, detail: $0.1) } }
  }
}
