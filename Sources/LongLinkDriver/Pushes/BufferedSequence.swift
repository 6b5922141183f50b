// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// What the peer said, from the moment in which the sequence was asked for: pushes, messages that
/// were pushed, or events.
///
/// It ends when the client closes; one whose buffer may close it ends by throwing `overloaded`
/// when its consumer has fallen behind. One of messages throws `decodingFailed` for a body that is
/// none, and goes on with the one behind it. One task at a time may await it, on any thread; all
/// iterators take from the same buffer. When the task that awaits is cancelled, it gets nil, and
/// the sequence goes on for others. The subscription ends with the last copy of the sequence and
/// its iterators.
public struct BufferedSequence<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
  private let counts: @Sendable () -> (dropped: UInt64, buffered: Int)
  private let take: @Sendable () async throws(Failure) -> Element?

  /// How many elements this sequence has lost so far because its consumer fell behind.
  public var dropped: UInt64 { counts().dropped }

  /// How many elements wait to be taken.
  public var buffered: Int { counts().buffered }

  /// Makes an iterator, which takes from the buffer of the sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(take: take)
  }

  /// Takes one element after the other.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    fileprivate let take: @Sendable () async throws(Failure) -> Element?

    /// The next element; nil when the sequence has ended, or the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(Failure) -> Element? {
      try await take()
    }

    /// The next element; nil when the sequence has ended, or the task is cancelled.
    public mutating func next() async throws(Failure) -> Element? {
      try await next(isolation: nil)
    }
  }
}

extension BufferedSequence where Element: Broadcastable {
  /// Makes a sequence of what a subscription gets.
  init(_ subscription: BroadcastSubscription<Element>) {
    counts = { subscription.box.counts }
    take = { () async throws(Failure) in try await subscription.next(failing: Failure.self) }
  }
}

extension BufferedSequence {
  /// Makes a sequence of messages of their pushes, decoded as they are taken.
  package init<Ending: Error>(_ pushes: BufferedSequence<Push, Ending>)
  where Element: PushMessage, Failure == LongLinkError {
    counts = pushes.counts
    take = { () async throws(LongLinkError) in
      let push: Push?
      do {
        push = try await pushes.take()
      } catch let error as LongLinkError {
        throw error
      } catch {
        preconditionFailure("a sequence of pushes fails with LongLinkError alone")
      }
      return if let push { try Element(push) } else { nil }
    }
  }
}
