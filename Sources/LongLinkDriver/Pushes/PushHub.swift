// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Synchronization

/// Hands pushes to handlers and subscribers. Any thread may use it.
package final class PushHub: Sendable {
  /// Pushes that were lost since the hub was made.
  package struct Counts: Sendable {
    /// The number of pushes that full buffers dropped.
    package var dropped: UInt64 = 0
    /// The number of pushes without a subscriber or handler.
    package var unhandled: UInt64 = 0
    /// The number of sequences that ended because their buffers were full.
    package var closed: UInt64 = 0
  }

  private struct State {
    var handlers: [(type: MessageType, handler: @Sendable (Push) -> Void)] = []
    var unhandled: UInt64 = 0
    var isClosed = false
  }

  private let list = BroadcastList<MessageType, Push>()
  private let state = Mutex(State())

  package init() {}

  package var counts: Counts {
    let counts = list.counts
    return Counts(
      dropped: counts.dropped, unhandled: state.withLock { $0.unhandled }, closed: counts.closed)
  }

  /// Subscribes to the pushes of one type, or of all if nil; the sequence ends when the hub closes.
  package func subscribe<Failure>(
    _ type: MessageType?, _ buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Push, Failure> {
    list.subscribe(type, buffer)
  }

  /// Sets the function that is called on the loop with each push of a type, replacing any earlier
  /// one.
  package func handle(_ type: MessageType, _ handler: @escaping @Sendable (Push) -> Void) {
    state.withLock { state in
      state.handlers.removeAll { $0.type == type }
      guard !state.isClosed else { return }
      state.handlers.append((type, handler))
    }
  }

  /// Hands a push to its handler and to every subscriber.
  ///
  /// `isUsed` is true if the push was consumed elsewhere, so that it does not count as unhandled.
  package func publish(_ push: Push, isUsed: Bool = false) {
    let handler = state.withLock { state in
      state.handlers.first { $0.type == push.type }?.handler
    }
    handler?(push)
    let isTaken = list.publish(push, for: push.type)
    if !isTaken, !isUsed, handler == nil { state.withLock { $0.unhandled += 1 } }
  }

  /// Ends every sequence and removes the handlers.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.handlers = []
    }
    list.close()
  }
}

extension Push: Broadcastable {
  package var bufferedBytes: Int { body.count }
  package static var plural: String { "pushes" }
}

extension Push {
  /// Calls a handler with the decoded push, whose memory counts for the peer until it returns.
  package func withDecoded<Message: PushMessage>(
    as type: Message.Type, in peer: Peer,
    _ handler: (Result<Message, LongLinkError>) -> Void
  ) {
    var lease: DecodedLease?
    let message: Message
    do throws(BodyError) {
      message = try DecodedLease.decode(type, from: body, in: peer.decoded, lease: &lease)
    } catch {
      return handler(.failure(undecodable(error)))
    }
    handler(.success(message))
    withExtendedLifetime(lease) {}
  }

  fileprivate func undecodable(_ reason: BodyError) -> LongLinkError {
    LongLinkError(
      reason.code == .outOfMemory ? .overloaded : .decodingFailed, delivery: .answered,
      doing: .push(type), detail: "\(reason)")
  }
}

extension PushMessage {
  /// Decodes a push of this message; throws `decodingFailed`, delivery `answered`.
  package init(_ push: Push) throws(LongLinkError) {
    do throws(BodyError) {
      self = try Self(copying: push.body)
    } catch {
      throw push.undecodable(error)
    }
  }
}
