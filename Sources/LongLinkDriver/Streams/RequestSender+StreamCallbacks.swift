// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

// Streams without async: with completion handlers, and on plain threads.

// MARK: - Bytes

extension RequestSender {
  /// Sends a request and calls `onItem` with each item of its response, one after the other, on the
  /// given executor, and then `completion` once, with the response's body or the error.
  ///
  /// The next item follows when `onItem` has returned. To end the stream, cancel the handle:
  /// `completion` then gets `cancelled`.
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

  /// Sends a request and calls `onItem` with each item of its response, on the given executor; the
  /// next item follows only when you ask for it. Then `completion` is called once, with the
  /// response's body or the error.
  ///
  /// Use it for work that goes on after `onItem` has returned. To ask for the next item, call
  /// `next`, once for each item, on any thread. `completion`, too, waits for that call, unless you
  /// cancel the handle, or the request fails without a response while no item waits.
  @discardableResult
  public func stream(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(), on executor: CallbackExecutor,
    onItem: @escaping @Sendable ([UInt8], _ next: @escaping @Sendable () -> Void) -> Void,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: port)
    return start(request, on: executor, onItem, completion)
  }

  /// Sends a request, calls `onItem` with each item of its response, and returns the response's
  /// body. It blocks the calling thread, on which `onItem` is called.
  ///
  /// If `onItem` throws, the request is cancelled and the error is thrown on. Throws a
  /// `LongLinkError` if the request fails. Call it only on plain threads; it traps in a Swift task
  /// and on the loop.
  public func streamBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: StreamOptions = StreamOptions(), onItem: ([UInt8]) throws -> Void
  ) throws -> [UInt8] {
    let request = StreamRequest(type, RequestBody(body), .responseItems, options, on: port)
    return try readBlocking(request, onItem)
  }
}

// MARK: - Messages

extension RequestSender {
  /// Sends a request of a method and calls `onItem` with each decoded item of its response, one
  /// after the other, on the given executor, and then `completion` once.
  ///
  /// The next item follows when `onItem` has returned. An item that does not decode cancels the
  /// request, and `completion` gets `decodingFailed`. To end the stream, cancel the handle:
  /// `completion` then gets `cancelled`. The method's options apply where `options` has none.
  @discardableResult
  public func stream<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, _ request: Request,
    options: StreamOptions = StreamOptions(), on executor: CallbackExecutor,
    onItem: @escaping @Sendable (Item) -> Void,
    completion: @escaping @Sendable (Result<Void, LongLinkError>) -> Void
  ) -> RequestHandle {
    stream(
      method, request, options: options, on: executor,
      onItem: { item, next in
        onItem(item)
        next()
      }, completion: completion)
  }

  /// Sends a request of a method and calls `onItem` with each decoded item of its response, on the
  /// given executor; the next item follows only when you ask for it. Then `completion` is called
  /// once.
  ///
  /// Use it for work that goes on after `onItem` has returned. To ask for the next item, call
  /// `next`, once for each item, on any thread. `completion`, too, waits for that call, unless you
  /// cancel the handle, or the request fails without a response while no item waits. An item that
  /// does not decode cancels the request, and `completion` gets `decodingFailed`. The method's
  /// options apply where `options` has none.
  @discardableResult
  public func stream<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, _ request: Request,
    options: StreamOptions = StreamOptions(), on executor: CallbackExecutor,
    onItem: @escaping @Sendable (Item, _ next: @escaping @Sendable () -> Void) -> Void,
    completion: @escaping @Sendable (Result<Void, LongLinkError>) -> Void
  ) -> RequestHandle {
    let request = StreamRequest(
      method.type, RequestBody(request), .responseItems, options.over(method.options),
      of: method.fullName, on: port)
    return start(request, on: executor, onItem) { completion($0.map { _ in }) }
  }

  /// Sends a request of a method, calls `onItem` with each decoded item of its response, and
  /// returns at the end of the items. It blocks the calling thread, on which `onItem` is called.
  ///
  /// If `onItem` throws, the request is cancelled and the error is thrown on. An item that does not
  /// decode cancels the request and throws `decodingFailed`. Throws a `LongLinkError` if the
  /// request fails. Call it only on plain threads; it traps in a Swift task and on the loop.
  public func streamBlocking<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, _ request: Request,
    options: StreamOptions = StreamOptions(), onItem: (Item) throws -> Void
  ) throws {
    let request = StreamRequest(
      method.type, RequestBody(request), .responseItems, options.over(method.options),
      of: method.fullName, on: port)
    _ = try readBlocking(request, onItem)
  }
}

// MARK: - Both

