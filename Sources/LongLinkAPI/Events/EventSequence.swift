import LongLinkConnection

/// What the server said, from the moment in which the sequence was asked for.
///
/// It ends when the client closes; one whose buffer may close it ends by throwing `overloaded`
/// when its consumer has fallen behind. One task at a time may await it, on any thread; all
/// iterators take from the same buffer. The subscription ends with the last copy of the sequence
/// and its iterators.
public struct EventSequence<Failure: Error>: AsyncSequence, Sendable {
  /// What it consists of.
  public typealias Element = APIEvent

  private let subscription: BroadcastSubscription<APIEvent>

  init(_ subscription: BroadcastSubscription<APIEvent>) {
    self.subscription = subscription
  }

  /// How many events this sequence has lost so far because its consumer fell behind.
  public var dropped: UInt64 { subscription.box.counts.dropped }

  /// How many events wait to be taken.
  public var buffered: Int { subscription.box.counts.buffered }

  /// Makes an iterator, which takes from the buffer of the sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(subscription: subscription)
  }

  /// Takes one event after the other.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    let subscription: BroadcastSubscription<APIEvent>

    /// The next event; nil when the sequence has ended, or the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> APIEvent? {
      try await subscription.next(failing: Failure.self)
    }

    /// The next event; nil when the sequence has ended, or the task is cancelled.
    public mutating func next() async throws(Failure) -> APIEvent? {
      try await next(isolation: nil)
    }
  }
}
