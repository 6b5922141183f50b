// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The current state, and sequences of its changes.
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

  /// Returns a sequence of the current state and each later one; it buffers the newest 64.
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
