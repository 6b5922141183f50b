// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// The items of a response, as bytes or as messages, read while they arrive.
///
/// The request is sent when you begin to iterate, which you can do once: a second time traps. If
/// you leave the loop before the end, the request is cancelled. The peer sends at most a window of
/// items ahead of your reading. An item that does not decode cancels the request, too: iterating
/// throws `decodingFailed`, delivery `answered`, and the error's `itemsReceived` is the number of
/// items before it.
public struct ItemStream<Item: BodyDecodable & Sendable>: AsyncSequence, Sendable {
  private let request: StreamRequest
  private let progress = StreamProgress()

  init(_ request: StreamRequest) {
    self.request = request
  }

  /// The body of the response, once the items have ended; nil before that, and after an error. The
  /// responses of methods whose responses have items are empty.
  public var response: [UInt8]? { progress.response }

  /// Sends the request and returns its items. Call it once; a second call traps. When the items are
  /// released before the end, the request is cancelled.
  public func makeAsyncIterator() -> Items<Item> {
    progress.begin()
    return Items(request.channel, StreamLease(RequestHandle(request), progress))
  }
}

/// A request that carries items and is about to be sent.
struct StreamRequest: Sendable {
  /// The side of a connection that sends the request.
  let port: RequestPort
  let type: MessageType
  let method: MethodName
  let body: RequestBody
  let options: StreamOptions
  let channel: BoundChannel
  /// The number of the channel, which can be read away from its loop.
  let number: UInt64

  init(
    _ type: MessageType, _ body: RequestBody, _ shape: StreamShape, _ options: StreamOptions,
    of method: MethodName = .none, on port: RequestPort, isResuming: Bool = false
  ) {
    if let window = options.window {
      precondition(
        (Wire.leastCredit...Wire.mostCredit).contains(window),
        "a window has 1,024 to 2,147,483,647 bytes, not \(window)")
    }
    self.port = port
    self.type = type
    self.method = method
    self.body = body
    self.options = options
    let channel = ItemChannel(
      type, shape, options, of: method, isResuming: isResuming, on: port.loop)
    number = channel.number
    self.channel = BoundChannel(channel)
  }
}

/// Cancels a request when it is released, unless the request has ended.
final class StreamLease: Sendable {
  private let handle: RequestHandle
  private let progress: StreamProgress?
  private let hasEnded = Atomic(false)

  init(_ handle: RequestHandle, _ progress: StreamProgress? = nil) {
    self.handle = handle
    self.progress = progress
  }

  deinit { cancel() }

  func end() { hasEnded.store(true, ordering: .relaxed) }

  /// Notes that the request has ended with a response.
  func end(with response: [UInt8]) {
    end()
    progress?.end(with: response)
  }

  func cancel() {
    if !hasEnded.exchange(true, ordering: .relaxed) { handle.cancel() }
  }
}

/// The state that all copies of one sequence share.
final class StreamProgress: Sendable {
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
