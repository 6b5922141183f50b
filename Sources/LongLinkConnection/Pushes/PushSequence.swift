/// The peer's pushes, from the moment in which the sequence was asked for.
///
/// It ends when the client closes; one whose buffer may close it ends by throwing `overloaded`
/// when its consumer has fallen behind. One task at a time may await it, on any thread; all
/// iterators take from the same buffer. When the task that awaits is cancelled, it gets nil, and
/// the sequence goes on for others. The subscription ends with the last copy of the sequence and
/// its iterators.
public struct PushSequence<Failure: Error>: AsyncSequence, Sendable {
  /// What it consists of.
  public typealias Element = Push

  private let subscription: BroadcastSubscription<Push>

  init(_ subscription: BroadcastSubscription<Push>) {
    self.subscription = subscription
  }

  /// How many pushes this sequence has lost so far because its consumer fell behind.
  public var dropped: UInt64 { subscription.box.counts.dropped }

  /// How many pushes wait to be taken.
  public var buffered: Int { subscription.box.counts.buffered }

  /// Makes an iterator, which takes from the buffer of the sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(subscription: subscription)
  }

  /// Takes one push after the other.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    let subscription: BroadcastSubscription<Push>

    /// The next push; nil when the sequence has ended, or the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Push? {
      try await subscription.next(failing: Failure.self)
    }

    /// The next push; nil when the sequence has ended, or the task is cancelled.
    public mutating func next() async throws(Failure) -> Push? {
      try await next(isolation: nil)
    }
  }
}
