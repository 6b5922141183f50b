package import LongLinkCore
internal import Synchronization

/// Hands pushes to whoever subscribed. It may be used from any thread.
package final class PushHub: Sendable {
  /// What became of pushes, each number since the beginning.
  package struct Counts: Sendable {
    /// Pushes that a full buffer dropped.
    package var dropped: UInt64 = 0
    /// Pushes that nobody had subscribed to.
    package var unhandled: UInt64 = 0
    /// Sequences that ended since their buffers were full.
    package var closed: UInt64 = 0
  }

  private struct Subscription {
    let id: UInt64
    let type: MessageType?
    let box: PushBox
  }

  private struct State {
    var nextID: UInt64 = 0
    var subscriptions: [Subscription] = []
    var handlers: [(type: MessageType, handler: @Sendable (Push) -> Void)] = []
    var counts = Counts()
    var isClosed = false
  }

  private let state = Mutex(State())

  package init() {}

  package var counts: Counts { state.withLock { $0.counts } }

  /// A sequence of the pushes of one type, or of all; it ends when the hub closes.
  package func subscribe<Failure>(
    _ type: MessageType?, _ buffer: PushBuffer<Failure>
  ) -> PushSequence<Failure> {
    let box = PushBox(buffer)
    let id: UInt64? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.nextID += 1
      state.subscriptions.append(Subscription(id: state.nextID, type: type, box: box))
      return state.nextID
    }
    if id == nil { box.finish() }
    return PushSequence(
      PushSubscription(box) { [weak self] in
        if let id { self?.unsubscribe(id) }
      })
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
    let (handler, subscriptions) = state.withLock { state in
      let handler = state.handlers.first { $0.type == push.type }?.handler
      let subscriptions = state.subscriptions.filter { $0.type == nil || $0.type == push.type }
      if handler == nil, subscriptions.isEmpty { state.counts.unhandled += 1 }
      return (handler, subscriptions)
    }
    handler?(push)
    for subscription in subscriptions {
      switch subscription.box.offer(push) {
      case .taken, .dropped(0):
        break
      case .dropped(let count):
        state.withLock { $0.counts.dropped += count }
      case .overflowed:
        state.withLock { state in
          state.counts.dropped += 1
          state.counts.closed += 1
        }
        unsubscribe(subscription.id)
      }
    }
  }

  /// Ends every sequence.
  package func close() {
    let subscriptions = state.withLock { state in
      state.isClosed = true
      state.handlers = []
      defer { state.subscriptions = [] }
      return state.subscriptions
    }
    for subscription in subscriptions { subscription.box.finish() }
  }
}
