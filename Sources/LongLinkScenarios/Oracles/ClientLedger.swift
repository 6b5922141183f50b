// SPDX-License-Identifier: Apache-2.0

internal import LongLinkServer
internal import Synchronization

/// Records what a server tells about its clients, and the broadcasts that they get.
final class ClientLedger: Sendable {
  private struct Arrival: Hashable {
    let broadcast: UInt64
    let client: Int
  }

  private struct State {
    /// The open connections of each client that is there, by the names of its server and itself.
    var connections: [String: Int] = [:]
    var arrived: Set<Arrival> = []
    /// Clients that have connections with a principal and without one, which are different peers.
    var several: Set<Int> = []
    var broken: [(OraclePromise, String)] = []
  }

  private let state = Mutex(State())

  /// Listens to a server's hooks. A client is forgotten when the server's process ends.
  func watch(_ server: LongLinkServer, named name: String, isAlive: @escaping @Sendable () -> Bool)
  {
    server.onConnect { [self] peer in
      guard isAlive() else { return }
      change("\(name) \(peer.id)", "came twice") { $0 == nil ? 0 : nil }
    }
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
      state.withLock { $0.connections[client] = nil }
    }
  }

  /// Records that a connection has opened; the server's hook for that is the caller's.
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

  /// Records that a client was accepted without its principal.
  func mayBeSeveral(_ client: Int) {
    state.withLock { _ = $0.several.insert(client) }
  }

  /// Changes the number of a client's connections; nil is a broken promise.
  private func change(_ client: String, _ problem: String, _ next: (Int?) -> Int?) {
    state.withLock { state in
      if let count = next(state.connections[client]) {
        state.connections[client] = count
      } else {
        state.broken.append((.onePeer, "client \(client) \(problem)"))
      }
    }
  }

  var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { $0.broken.map { (promise: $0.0, detail: $0.1) } }
  }
}
