// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

/// Subscriptions by key, and counters of the elements that they lost. Any thread may use it.
package final class BroadcastList<Key: Hashable & Sendable, Element: Broadcastable>: Sendable {
  /// The losses of all buffers since the list was made.
  package struct Counts: Sendable {
    /// The number of elements that full buffers dropped.
    package var dropped: UInt64 = 0
    /// The number of sequences that ended because their buffers were full.
    package var closed: UInt64 = 0
  }

  private struct Subscription {
    let id: UInt64
    let key: Key?
    /// The subscriber's buffer; nil once the subscription has ended.
    var box: BroadcastBox<Element>?
  }

  private struct State {
    var nextID: UInt64 = 0
    /// The subscriptions in the order of their numbers, so that one is found fast among many. Ended
    /// ones stay until they are half of all, and are then removed together: so the cost of each is
    /// small, however many end at once.
    var subscriptions: [Subscription] = []
    var ended = 0
    var counts = Counts()
    var isClosed = false

    mutating func end(_ id: UInt64) {
      var range = 0..<subscriptions.count
      while !range.isEmpty {
        let middle = (range.lowerBound + range.upperBound) / 2
        if subscriptions[middle].id < id {
          range = middle + 1..<range.upperBound
        } else {
          range = range.lowerBound..<middle
        }
      }
      let index = range.lowerBound
      guard index < subscriptions.count, subscriptions[index].id == id,
        subscriptions[index].box.take() != nil
      else { return }
      ended += 1
      guard ended * 2 >= subscriptions.count else { return }
      subscriptions.removeAll { $0.box == nil }
      ended = 0
    }
  }

  private let state = Mutex(State())

  package init() {}

  package var counts: Counts { state.withLock { $0.counts } }
  /// The number of subscriptions.
  package var subscriberCount: Int { state.withLock { $0.subscriptions.count - $0.ended } }
  /// The number of places in the list, including those of ended subscriptions.
  var placeCount: Int { state.withLock { $0.subscriptions.count } }

  /// Subscribes to the elements of one key, or of all if nil; the sequence ends with the list.
  package func subscribe<Failure>(
    _ key: Key?, _ buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Element, Failure> {
    BufferedSequence(subscription(to: key, buffer))
  }

  /// Subscribes like `subscribe(_:_:)`, and returns the subscription without a sequence.
  package func subscription<Failure>(
    to key: Key?, _ buffer: PushBuffer<Failure>
  ) -> BroadcastSubscription<Element> {
    let box = BroadcastBox<Element>(buffer)
    let id: UInt64? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.nextID += 1
      state.subscriptions.append(Subscription(id: state.nextID, key: key, box: box))
      return state.nextID
    }
    if id == nil { box.finish() }
    return BroadcastSubscription(box) { [weak self] in
      if let id { self?.unsubscribe(id) }
    }
  }

  private func unsubscribe(_ id: UInt64) {
    state.withLock { $0.end(id) }
  }

  /// Offers an element to the subscribers of its key; returns whether there were any.
  @discardableResult
  package func publish(_ element: Element, for key: Key) -> Bool {
    let subscriptions = state.withLock { state in
      state.subscriptions.compactMap { subscription in
        let isWanted = subscription.key == nil || subscription.key == key
        return isWanted ? subscription.box.map { (id: subscription.id, box: $0) } : nil
      }
    }
    for subscription in subscriptions {
      switch subscription.box.offer(element) {
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
    return !subscriptions.isEmpty
  }

  /// Ends every sequence.
  package func close() {
    let subscriptions = state.withLock { state in
      state.isClosed = true
      defer { (state.subscriptions, state.ended) = ([], 0) }
      return state.subscriptions
    }
    for subscription in subscriptions { subscription.box?.finish() }
  }
}

/// Unsubscribes a box from its list when the last reference to the subscription is released.
package final class BroadcastSubscription<Element: Broadcastable>: Sendable {
  package let box: BroadcastBox<Element>
  private let end: @Sendable () -> Void

  init(_ box: BroadcastBox<Element>, onEnd end: @escaping @Sendable () -> Void) {
    self.box = box
    self.end = end
  }

  deinit {
    end()
  }

  /// Returns the next element of a sequence that throws `Failure`; nil at its end, or if cancelled.
  func next<Failure: Error>(failing: Failure.Type) async throws(Failure) -> Element? {
    switch await box.next() {
    case .element(let element):
      return element
    case .end:
      return nil
    case .overflow(let error):
      guard let failure = error as? Failure else {
        preconditionFailure("only a buffer that may close its sequence overflows")
      }
      throw failure
    }
  }
}
