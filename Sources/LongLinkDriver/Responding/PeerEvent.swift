// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// An event of the connection on which you got a ``Peer``: its end is near, or there is a newer
/// one.
public enum PeerEvent: Hashable, Sendable {
  /// On a server: the client has opened a newer connection, over which your pushes and requests go
  /// while it is open. A LongLink client ends this connection once nothing runs on it, or after the
  /// client's `timeouts.lingering` (60 s by default).
  case moved
  /// On a server: this server has asked the client to leave the connection, by `shutDown`, `drain`
  /// or `endConnections`, because its credential has expired, or because it has four newer
  /// connections. The connection ends once nothing runs on it, or at this instant of the peer's
  /// `clock`.
  case draining(until: LinkInstant)
  /// The other side has said that it leaves. It sends no new requests, and the connection ends once
  /// nothing runs on it.
  case leaving
}

/// The past events of a connection, and its listeners; used on its loop.
final class PeerEvents {
  private var past: [PeerEvent] = []
  private var listeners: [(id: UInt64, continuation: AsyncStream<PeerEvent>.Continuation)] = []

  private static let count = Atomic<UInt64>(0)

  /// Returns a new number for a listener; call it on any thread.
  static func nextID() -> UInt64 { count.add(1, ordering: .relaxed).newValue }

  var listenerCount: Int { listeners.count }

  /// Sends an event to all listeners. Returns whether it is the first of its kind.
  func announce(_ event: PeerEvent) -> Bool {
    let earlier = past.firstIndex { $0.isLike(event) }
    if let earlier {
      // An event of the same kind is sent again only if it differs, as with an earlier end.
      guard past[earlier] != event else { return false }
      past[earlier] = event
    } else {
      past.append(event)
    }
    for listener in listeners { listener.continuation.yield(event) }
    return earlier == nil
  }

  /// Adds a listener, and sends it all past events.
  func add(_ id: UInt64, _ continuation: AsyncStream<PeerEvent>.Continuation) {
    for event in past { continuation.yield(event) }
    listeners.append((id, continuation))
  }

  /// Forgets a listener. Returns whether there is nothing left to keep.
  func remove(_ id: UInt64) -> Bool {
    listeners.removeAll { $0.id == id }
    if listeners.isEmpty { listeners = [] }
    return listeners.isEmpty && past.isEmpty
  }

  /// Ends the sequences of all listeners.
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
  /// Runs `body` in a child task, and cancels that task when the connection is about to end: when
  /// this server drains it or shuts down, or when the other side has said that it leaves.
  ///
  ///     server.routeStream(7, .responseItems) { request, _, writer in
  ///       try await request.untilDraining { try await prices.send(to: writer) }
  ///       return []
  ///     }
  ///
  /// Use it in handlers that run for a long time, so that `shutDown` need not wait for the whole of
  /// its `within:`. If the cancellation ends `body`, this throws a `Rejection` with 503. If the
  /// handler throws it on, the client's error has the delivery `answered`, because `body` may have
  /// done a part; a stream with `resuming:` is opened again. A result or another error of `body` is
  /// passed on.
  ///
  /// A client that moves to another connection does not end `body`: see `PeerEvent.moved`.
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
        guard isDraining, !Task.isCancelled, error.isCancellation else { throw error }
        throw Rejection(.draining, "this connection is about to end")
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
