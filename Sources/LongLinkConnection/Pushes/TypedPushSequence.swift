public import LongLinkCore

/// The peer's pushes of one kind of message, from the moment in which the sequence was asked for.
///
/// It is a ``PushSequence`` whose elements are decoded as they are taken: `next` throws
/// `decodingFailed` for a body that is not such a message, and goes on with the one behind it.
public struct TypedPushSequence<Message: PushMessage>: AsyncSequence, Sendable {
  /// What it consists of.
  public typealias Element = Message

  private let pushes: any PushSource

  package init<Failure>(_ pushes: PushSequence<Failure>) {
    self.pushes = pushes
  }

  /// How many pushes this sequence has lost so far because its consumer fell behind.
  public var dropped: UInt64 { pushes.dropped }

  /// How many pushes wait to be taken.
  public var buffered: Int { pushes.buffered }

  /// Makes an iterator, which takes from the buffer of the sequence.
  public func makeAsyncIterator() -> Iterator {
    Iterator(pushes: pushes)
  }

  /// Takes one message after the other.
  public struct Iterator: AsyncIteratorProtocol, Sendable {
    fileprivate let pushes: any PushSource

    /// The next message; nil when the sequence has ended, or the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> Message? {
      guard let push = try await pushes.take(isolation: actor) else { return nil }
      return try Message(push)
    }

    /// The next message; nil when the sequence has ended, or the task is cancelled.
    public mutating func next() async throws(LongLinkError) -> Message? {
      try await next(isolation: nil)
    }
  }
}

extension PushMessage {
  /// Decodes a push of its type; throws `decodingFailed`, delivery `answered`.
  package init(_ push: Push) throws(LongLinkError) {
    do throws(BodyError) {
      self = try Self(copying: push.body)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: "push type=\(push.type)", detail: "\(error)")
    }
  }
}

/// A sequence of pushes, however it may end.
private protocol PushSource: Sendable {
  var dropped: UInt64 { get }
  var buffered: Int { get }
  func take(isolation actor: isolated (any Actor)?) async throws(LongLinkError) -> Push?
}

extension PushSequence: PushSource {
  fileprivate func take(
    isolation actor: isolated (any Actor)?
  ) async throws(LongLinkError) -> Push? {
    var iterator = makeAsyncIterator()
    do {
      return try await iterator.next(isolation: actor)
    } catch let error as LongLinkError {
      throw error
    } catch {
      preconditionFailure("a sequence of pushes fails with LongLinkError alone")
    }
  }
}
