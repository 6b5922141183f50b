// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1

/// One `POST` and its answer: moves the bytes between a stream of the link's loop and the HTTP
/// client.
///
/// It begins to be connected when the head of the request is written. Until then every failure
/// leaves nothing sent. No bytes are asked for before, and the `POST` is never repeated.
final class ShortLinkPost: TransportCarrier, HTTPClientResponseDelegate {
  /// What belongs to the HTTP client's thread.
  private struct State {
    var task: HTTPClient.Task<Void>?
    var writer: HTTPClient.Body.StreamWriter?
    /// Ends the body.
    var bodyEnd: EventLoopPromise<Void>?
    /// What was taken from the bridge, and not written yet; and whether it is the last.
    var waiting: ArraySlice<UInt8> = []
    var endsBehind = false
    var isWriting = false
    var hasSentBody = false
    /// Lets the client read on.
    var room: EventLoopPromise<Void>?
    /// The bytes that came after the stream was closed.
    var bytesAfterClose: Int?
    var isOver = false
  }

  private let bridge: TransportBridge
  private let engine: HTTPEngine
  private let state: NIOLoopBoundBox<State>

  /// The most bytes that are written at once: half of what fills the HTTP client's channel. Once
  /// that is full, the client gives futures that it forgets when the request fails.
  private static let pieceBytes = 32_768
  /// How long an answer may take to end once the link has all that it wants, so that the connection
  /// can be used again.
  private static let grace = TimeAmount.milliseconds(250)
  /// The most bytes that are dropped for that.
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

  /// The HTTP client has written the head, and takes the body.
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

  /// Passes on what waits, a piece at a time, each when the one before it has gone.
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
      // A connection that closes fails its writes before the request is told why.
      self.engine.loop.scheduleTask(in: Self.grace) { self.state.value.bodyEnd.take()?.fail(error) }
    }
  }

  func didSendRequestPart(task: HTTPClient.Task<Void>, _ part: IOData) {
    // Not within the call: the channel notes after it that it has room.
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
    // Whatever came, the head of the request has gone.
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
