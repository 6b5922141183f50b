// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

// MARK: - Pushes of the server

extension LongLinkClient {
  /// The server's pushes of one type, or of all where `type` is nil; it ends when the client
  /// closes.
  ///
  /// Pushes are buffered from this call on, over reconnects too. A consumer that falls 1,024 pushes
  /// or 64 MiB behind loses the oldest ones, counted by the sequence and by the client's counters.
  public func pushes(of type: MessageType? = nil) -> BufferedSequence<Push, Never> {
    hub.subscribe(type, .dropOldest(1024))
  }

  /// The server's pushes of one type, or of all where `type` is nil, with a buffer of the caller's
  /// choice.
  ///
  /// As the other form; with a buffer that may close it, `for try await` throws `LongLinkError`
  /// when the consumer has fallen behind.
  public func pushes<Failure>(
    of type: MessageType? = nil, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<Push, Failure> {
    hub.subscribe(type, buffer)
  }

  /// Sets the function that is called, on the client's loop, with each push of a type.
  public func onPush(_ type: MessageType, _ handler: @escaping @Sendable (Push) -> Void) {
    hub.handle(type, handler)
  }
}

// MARK: - Pushes to the server

extension LongLinkClient {
  /// Sends a one-way message.
  ///
  /// It is queued when this returns, in the order of the calls, more urgent ones first where they
  /// have to wait: while more than the high-water mark of bytes wait for the server, this waits
  /// too, within the options' deadline. Throws `notConnected` without a connection, since nobody
  /// would know whether it ever left; `connectionLost` when the connection ends while it waits,
  /// with `closeReason`; `deadlineExceeded`; `cancelled` when the task is while it waits;
  /// `overloaded` when too many wait already; `tooLarge`; `encodingFailed`; `closed`.
  public func push(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: PushOptions = PushOptions()
  ) async throws(LongLinkError) {
    try await deliver(core, on: loop, type, body, options)
  }

  /// Sends a one-way message at once; on the client's loop alone.
  ///
  /// It waits for nothing: while more than the high-water mark of bytes wait for the server it
  /// throws `overloaded`, and otherwise what the other form does. It traps on any other thread.
  public func pushNow(
    _ type: MessageType, _ body: some BodyEncodable & Sendable, priority: UInt32 = 0
  ) throws(LongLinkError) {
    try core.value.pushNow(type, body, priority: priority)
  }
}
