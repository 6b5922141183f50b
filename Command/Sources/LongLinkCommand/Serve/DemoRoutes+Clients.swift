// SPDX-License-Identifier: Apache-2.0

import LongLinkCommandSupport
import LongLinkDemoMessages
import LongLinkServer
import Synchronization

/// The routes that concern all clients of the server.
extension DemoRoutes {
  static let broadcast = RPCMethod<BroadcastRequest, BroadcastReply>(11)
  static let peers = RPCMethod<EmptyBody, PeersReply>(19)

  static func installClients(on server: LongLinkServer) {
    let presence = Presence()
    server.onConnectionOpened { presence.opened($0) }
    server.onConnectionEnded { presence.ended($0) }
    server.route(broadcast) { [unowned server] message, _ in
      let report = try await server.broadcast(try pushType(message.messageType), message.body)
      return BroadcastReply(clients: UInt32(report.queued))
    }
    server.route(peers) { _, _ in presence.reply }
  }
}

/// The clients that are connected. To count them costs the same however many there are.
private final class Presence: Sendable {
  private struct State {
    /// The number of open connections, by the number of their client.
    var connections: [UInt64: UInt32] = [:]
    var total: UInt32 = 0
  }

  private let state = Mutex(State())

  func opened(_ peer: Peer) {
    state.withLock { state in
      state.connections[peer.id, default: 0] += 1
      state.total += 1
    }
  }

  func ended(_ peer: Peer) {
    state.withLock { state in
      let rest = (state.connections[peer.id] ?? 1) - 1
      state.connections[peer.id] = rest > 0 ? rest : nil
      state.total -= 1
    }
  }

  var reply: PeersReply {
    state.withLock { PeersReply(clients: UInt32($0.connections.count), connections: $0.total) }
  }
}
