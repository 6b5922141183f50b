// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// Sends the items of one side of a stream, as bytes or as messages. You can use it from any task.
public struct ItemWriter<Item: BodyEncodable & Sendable>: Sendable {
  @usableFromInline let channel: BoundChannel

  init(_ channel: BoundChannel) {
    self.channel = channel
  }

  /// Sends an item, after those that were written before.
  ///
  /// It returns when the connection has the whole item in its outgoing buffer. If the peer's reader
  /// is slow, it waits: a writer can be ahead of the reader by one window and one item, plus up to
  /// 64 KiB of items that a reader on another thread takes at once. On the connection's loop, an
  /// item for which there is enough credit is written without suspending.
  ///
  /// Throws `tooLarge` if the peer does not accept an item of this size, and `encodingFailed` if it
  /// cannot be encoded: then nothing is sent, and you can go on to write. Throws `streamEnded` if
  /// the peer has responded with 200 or you have ended the items, `rejected` if the peer responded
  /// with another code, the error of the request if that has failed in another way, in a handler
  /// `closed` once the exchange has ended, `deadlineExceeded` if the item waits for longer than
  /// `itemTimeout`, and `cancelled` if the task is cancelled while it waits.
  @inlinable
  public nonisolated(nonsending) func write(_ item: Item) async throws(LongLinkError) {
    try await channel.write(RequestBody(item))
  }

  /// Sends several items in order. From a task that does not run on the connection's loop it is
  /// much cheaper than several calls of `write`. It throws as `write(_:)` does for the first item
  /// that fails; those before it were sent, and those after it are not.
  public nonisolated(nonsending) func write(
    contentsOf items: [Item]
  ) async throws(LongLinkError) {
    try await channel.write(contentsOf: items)
  }

  /// Ends your items, after those that were written before: later writes throw `streamEnded`. The
  /// peer's items may go on. If you call it in a handler, the peer sees the end of the items only
  /// when the handler returns.
  public func finish() {
    channel.onLoop { channel in channel.endItems() }
  }

  /// Waits until the exchange has ended, for whatever reason, so that nothing can be written any
  /// more. It also returns when the task is cancelled.
  ///
  /// Await it in parallel to a source that may have nothing to write for a long time, such as a
  /// user's input: so you learn at once if the peer responds meanwhile.
  public func waitForEnd() async {
    let wait = ChannelWait()
    await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Void>) in
        channel.onLoop { channel in
          guard let id = channel.awaitEnd(waiter) else { return }
          if !wait.begin(id) { channel.cancelAwaitEnd(id) }
        }
      }
    } onCancel: {
      if let id = wait.cancel() {
        channel.loop.execute { [channel] in channel.value.cancelAwaitEnd(id) }
      }
    }
  }
}

extension ItemWriter where Item == [UInt8] {
  /// Sends a message as an item, as `write(_:)` does with bytes.
  @inlinable
  public nonisolated(nonsending) func write(
    _ item: some BodyEncodable & Sendable
  ) async throws(LongLinkError) {
    try await channel.write(RequestBody(item))
  }

  /// Sends several messages in order, as `write(contentsOf:)` does with bytes.
  public nonisolated(nonsending) func write(
    contentsOf items: [some BodyEncodable & Sendable]
  ) async throws(LongLinkError) {
    try await channel.write(contentsOf: items)
  }
}

extension ItemWriter {
  /// Sends an item that is encoded already.
  package nonisolated(nonsending) func write(
    encoded item: [UInt8]
  ) async throws(LongLinkError) {
    try await channel.write(.bytes(item))
  }
}

extension BoundChannel {
  @usableFromInline
  nonisolated(nonsending) func write(_ item: RequestBody) async throws(LongLinkError) {
    if loop.isCurrent {
      switch value.write(item) {
      case .done: return
      case .failed(let error): throw error
      case .taken:
        // The wait may begin in a later job, when other items have been taken.
        let number = value.itemsTaken
        return try await wait { $0.awaitSent($1, item: number) }.get()
      case .mustWait: break
      }
    }
    // Written and awaited in one job of the loop, so that no other item comes between.
    try await wait { channel, waiter in
      switch channel.write(item) {
      case .done: waiter(.success(()))
      case .failed(let error): waiter(.failure(error))
      case .taken: return channel.awaitSent(waiter, item: channel.itemsTaken)
      case .mustWait: return channel.enqueue(item, waiter)
      }
      return nil
    }.get()
  }

  fileprivate nonisolated(nonsending) func write<Body: BodyEncodable & Sendable>(
    contentsOf items: [Body]
  ) async throws(LongLinkError) {
    let bound = self
    if loop.isCurrent {
      for item in items { try await bound.write(RequestBody(item)) }
      return
    }
    var index = 0
    while index < items.count {
      let start = index
      let (next, taken, error) = await loop.run { bound.value.writeReady(items, from: start) }
      if let error { throw error }
      index = next
      guard index < items.count else {
        // No later item would wait until this one is sent.
        if let taken { try await wait { $0.awaitSent($1, item: taken) }.get() }
        return
      }
      try await write(RequestBody(items[index]))
      index += 1
    }
  }

  /// Suspends until what `begin` starts on the loop is done. `begin` returns the number of its
  /// wait; nil if it was done at once.
  private func wait(
    _ begin:
      @escaping @Sendable (
        ItemChannel, Waiter<Result<Void, LongLinkError>>
      ) -> UInt64?
  ) async -> Result<Void, LongLinkError> {
    let wait = ChannelWait()
    return await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Result<Void, LongLinkError>>) in
        onLoop { channel in
          guard let id = begin(channel, waiter) else { return }
          if !wait.begin(id) { channel.cancelWrite(id) }
        }
      }
    } onCancel: {
      if let id = wait.cancel() {
        loop.execute { value.cancelWrite(id) }
      }
    }
  }
}

extension ItemChannel {
  /// Writes items up to the first that has to wait for others. Returns the index of that item, and
  /// the number of the last item if the connection took it without sending it yet.
  fileprivate func writeReady<Body: BodyEncodable & Sendable>(
    _ items: [Body], from start: Int
  ) -> (next: Int, taken: UInt64?, error: LongLinkError?) {
    var index = start
    while index < items.count, canWriteNow {
      switch write(RequestBody(items[index])) {
      case .done: index += 1
      case .taken: return (index + 1, itemsTaken, nil)
      case .failed(let error): return (index, nil, error)
      case .mustWait: return (index, nil, nil)
      }
    }
    return (index, nil, nil)
  }
}

/// Connects the cancellation of a task with the wait that it has on the loop.
final class ChannelWait: Sendable {
  private enum State {
    case new
    case waiting(UInt64)
    case cancelled
  }

  private let state = Mutex(State.new)

  /// Records the number of the wait; returns false if the task was cancelled already.
  func begin(_ id: UInt64) -> Bool {
    state.withLock { state in
      if case .cancelled = state { return false }
      state = .waiting(id)
      return true
    }
  }

  /// Records that the task was cancelled; returns the number of its wait, or nil if none has begun.
  func cancel() -> UInt64? {
    state.withLock { state in
      defer { state = .cancelled }
      if case .waiting(let id) = state { return id }
      return nil
    }
  }
}
