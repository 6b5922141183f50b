// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// A sequence of pushes, decoded messages or events, which are buffered from when it is made.
///
/// It ends when the client closes. With a `close` buffer it ends by throwing `overloaded` when its
/// consumer has fallen behind. A sequence of messages throws `decodingFailed` for a body that does
/// not decode, and the next call to `next()` continues with the next message.
///
/// One task at a time may await it, on any thread; a second one traps. All copies take from the
/// same buffer. When the awaiting task is cancelled, it gets nil, and other tasks can continue with
/// the sequence. The subscription ends when the last copy of the sequence is released.
public struct BufferedSequence<Element: Sendable, Failure: Error>: AsyncSequence,
  AsyncIteratorProtocol, Sendable
{
  private let counts: @Sendable () -> (dropped: UInt64, buffered: Int)
  private let take: @Sendable () async throws(Failure) -> Element?

  /// The number of elements dropped so far because the consumer fell behind.
  public var dropped: UInt64 { counts().dropped }

  /// The number of buffered elements.
  public var buffered: Int { counts().buffered }

  /// Returns the sequence itself.
  public func makeAsyncIterator() -> BufferedSequence { self }

  /// Returns the next element; nil when the sequence has ended or the task is cancelled.
  ///
  /// Throws `overloaded` once if a `close` buffer was full, after the elements in it, and
  /// `decodingFailed` in place of a message that does not decode.
  public mutating func next(
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws(Failure) -> Element? {
    try await take()
  }

  /// Returns the next element; nil when the sequence has ended or the task is cancelled. Throws as
  /// `next(isolation:)` does.
  public mutating func next() async throws(Failure) -> Element? {
    try await next(isolation: nil)
  }
}

extension BufferedSequence where Element: Broadcastable {
  /// Makes the sequence of a subscription.
  init(_ subscription: BroadcastSubscription<Element>) {
    counts = { subscription.box.counts }
    take = { () async throws(Failure) in try await subscription.next(failing: Failure.self) }
  }
}

extension BufferedSequence {
  /// Makes a sequence of messages from a sequence of pushes. Each push is decoded when it is taken.
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