extension RequestSender {
  /// Sends a request whose items are passed to a function.
  private func start<Item: BodyDecodable & Sendable>(
    _ request: StreamRequest, on executor: CallbackExecutor,
    _ onItem: @escaping @Sendable (Item, _ next: @escaping @Sendable () -> Void) -> Void,
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> RequestHandle {
    let handle = RequestHandle(request)
    ItemCallbacks(
      channel: request.channel, handle: handle, executor: executor, onItem: onItem,
      completion: completion
    ).begin()
    return handle
  }

  /// Sends a request whose items are read by this plain thread.
  private func readBlocking<Item: BodyDecodable>(
    _ request: StreamRequest, _ onItem: (Item) throws -> Void
  ) throws -> [UInt8] {
    BlockingSlot<ItemChannel.Read>.preconditionMayBlock(on: request.port.loop)
    let lease = StreamLease(RequestHandle(request))
    while true {
      let read: ItemChannel.Read = request.channel.blocking { channel, give in
        if let read = channel.read(upTo: 64) { return give(read) }
        _ = channel.wait(give)
      }
      switch read {
      case .items(let items):
        for (index, bytes) in items.enumerated() {
          let item: Item
          do throws(BodyError) {
            item = try Item(copying: bytes)
          } catch {
            throw request.channel.blocking { channel, give in
              give(channel.undecodable(error, UInt64(items.count - index)))
            }
          }
          try onItem(item)
        }
      case .ended(.success(let response)):
        lease.end()
        return response
      case .ended(.failure(let error)):
        lease.cancel()
        throw request.channel.blocking { channel, give in channel.settle(error, give) }
      }
    }
  }
}

extension BoundChannel {
  /// Blocks a plain thread until `work`, on the loop, has called `give` with a value.
  fileprivate func blocking<Value: Sendable>(
    _ work: @escaping @Sendable (ItemChannel, _ give: @escaping (Value) -> Void) -> Void
  ) -> Value {
    let slot = BlockingSlot<Value>()
    onLoop { channel in work(channel) { slot.fill($0) } }
    return slot.wait()
  }
}

/// Passes the items of a stream to a function.
private struct ItemCallbacks<Item: BodyDecodable & Sendable>: Sendable {
  let channel: BoundChannel
  let handle: RequestHandle
  let executor: CallbackExecutor
  let onItem: @Sendable (Item, @escaping @Sendable () -> Void) -> Void
  let completion: @Sendable (Outcome) -> Void
  private let end = End()

  /// Makes sure that `completion` is called only once.
  private final class End: Sendable {
    private let hasCome = Atomic(false)

    func come() -> Bool { !hasCome.exchange(true, ordering: .relaxed) }
    var isPast: Bool { hasCome.load(ordering: .relaxed) }
  }

  init(
    channel: BoundChannel, handle: RequestHandle, executor: CallbackExecutor,
    onItem: @escaping @Sendable (Item, @escaping @Sendable () -> Void) -> Void,
    completion: @escaping @Sendable (Outcome) -> Void
  ) {
    self.channel = channel
    self.handle = handle
    self.executor = executor
    self.onItem = onItem
    self.completion = completion
  }

  /// Asks for the first item, in a job of the loop: never within the call that made the request.
  func begin() {
    channel.loop.execute {
      let channel = channel.value
      channel.whenEnded { outcome in
        // After the end, the application may never ask for the next item, so the end is reported
        // here.
        guard case .failure(let error) = outcome, error.code != .rejected,
          error.code == .cancelled || !channel.hasWaiting, end.come()
        else { return }
        executor.perform { completion(outcome) }
      }
      next(of: channel)
    }
  }

  private func goOn() {
    channel.loop.execute { next(of: channel.value) }
  }

  private func next(of channel: ItemChannel) {
    guard !end.isPast else { return }
    if let read = channel.read(upTo: 1) { return handle(read) }
    _ = channel.wait { handle($0) }
  }

  private func handle(_ read: ItemChannel.Read) {
    switch read {
    case .items(let items): executor.perform { handle(items[0]) }
    case .ended(.success(let response)):
      if end.come() { executor.perform { completion(.success(response)) } }
    case .ended(.failure(let error)): fail(error)
    }
  }

  /// Decodes an item and passes it on. Called on the executor.
  private func handle(_ bytes: [UInt8]) {
    let item: Item
    do throws(BodyError) {
      item = try Item(copying: bytes)
    } catch {
      return channel.loop.execute { fail(channel.value.undecodable(error, 1)) }
    }
    onItem(item, goOn)
  }

  /// Ends the request, unless it has ended, because an item has failed to arrive or to decode.
  private func fail(_ error: LongLinkError) {
    guard end.come() else { return }
    handle.cancel()
    channel.value.settle(error) { error in executor.perform { completion(.failure(error)) } }
  }
}
