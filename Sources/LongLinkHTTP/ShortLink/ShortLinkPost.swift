// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1

/// One `POST` and its answer: moves bytes between a short link on its loop and the HTTP client.
///
/// The link is connected once the head of the request is written. A failure before that proves that
/// nothing was sent. The body is requested only afterwards, and the `POST` is never repeated.
final class ShortLinkPost: TransportCarrier, HTTPClientResponseDelegate {
  /// The state that belongs to the HTTP client's thread.
  private struct State {
    var task: HTTPClient.Task<Void>?
    var writer: HTTPClient.Body.StreamWriter?
    /// Ends the request's body when it is completed.
    var bodyEnd: EventLoopPromise<Void>?
    /// The bytes that were taken from the bridge and not written yet, and whether they are the
    /// last.
    var waiting: ArraySlice<UInt8> = []
    var endsBehind = false
    var isWriting = false
    var hasSentBody = false
    /// When completed, lets the client read more of the answer.
    var room: EventLoopPromise<Void>?
    /// The number of bytes that came after the link was closed; nil before that.
    var bytesAfterClose: Int?
    var isOver = false
  }

  private let bridge: TransportBridge
  private let engine: HTTPEngine
  private let state: NIOLoopBoundBox<State>

  /// The most bytes of one write: half of what fills the HTTP client's channel. When the channel is
  /// full, the client returns futures that it never completes if the request fails.
  private static let pieceBytes = 32_768
  /// How long an answer may take to end once the link is closed, so that the connection can be used
  /// again.
  private static let grace = TimeAmount.milliseconds(250)
  /// The most bytes of that rest of an answer; if there are more, the connection is closed.
  private static let mostDropped = 65_536

  init(_ bridge: TransportBridge, engine: HTTPEngine) {
    self.bridge = bridge
    self.engine = engine
    state = .makeBoxSendingValue(State(), eventLoop: engine.loop)
  }

  func start(_ request: HTTPClient.Request) {
    engine.loop.execute {
      guard !self.bridge.isClosed else { return }
      self.state.value.task = self.engine.client.execute(
        request: request, delegate: self, eventLoop: .delegate(on: self.engine.loop))
    }
  }

  // MARK: The request

  /// Called when the HTTP client has written the head and takes the body.
  func bodyIsWanted(_ writer: HTTPClient.Body.StreamWriter) -> EventLoopFuture<Void> {
    engine.loop.flatSubmit {
      let end = self.engine.loop.makePromise(of: Void.self)
      guard !self.state.value.isOver else {
        end.fail(HTTPClientError.cancelled)
        return end.futureResult
      }
      self.state.value.bodyEnd = end
      self.state.value.writer = writer
      self.bridge.connected()
      self.writeBody()
      return end.futureResult
    }
  }

  func outputWaits() {
    engine.loop.execute { self.writeBody() }
  }

  /// Writes the bytes that wait, one piece after the other.
  private func writeBody() {
    guard let writer = state.value.writer, !state.value.isWriting else { return }
    if state.value.waiting.isEmpty, !state.value.endsBehind {
      let (bytes, hasEnded) = bridge.takeOutput()
      state.value.waiting = bytes[...]
      state.value.endsBehind = hasEnded
    }
    let piece = ByteBuffer(bytes: state.value.waiting.prefix(Self.pieceBytes))
    guard piece.readableBytes > 0 else {
      if state.value.endsBehind { endBody() }
      return
    }
    state.value.waiting.removeFirst(piece.readableBytes)
    state.value.isWriting = true
    writer.write(.byteBuffer(piece)).hop(to: engine.loop).whenFailure { error in
      self.state.value.writer = nil
      // A closing connection fails its writes before the request gets the reason.
      self.engine.loop.scheduleTask(in: Self.grace) { self.state.value.bodyEnd.take()?.fail(error) }
    }
  }

  func didSendRequestPart(task: HTTPClient.Task<Void>, _ part: IOData) {
    // Not within the call: only afterwards does the channel note that it has room.
    engine.loop.execute {
      self.state.value.isWriting = false
      self.writeBody()
    }
  }

  private func endBody() {
    state.value.writer = nil
    guard let end = state.value.bodyEnd.take() else { return }
    state.value.hasSentBody = true
    end.succeed()
  }

  // MARK: The answer

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    bridge.connected()
  }

  func didReceiveHead(
    task: HTTPClient.Task<Void>, _ head: HTTPResponseHead
  ) -> EventLoopFuture<Void> {
    // The head of the request must have left, whatever the answer is.
    bridge.connected()
    guard let objection = ShortLinkFailure.objection(to: head) else {
      return task.eventLoop.makeSucceededVoidFuture()
    }
    state.value.writer = nil
    bridge.fail(
      SocketError(operation: "POST", errno: ShortLinkFailure.badAnswer), text: objection,
      retryAfter: head.headers.retryAfter?.clampedNanoseconds)
    return task.eventLoop.makeFailedFuture(HTTPClientError.cancelled)
  }

  func didReceiveBodyPart(
    task: HTTPClient.Task<Void>, _ buffer: ByteBuffer
  ) -> EventLoopFuture<Void> {
    if let dropped = state.value.bytesAfterClose {
      state.value.bytesAfterClose = dropped + buffer.readableBytes
      if dropped + buffer.readableBytes > Self.mostDropped { cancel() }
      return task.eventLoop.makeSucceededVoidFuture()
    }
    let hasRoom = unsafe buffer.withUnsafeReadableBytes { unsafe bridge.deliver($0) }
    guard !hasRoom else { return task.eventLoop.makeSucceededVoidFuture() }
    let room = engine.loop.makePromise(of: Void.self)
    state.value.room = room
    return room.futureResult
  }

  func inputHasRoom() {
    engine.loop.execute { self.state.value.room.take()?.succeed() }
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) {
    bridge.endInput()
    finish()
  }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
    if let failure = SecurityCause.failure(of: error) {
      fail(ShortLinkFailure.badAnswer, failure.detail, failure)
    } else {
      let (errno, text) = ShortLinkFailure.explain(error)
      fail(errno, text)
    }
    finish()
  }

  private func fail(_ errno: CInt, _ text: String, _ security: SecurityFailure? = nil) {
    bridge.fail(SocketError(operation: "POST", errno: errno), text: text, security: security)
  }

  // MARK: The end

  private func finish() {
    guard !state.value.isOver else { return }
    state.value.isOver = true
    state.value.task = nil
    state.value.writer = nil
    state.value.waiting = []
    state.value.bodyEnd.take()?.fail(HTTPClientError.cancelled)
    state.value.room.take()?.succeed()
  }

  private func cancel() {
    guard !state.value.isOver, let task = state.value.task else { return }
    task.cancel()
  }

  func transportClosed(isReset: Bool) {
    engine.loop.execute {
      guard !self.state.value.isOver else { return }
      self.state.value.bytesAfterClose = 0
      self.state.value.room.take()?.succeed()
      guard !isReset, self.state.value.hasSentBody else { return self.cancel() }
      self.engine.loop.scheduleTask(in: Self.grace) { self.cancel() }
    }
  }
}
#endif
