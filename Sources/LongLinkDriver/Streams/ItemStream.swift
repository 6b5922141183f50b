// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// The items of a response, read while they arrive.
///
/// The request is sent when you begin to iterate, which you can do once. If you leave the loop
/// before the end, the request is cancelled. The peer sends no more than a window of items ahead of
/// you.
public struct ItemStream: AsyncSequence, Sendable {
  /// The bytes of an item.
  public typealias Element = [UInt8]
  /// The type of every error that reading throws.
  public typealias Failure = LongLinkError

  private let start: @Sendable (StreamRequest) -> RequestHandle
  private let request: StreamRequest
  private let progress: StreamProgress

  init(
    _ request: StreamRequest, start: @escaping @Sendable (StreamRequest) -> RequestHandle
  ) {
    self.request = request
    self.start = start
    progress = StreamProgress()
  }

  /// The body of the response, once the items have ended; nil before, and after an error.
  public var response: [UInt8]? { progress.response }

  /// Sends the request. Call it once.
  public func makeAsyncIterator() -> Iterator {
    progress.begin()
    return Iterator(request.channel, StreamLease(start(request)), progress)
  }

  /// The position of the reader. When it is released before the end, the request is cancelled.
  public struct Iterator: AsyncIteratorProtocol {
    private var items: Items.Iterator
    private let lease: StreamLease
    private let progress: StreamProgress

    fileprivate init(_ channel: BoundChannel, _ lease: StreamLease, _ progress: StreamProgress) {
      items = Items(channel).makeAsyncIterator()
      self.lease = lease
      self.progress = progress
    }

    /// Returns the next item; nil once the peer has responded with code 200.
    ///
    /// Throws, after the items that arrived before it, `rejected` with the peer's code and body,
    /// or the reason why there was no response. The error's `itemsReceived` is the number of items
    /// that you have read, and its `delivery` says whether the request may have run. Later calls
    /// throw too.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(LongLinkError) -> [UInt8]? {
      if let item = items.takeReady() { return item }
      do throws(LongLinkError) {
        let item = try await items.next()
        if item == nil {
          lease.end()
          if let response = items.response { progress.end(with: response) }
        }
        return item
      } catch {
        lease.cancel()
        throw await items.settled(error)
      }
    }

    /// Cancels the request, because the item that was returned last does not decode.
    func cancel(undecodable reason: BodyError) async -> LongLinkError {
      lease.cancel()
      return await items.undecodable(reason)
    }

    /// Returns the next item; nil once the peer has responded with code 200.
    public mutating func next() async throws(LongLinkError) -> [UInt8]? {
      try await next(isolation: nil)
    }
  }
}

/// A request that carries items and is about to be sent. The methods of ``RequestSender`` make it.
public struct StreamRequest: Sendable {
  let type: MessageType
  let body: RequestBody
  let options: StreamOptions
  let channel: BoundChannel
  /// The number of the channel, for code that is not on its loop.
  let number: UInt64

  init(
    _ type: MessageType, _ body: RequestBody, _ shape: StreamShape, _ options: StreamOptions,
    on loop: EventLoop
  ) {
    if let window = options.window {
      precondition(
        (Wire.leastCredit...Wire.mostCredit).contains(window),
        "a window has 1,024 to 2,147,483,647 bytes, not \(window)")
    }
    self.type = type
    self.body = body
    self.options = options
    let channel = ItemChannel(type, shape, options, on: loop)
    number = channel.number
    self.channel = BoundChannel(channel)
  }

  /// Sends the request.
  @usableFromInline package func start(on port: RequestPort) -> RequestHandle {
    RequestHandle(port, self)
  }
}

/// Cancels a request when it is released, unless the request has ended.
final class StreamLease: Sendable {
  private let handle: RequestHandle
  private let hasEnded = Atomic(false)

  init(_ handle: RequestHandle) {
    self.handle = handle
  }

  deinit { cancel() }

  func end() { hasEnded.store(true, ordering: .relaxed) }

  func cancel() {
    if !hasEnded.exchange(true, ordering: .relaxed) { handle.cancel() }
  }
}

/// What the copies of one sequence share.
private final class StreamProgress: Sendable {
  private struct State {
    var hasBegun = false
    var response: [UInt8]?
  }

  private let state = Mutex(State())

  var response: [UInt8]? { state.withLock { $0.response } }

  func begin() {
    let isFirst = state.withLock { state in
      defer { state.hasBegun = true }
      return !state.hasBegun
    }
    precondition(isFirst, "a stream can be iterated once")
  }

  func end(with response: [UInt8]) { state.withLock { $0.response = response } }
}
