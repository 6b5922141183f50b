// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The items of a stream that is opened again when it is cut off.
///
/// The request is sent when you ask for the first item. All copies take from the same items. One
/// task at a time may read; a second one traps. When the last copy is released before the end, the
/// request is cancelled.
/// `RequestSender.stream(_:options:resuming:retryingWhen:)` says when the stream is opened again.
public struct ResumingStream<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
  typealias Take =
    nonisolated(nonsending) @Sendable () async throws(LongLinkError) -> StreamEvent<Element>?

  private let take: Take

  init(_ take: @escaping Take) {
    self.take = take
  }

  /// A sequence of the same items, with an event between them whenever the stream was opened again.
  public var events: ResumingStream<StreamEvent<Element>> {
    ResumingStream<StreamEvent<Element>> { [take] () async throws(LongLinkError) in
      guard let event = try await take() else { return nil }
      return .item(event)
    }
  }

  /// Returns the sequence itself.
  public func makeAsyncIterator() -> ResumingStream { self }

  /// Returns the next item; nil once the peer has responded with code 200.
  ///
  /// Throws the error that has ended the stream for good; later calls throw it again. Its
  /// `itemsReceived` and `delivery` cover the whole stream, however often it was opened. If the
  /// task is cancelled, it throws `cancelled`, also during a delay; but items that have arrived
  /// come first, as with `AsyncThrowingStream`.
  public mutating func next(
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws(LongLinkError) -> Element? {
    while let event = try await take() {
      if case .item(let item) = event { return item }
    }
    return nil
  }

  /// Returns the next item; nil once the peer has responded with code 200. Throws as
  /// `next(isolation:)` does.
  public mutating func next() async throws(LongLinkError) -> Element? {
    try await next(isolation: nil)
  }
}

/// An item of a stream that is opened again when it is cut off, or an event of the stream.
public enum StreamEvent<Item: Sendable>: Sendable {
  /// The next item.
  case item(Item)
  /// The stream was opened again. This event comes before the first item of the new stream, or
  /// before the end of the sequence if the new stream ended without items.
  ///
  /// `after` is the first error that has cut the stream off since the last item, or a later one if
  /// that is `rejected` with 410; nil if the client has only moved to another connection.
  /// `attempts` is how often the stream was opened again since the last item, at least 1. The items
  /// continue after the last one, unless the error is `rejected` with 410: then the stream was
  /// opened as for the first time, and items may be missing.
  case resumed(after: LongLinkError?, attempts: Int)
}

// MARK: - Bytes

extension RequestSender {
  /// Returns the items of a response as a sequence that opens the stream again when it is cut off.
  ///
  ///     for try await item in client.stream(7, resuming: { last in query(after: last) }) {
  ///       show(item)
  ///     }
  ///
  /// `resuming` makes the body of each request, from the last item that was taken from the
  /// sequence; nil at first. If the server sends the items that follow it, none is lost, and none
  /// comes twice. Both functions run in the task that reads.
  ///
  /// The stream is opened again when its connection is lost, when the server is draining or
  /// overloaded (503 or 429, from the framework or the handler), when the server ends the stream in
  /// the handler's place (the error's delivery is `sent`), and after `itemTimeout`, which counts
  /// only while a connection carries the stream. When the client moves to another connection, the
  /// stream is read on the old one until the new one is ready, and then opened there at once.
  ///
  /// In all other cases it is opened after a delay from the windows of ``ReconnectPolicy``, as for
  /// reconnects: by default 0 to 1 s at first, and up to 36 s later. If the error's `retryAfter` is
  /// longer, the delay is that, but at most `longestHint`, plus up to half of the next window. The
  /// windows begin anew after a stream from which an item was taken, or that a connection carried
  /// for `cap` (30 s by default).
  ///
  /// Any other error ends the sequence, and so does the response. `retryingWhen` is asked after
  /// such an error, for instance of the handler, a refusal or an item that does not decode; if it
  /// returns true, the stream is opened again. Default: it returns false. If it returns true for
  /// `rejected` with 410, by which the server says that it no longer has the items after the last
  /// one, `resuming` gets nil again. It is not asked after `cancelled` and `closed`, or when
  /// `timeout`, which limits the whole sequence, has passed. With `waitsForConnection` false, only
  /// the first request fails without a connection.
  public func stream(
    _ type: MessageType, options: StreamOptions = StreamOptions(),
    resuming: @escaping @Sendable ([UInt8]?) -> some BodyEncodable & Sendable,
    retryingWhen: @escaping @Sendable (LongLinkError) -> Bool = { _ in false }
  ) -> ResumingStream<[UInt8]> {
    resumingStream(type, .none, options, retryingWhen) { RequestBody(resuming($0)) }
  }
}

// MARK: - Messages

extension RequestSender {
  /// Returns the decoded items of a response as a sequence that opens the stream again when it is
  /// cut off.
  ///
  ///     let notes = client.stream(watch, resuming: { last in From(last?.number ?? 0) })
  ///
  /// `resuming` makes the message of each request, from the last item that was taken; nil at first.
  /// The method's options apply where `options` has none. When the stream is opened again, what
  /// `retryingWhen` decides and what is thrown is as for the form that takes a message type.
  public func stream<Request: BodyEncodable, Item: BodyDecodable>(
    _ method: RPCMethod<Request, Streamed<Item>>, options: StreamOptions = StreamOptions(),
    resuming: @escaping @Sendable (Item?) -> Request,
    retryingWhen: @escaping @Sendable (LongLinkError) -> Bool = { _ in false }
  ) -> ResumingStream<Item> {
    resumingStream(
      method.type, method.fullName, options.over(method.options), retryingWhen
    ) {
      RequestBody(resuming($0))
    }
  }

  private func resumingStream<Item: BodyDecodable>(
    _ type: MessageType, _ method: MethodName, _ options: StreamOptions,
    _ retries: @escaping @Sendable (LongLinkError) -> Bool,
    _ body: @escaping @Sendable (Item?) -> RequestBody
  ) -> ResumingStream<Item> {
    let reader = ResumingReader(type, of: method, options, on: port, retries, body)
    return ResumingStream { () async throws(LongLinkError) in try await reader.next() }
  }
}
