// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// What happens to the connection on which you got a `Peer`, while its handlers run.
public enum PeerEvent: Hashable, Sendable {
  /// On a server: the client has opened a newer connection, which gets its pushes and requests from
  /// now on. It ends this one once nothing runs here, or after its `timeouts.lingering` (60 s by
  /// default).
  case moved
  /// On a server: it has asked the client to leave, at `shutDown`, `drain` or `endConnections`, or
  /// since its credential has expired. The connection ends once nothing runs on it, or at this
  /// instant.
  case draining(until: LinkInstant)
  /// The other side has said that it leaves. It sends no new requests, and may end the connection
  /// once nothing runs on it.
  case leaving
}

/// What has happened to a connection, and who listens; used on its loop.
final class PeerEvents {
  private var past: [PeerEvent] = []
  private var listeners: [(id: UInt64, continuation: AsyncStream<PeerEvent>.Continuation)] = []
  private var lastID: UInt64 = 0

  /// Tells an event, of each kind only the first one.
  func announce(_ event: PeerEvent) {
    guard !past.contains(where: { $0.isLike(event) }) else { return }
    past.append(event)
    for listener in listeners { listener.continuation.yield(event) }
  }

  /// Tells all events to another listener; returns its number.
  func add(_ continuation: AsyncStream<PeerEvent>.Continuation) -> UInt64 {
    for event in past { continuation.yield(event) }
    lastID += 1
    listeners.append((lastID, continuation))
    return lastID
  }

  func remove(_ id: UInt64) { listeners.removeAll { $0.id == id } }

  /// No more events come.
  func finish() {
    for listener in listeners { listener.continuation.finish() }
    listeners = []
  }
}

extension PeerEvent {
  fileprivate func isLike(_ other: PeerEvent) -> Bool {
    switch (self, other) {
    case (.moved, .moved), (.draining, .draining), (.leaving, .leaving): true
    default: false
    }
  }

  /// Whether what runs on the connection should come to an end.
  fileprivate var asksToEnd: Bool { self != .moved }
}

extension InboundRequest {
  /// Runs `body`, and cancels its task when the connection is to be left: because the server
  /// drains it or shuts down, or because the other side has said that it leaves.
  ///
  ///     server.routeStream(7, .responseItems) { request, _, writer in
  ///       try await request.untilDraining { try await prices.send(to: writer) }
  ///       return []
  ///     }
  ///
  /// Use it in handlers that would run on for long, so that `shutDown` need not wait until its
  /// bound has passed. If `body` throws after the cancellation, this throws a `Rejection` with 503:
  /// thrown on, it tells the client to ask again elsewhere. If `body` returns, its result is
  /// returned. If the task of the handler is cancelled, so is that of `body`, whose error is
  /// thrown.
  public func untilDraining<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let events = peer.events
    return try await withThrowingTaskGroup(of: Part<Result>.self) { group in
      group.addTask { .body(try await body()) }
      group.addTask {
        for await event in events where event.asksToEnd { return .draining }
        return .ended
      }
      var isDraining = false
      do {
        while let part = try await group.next() {
          switch part {
          case .body(let result):
            group.cancelAll()
            return result
          case .draining:
            isDraining = true
            group.cancelAll()
          case .ended: break
          }
        }
      } catch {
        group.cancelAll()
        guard isDraining, !Task.isCancelled else { throw error }
        throw Rejection(.draining, "the server ends this connection")
      }
      // The body ends in one of the two ways above.
      throw CancellationError()
    }
  }
}

/// The end of one of the two tasks of `untilDraining`.
private enum Part<Result: Sendable>: Sendable {
  case body(Result)
  case draining
  /// The connection has ended.
  case ended
}
