// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
import Synchronization

/// The state that all loops of a server share.
final class ServerShared: Sendable {
  private struct State {
    var connections = 0
    var nextID: UInt64 = 0
    var accepted: UInt64 = 0
    var turnedAway: UInt64 = 0
    var acceptFailures: UInt64 = 0
    var pushHandlers: [MessageType: @Sendable (Push, Peer) -> Void] = [:]
    var unhandledPushes: UInt64 = 0
    /// The number of connections by address, for addresses that are limited.
    var connectionsOf: [SocketAddress.Group: Int] = [:]
    var onAccept: (@Sendable (SocketAddress?) -> Bool)?
    var onConnect: (@Sendable (Peer) -> Void)?
    var onDisconnect: (@Sendable (Peer) -> Void)?
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

  var onAccept: (@Sendable (SocketAddress?) -> Bool)? {
    get { state.withLock { $0.onAccept } }
    set { state.withLock { $0.onAccept = newValue } }
  }

  var onConnect: (@Sendable (Peer) -> Void)? {
    get { state.withLock { $0.onConnect } }
    set { state.withLock { $0.onConnect = newValue } }
  }

  var onDisconnect: (@Sendable (Peer) -> Void)? {
    get { state.withLock { $0.onDisconnect } }
    set { state.withLock { $0.onDisconnect = newValue } }
  }

  func handle(_ type: MessageType, _ handler: @escaping @Sendable (Push, Peer) -> Void) {
    state.withLock { $0.pushHandlers[type] = handler }
  }

  func received(_ push: Push, from peer: Peer) {
    let handler = state.withLock { state in
      let handler = state.pushHandlers[push.type]
      if handler == nil { state.unhandledPushes += 1 }
      return handler
    }
    handler?(push, peer)
  }

  /// Why a connection is rejected before anything is read from it.
  enum Objection: String, Error {
    case tooManyConnections = "maxConnections"
    case tooManyOfAddress = "maxConnectionsPerAddress"
    case notWanted = "onAccept"
  }

  /// Admits a new connection and returns its number.
  func admit(_ address: SocketAddress?) throws(Objection) -> UInt64 {
    // Call the application's function without holding the lock.
    let isWanted = onAccept?(address) ?? true
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

  func fill(_ counters: inout ServerCounters) {
    counters.bytesHeld = memory.held
    state.withLock { state in
      counters.openConnections = state.connections
      counters.connectionsAccepted = state.accepted
      counters.connectionsTurnedAway = state.turnedAway
      counters.acceptFailures = state.acceptFailures
      counters.pushesUnhandled = state.unhandledPushes
    }
  }
}

/// A snapshot of a server's counters since it was started.
public struct ServerCounters: Hashable, Sendable {
  /// Connections that are open.
  public internal(set) var openConnections = 0
  /// Connections that were accepted.
  public internal(set) var connectionsAccepted: UInt64 = 0
  /// Connections that were rejected because of `maxConnections`, `maxConnectionsPerAddress` or
  /// `onAccept`.
  public internal(set) var connectionsTurnedAway: UInt64 = 0
  /// Connections that the system failed to accept, for example because no descriptor was free.
  public internal(set) var acceptFailures: UInt64 = 0
  /// Requests whose handlers run, or whose responses are still being sent.
  public internal(set) var requestsRunning = 0
  /// Pushes that wait for room on their connections.
  public internal(set) var pushesWaiting = 0
  /// Bytes that wait to be written.
  public internal(set) var bytesUnwritten = 0
  /// Bytes that the server holds for all connections, as `memoryLimit` counts them.
  public internal(set) var bytesHeld = 0
  /// Pushes of clients that no handler was set for.
  public internal(set) var pushesUnhandled: UInt64 = 0
  /// The totals of all connections, past and present.
  public internal(set) var connections = ConnectionCounters()
  /// Connections that ended, by the kind of their `CloseReason`; among them `stalledPeer`, which
  /// took no byte for too long, and `unreadOutput`, for which too many bytes waited.
  public internal(set) var endings: [CloseReason.Kind: UInt64] = [:]
  /// Connections that ended because the peer broke a rule, by rule.
  public internal(set) var violations: [Violation.Rule: UInt64] = [:]
  /// Counters of the server's own requests.
  public internal(set) var requests = RequestCounters()
}
