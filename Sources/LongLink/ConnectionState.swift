// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkTransport
internal import Synchronization

/// Where a client's connection stands.
public enum ConnectionState: Hashable, Sendable {
  /// Nothing has asked for a connection yet.
  case idle
  /// A server is being looked up, connected to or greeted.
  case connecting(Endpoint)
  /// Requests can be sent.
  case connected(SocketAddress?)
  /// Requests can be sent on one connection, and another one is being made to take its place.
  case migrating(SocketAddress?, to: Endpoint)
  /// The connect failed or the connection ended; the next try is this far away.
  case waiting(Duration)
  /// The client was told to keep no connection for the time being.
  case suspended
  /// The client was closed.
  case closed

  /// Whether requests can be sent.
  public var isConnected: Bool {
    switch self {
    case .connected, .migrating: true
    case .idle, .connecting, .waiting, .suspended, .closed: false
    }
  }
}

/// The present state, and sequences of its changes.
final class StateHub: Sendable {
  private struct Hub {
    var state = ConnectionState.idle
    var nextID = 0
    var continuations: [(id: Int, continuation: AsyncStream<ConnectionState>.Continuation)] = []
  }

  private let hub = Mutex(Hub())

  var state: ConnectionState { hub.withLock { $0.state } }

  func set(_ state: ConnectionState) {
    let continuations = hub.withLock { hub in
      guard hub.state != state else { return [AsyncStream<ConnectionState>.Continuation]() }
      hub.state = state
      defer { if state == .closed { hub.continuations = [] } }
      return hub.continuations.map(\.continuation)
    }
    for continuation in continuations {
      continuation.yield(state)
      if state == .closed { continuation.finish() }
    }
  }

  /// The present state and each later one; a slow consumer sees the newest 64.
  func subscribe() -> AsyncStream<ConnectionState> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ConnectionState.self, bufferingPolicy: .bufferingNewest(64))
    let id = hub.withLock { hub in
      continuation.yield(hub.state)
      if hub.state == .closed {
        continuation.finish()
      } else {
        hub.nextID += 1
        hub.continuations.append((hub.nextID, continuation))
      }
      return hub.nextID
    }
    continuation.onTermination = { [weak self] _ in
      self?.hub.withLock { $0.continuations.removeAll { $0.id == id } }
    }
    return stream
  }
}
