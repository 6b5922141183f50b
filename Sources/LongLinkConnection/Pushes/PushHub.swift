public import LongLinkCore
internal import Synchronization

/// A one-way message from the peer.
public struct Push: Hashable, Sendable {
  /// What the body carries.
  public let type: MessageType
  /// The body.
  public let body: [UInt8]

  /// Makes a push, for tests.
  public init(type: MessageType, body: [UInt8]) {
    self.type = type
    self.body = body
  }
}

/// What happens to pushes that their consumer has not taken yet.
public enum PushBuffer: Hashable, Sendable {
  /// At most this many wait; when one more comes, the oldest is dropped and counted.
  case dropOldest(Int)
  /// At most this many wait; when one more comes, it is dropped and counted.
  case dropNewest(Int)
}

/// Hands pushes to whoever subscribed. It may be used from any thread.
package final class PushHub: Sendable {
  private struct Subscription {
    let id: UInt64
    let type: MessageType?
    let continuation: AsyncStream<Push>.Continuation
  }

  private struct State {
    var nextID: UInt64 = 0
    var subscriptions: [Subscription] = []
    var handlers: [(type: MessageType, handler: @Sendable (Push) -> Void)] = []
    var dropped: UInt64 = 0
    var unhandled: UInt64 = 0
    var isClosed = false
  }

  private let state = Mutex(State())

  package init() {}

  /// Pushes that a full buffer dropped, and pushes that nobody had subscribed to.
  package var counts: (dropped: UInt64, unhandled: UInt64) {
    state.withLock { ($0.dropped, $0.unhandled) }
  }

  /// A sequence of the pushes of one type, or of all; it ends when the hub closes.
  package func subscribe(_ type: MessageType?, _ buffer: PushBuffer) -> AsyncStream<Push> {
    let policy: AsyncStream<Push>.Continuation.BufferingPolicy =
      switch buffer {
      case .dropOldest(let count): .bufferingNewest(count)
      case .dropNewest(let count): .bufferingOldest(count)
      }
    let (stream, continuation) = AsyncStream.makeStream(of: Push.self, bufferingPolicy: policy)
    let id: UInt64? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.nextID += 1
      state.subscriptions.append(
        Subscription(id: state.nextID, type: type, continuation: continuation))
      return state.nextID
    }
    if let id {
      continuation.onTermination = { [weak self] _ in self?.unsubscribe(id) }
    } else {
      continuation.finish()
    }
    return stream
  }

  private func unsubscribe(_ id: UInt64) {
    state.withLock { state in state.subscriptions.removeAll { $0.id == id } }
  }

  /// Sets the function that is called, on the loop, with each push of a type.
  package func handle(_ type: MessageType, _ handler: @escaping @Sendable (Push) -> Void) {
    state.withLock { state in
      state.handlers.removeAll { $0.type == type }
      state.handlers.append((type, handler))
    }
  }

  /// Hands a push to its handler and to every sequence that asked for it.
  package func publish(_ push: Push) {
    let (handler, continuations) = state.withLock { state in
      let handler = state.handlers.first { $0.type == push.type }?.handler
      let continuations = state.subscriptions
        .filter { $0.type == nil || $0.type == push.type }
        .map(\.continuation)
      if handler == nil, continuations.isEmpty { state.unhandled += 1 }
      return (handler, continuations)
    }
    handler?(push)
    var dropped: UInt64 = 0
    for continuation in continuations {
      if case .dropped = continuation.yield(push) { dropped += 1 }
    }
    if dropped > 0 { state.withLock { $0.dropped += dropped } }
  }

  /// Ends every sequence.
  package func close() {
    let subscriptions = state.withLock { state in
      state.isClosed = true
      state.handlers = []
      return state.subscriptions
    }
    for subscription in subscriptions { subscription.continuation.finish() }
  }
}
