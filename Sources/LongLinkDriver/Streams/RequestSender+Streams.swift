// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

extension RequestSender {
  /// Returns the items of a response as a sequence, which sends the request when it is iterated.
  ///
  ///     for try await item in client.stream(7, query) { show(item) }
  ///
  /// Without a connection the request waits, as the options say. Iterating throws `unsupported`,
  /// delivery `notSent`, if the peer or the dialect has no streams, and `overloaded` if the windows
  /// of all streams on the connection would exceed its limit.
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions()
  ) -> ItemStream {
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: loop)
    return ItemStream(request) { start($0) }
  }

  /// Sends a request with items of yours, and returns the body of the response.
  ///
  /// Your items end when `work` returns. If it throws, the request is cancelled and the error is
  /// thrown on. If the peer responds before the items have ended, `write` throws `streamEnded`; if
  /// `work` throws that error on, its response is returned.
  public func sendItems(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(type, RequestBody(body), .requestItems, options, on: loop)
    return try await run(request) { _, writer in try await work(writer) }
  }

  /// Sends a request with items in both directions, and returns the body of the response.
  ///
  /// When `work` returns, your items end, and the peer's that you have not read are dropped. If it
  /// throws, the request is cancelled and the error is thrown on. Read and write in tasks of their
  /// own if the peer does not read all before it writes: a side that only writes waits for one that
  /// only writes.
  public func exchange(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(),
    _ work: (Items, ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let request = StreamRequest(
      type, RequestBody(body), [.requestItems, .responseItems], options, on: loop)
    return try await run(request, work)
  }

  private func run(
    _ request: StreamRequest, _ work: (Items, ItemWriter) async throws -> Void
  ) async throws -> [UInt8] {
    let channel = request.channel
    let lease = StreamLease(start(request))
    do {
      try await work(Items(channel), ItemWriter(channel))
    } catch let error as LongLinkError where error.isOf(stream: request.number) {
      if error.code == .streamEnded,
        let outcome = await channel.loop.run({ channel.value.outcomeNow })
      {
        // The response says what happened to the items.
        lease.end()
        return try outcome.get()
      }
      lease.cancel()
      throw await channel.settled(error)
    }
    let outcome: Outcome = await withTaskCancellationHandler {
      await suspend { (waiter: Waiter<Outcome>) in
        channel.onLoop { channel in
          channel.endItems()
          channel.discardItems()
          channel.whenEnded { waiter($0) }
        }
      }
    } onCancel: {
      lease.cancel()
    }
    lease.end()
    return try outcome.get()
  }
}

// MARK: - Without async

extension RequestSender {
  /// Sends a request and calls `onItem` with each item of its response, one after the other, on the
  /// given executor, and then `completion` once.
  ///
  /// The next item follows when `onItem` has returned. Cancel the handle to end the stream.
  @discardableResult
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(), on executor: CallbackExecutor,
    onItem: @escaping @Sendable ([UInt8]) -> Void,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    stream(
      type, body, options: options, on: executor,
      onItem: { item, next in
        onItem(item)
        next()
      }, completion: completion)
  }

  /// The same for work that goes on after `onItem` has returned: the next item follows when it
  /// calls its second argument, once, on any thread.
  @discardableResult
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(), on executor: CallbackExecutor,
    onItem: @escaping @Sendable ([UInt8], _ next: @escaping @Sendable () -> Void) -> Void,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: loop)
    let handle = start(request)
    ItemCallbacks(
      channel: request.channel, handle: handle, executor: executor, onItem: onItem,
      completion: completion
    ).begin()
    return handle
  }

  /// Sends a request, calls `onItem` with each item of its response, and returns the response's
  /// body. Blocks the calling thread, on which `onItem` is called; if that throws, the request is
  /// cancelled and the error is thrown on.
  ///
  /// Call it only on plain threads; it traps in a Swift task and on the loop.
  public func streamBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(), onItem: ([UInt8]) throws -> Void
  ) throws -> [UInt8] {
    BlockingSlot<ItemChannel.Read>.preconditionMayBlock(on: loop)
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: loop)
    let lease = StreamLease(start(request))
    while true {
      let slot = BlockingSlot<ItemChannel.Read>()
      request.channel.onLoop { channel in
        if let read = channel.read(upTo: 64) { return slot.fill(read) }
        _ = channel.wait { slot.fill($0) }
      }
      switch slot.wait() {
      case .items(let items):
        for item in items { try onItem(item) }
      case .ended(.success(let response)):
        lease.end()
        return response
      case .ended(.failure(let error)):
        lease.cancel()
        let settled = BlockingSlot<LongLinkError>()
        request.channel.onLoop { channel in channel.settle(error) { settled.fill($0) } }
        throw settled.wait()
      }
    }
  }
}

/// A stream whose items go to a function.
private struct ItemCallbacks: Sendable {
  let channel: BoundChannel
  let handle: RequestHandle
  let executor: CallbackExecutor
  let onItem: @Sendable ([UInt8], @escaping @Sendable () -> Void) -> Void
  let completion: @Sendable (Outcome) -> Void

  /// Asks for the next item, in a job of the loop: never within the call that made the request.
  func begin() {
    channel.loop.execute { next(of: channel.value) }
  }

  private func next(of channel: ItemChannel) {
    if let read = channel.read(upTo: 1) { return handle(read) }
    _ = channel.wait { handle($0) }
  }

  private func handle(_ read: ItemChannel.Read) {
    switch read {
    case .items(let items):
      executor.perform { onItem(items[0], begin) }
    case .ended(.success(let response)):
      executor.perform { completion(.success(response)) }
    case .ended(.failure(let error)):
      // A read that timed out ends the request; one that has ended is not affected.
      handle.cancel()
      channel.value.settle(error) { error in executor.perform { completion(.failure(error)) } }
    }
  }
}
