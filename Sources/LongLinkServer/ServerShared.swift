// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver
import LongLinkTransport
import Synchronization

/// The state that all loops of a server share.
final class ServerShared: Sendable {
  private struct State {
    var connections = 0
    var nextID: UInt64 = 0
    var accepted: UInt64 = 0
    var turnedAway: UInt64 = 0
    var acceptFailures: UInt64 = 0
    var pushesDenied: UInt64 = 0
    /// The number of connections by address, for addresses that are limited.
    var connectionsOf: [SocketAddress.Group: Int] = [:]
  }

  private let state = Mutex(State())
  private let maxConnections: Int
  /// For lines that clients can cause; rate-limited for all connections together.
  let log: PeerLog
  private let maxConnectionsPerAddress: Int
  private let limitsLoopback: Bool
  /// The memory budget of all connections.
  let memory: MemoryBudget

  init(_ configuration: ServerConfiguration) {
    maxConnections = configuration.maxConnections
    maxConnectionsPerAddress = configuration.maxConnectionsPerAddress
    limitsLoopback = configuration.limitsLoopback
    log = PeerLog(configuration.logger)
    memory = MemoryBudget(limit: configuration.memoryLimit)
  }

  /// Why a connection is rejected before anything is read from it.
  enum Objection: String, Error {
    case tooManyConnections = "maxConnections"
    case tooManyOfAddress = "maxConnectionsPerAddress"
    case notWanted = "onAccept"
  }

  /// Admits a new connection, unless the application does not want it, and returns its number.
  func admit(_ address: SocketAddress?, isWanted: Bool) throws(Objection) -> UInt64 {
    let group = limitedGroup(of: address)
    let result: Result<UInt64, Objection> = state.withLock { state in
      let objection: Objection? =
        if !isWanted {
          .notWanted
        } else if state.connections >= maxConnections {
          .tooManyConnections
        } else if let group, state.connectionsOf[group, default: 0] >= maxConnectionsPerAddress {
          .tooManyOfAddress
        } else {
          nil
        }
      if let objection {
        state.turnedAway += 1
        return .failure(objection)
      }
      state.connections += 1
      if let group { state.connectionsOf[group, default: 0] += 1 }
      state.accepted += 1
      state.nextID += 1
      return .success(state.nextID)
    }
    return try result.get()
  }

  func logRejection(_ objection: Objection, of address: SocketAddress?, at now: LinkInstant) {
    log.log(.warning, "Rejected a connection", at: now) {
      [
        "reason": "\(objection.rawValue)",
        "peer": "\(address.map(String.init(describing:)) ?? "unknown")",
      ]
    }
  }

  private func limitedGroup(of address: SocketAddress?) -> SocketAddress.Group? {
    guard let group = address?.group, limitsLoopback || !group.isLoopback else { return nil }
    return group
  }

  func connectionEnded(_ address: SocketAddress?) {
    let group = limitedGroup(of: address)
    state.withLock { state in
      state.connections -= 1
      guard let group, let count = state.connectionsOf[group] else { return }
      state.connectionsOf[group] = count > 1 ? count - 1 : nil
    }
  }

  func acceptFailed() {
    state.withLock { $0.acceptFailures += 1 }
  }

  /// Counts a push that its access rule does not allow.
  func deniedPush() {
    state.withLock { $0.pushesDenied += 1 }
  }

  func fill(_ counters: inout ServerCounters) {
    counters.bytesHeld = memory.held
    state.withLock { state in
      counters.openConnections = state.connections
      counters.connectionsAccepted = state.accepted
      counters.connectionsTurnedAway = state.turnedAway
      counters.acceptFailures = state.acceptFailures
      counters.pushesDenied = state.pushesDenied
    }
  }
}
