// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

// MARK: - Pushes of the server

extension LongLinkClient {
  /// Returns the server's pushes of one type, or of all types if nil, until the client closes.
  ///
  /// Pushes are buffered from this call on, across reconnects. A consumer that falls 1,024 pushes
  /// or 64 MiB behind loses the oldest ones, which the sequence and the client's counters count.
  /// Call it on any thread.
  public func pushes(of type: MessageType? = nil) -> BufferedSequence<Push, Never> {
    hub.subscribe(type, .dropOldest(1024))
  }

  /// Returns the server's pushes of one type, or of all types if nil, with the given buffer.
  ///
  /// Pushes are buffered from this call on, across reconnects. With a `close` buffer,
  /// `for try await` throws `overloaded` when the consumer has fallen behind. Call it on any
  /// thread.
  public func pushes<Failure>(
    of type: MessageType? = nil, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Push, Failure> {
    hub.subscribe(type, buffer)
  }

  /// Sets the function that is called with each push of a type, replacing any earlier one.
  ///
  /// It is called on the client's loop, which it must not block, until the client closes. Sequences
  /// of `pushes(of:)` get the same pushes. Call this on any thread.
  public func onPush(_ type: MessageType, _ handler: @escaping @Sendable (Push) -> Void) {
    hub.handle(type, handler)
  }
}

// MARK: - Pushes to the server

extension LongLinkClient {
  /// Sends a one-way message.
  ///
  /// The message is queued when this returns; nothing confirms its arrival. Pushes go in the order
  /// of the calls. If they have to wait, those of a larger `priority` go first, but a push of which
  /// a fragment was sent is finished before any other. While the outgoing buffer is above its
  /// high-water mark, this suspends until there is room or `timeout` has passed. Default nil: the
  /// timeout of requests, which is 15 s unless configured otherwise.
  ///
  /// A push does not wait for a connection, because its caller would not learn whether it was ever
  /// sent. Without one it throws `notConnected` (or `securityFailed` or `notAccepted` if that is
  /// why there is none), and an idle client begins to connect. Throws `connectionLost` if the
  /// connection ends during the wait (`closeReason` states why), `deadlineExceeded` after
  /// `timeout`, `cancelled` if the task is cancelled during the wait, `overloaded` if too many
  /// pushes wait already, `tooLarge` if the server does not accept a body of this size,
  /// `encodingFailed`, `closed`, and `unsupported` if the dialect has no such push, or if the long
  /// link is not among the client's ways.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    timeout: Duration? = nil, priority: UInt32 = 0
  ) async throws(LongLinkError) {
    try await deliver(core, on: loop, type, body, timeout, priority)
  }

  /// Sends a one-way message at once, without waiting.
  ///
  /// Throws `overloaded` while the outgoing buffer is above its high-water mark, and otherwise as
  /// `push` does. Call it only on the client's loop; it traps on other threads.
  public func pushNow(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try core.value.pushNow(type, body, priority: priority)
  }
}
