// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import NIOCore
internal import NIOHTTP1

/// One connection of the port. It takes one request after the other, and reads the next one when
/// the client has the last answer.
final class PortHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private enum Phase {
    case awaitingHead
    case awaitingEnd(HTTPRequestHead, body: Int)
    /// The request is whole, and its answer is made or written.
    case answering(HTTPRequestHead)
    /// The last answer was written, and what still comes is dropped.
    case discarding
    case closed
  }

  private let core: PortCore
  private var phase = Phase.awaitingHead
  private var context: ChannelHandlerContext?
  /// The bytes that have arrived since the last request's head, before any parsing.
  private var headBytes = 0
  /// Whether the connection has no place, so that it gets 503.
  private var isRefused = false
  /// The rest of the answer; nil if there is none.
  private var rest: (() -> ByteBuffer?)?
  private var closesBehindAnswer = false
  /// The bytes that waited to be written when the client was last seen to take some.
  private var unwritten = 0
  private var timer: Scheduled<Void>?
  /// Since when no request is whole.
  private(set) var idleSince = NIODeadline.now()

  private init(_ core: PortCore) {
    self.core = core
  }

  /// Adds the handlers of a new connection.
  static func set(up channel: any Channel, _ core: PortCore) throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = PortLimits.head
    limits.maxHeaderListSize = PortLimits.head
    let handler = PortHandler(core)
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(ByteCounter(handler))
    try pipeline.configureHTTPServerPipeline(
      withOutboundHeaderValidation: true, withEncoderConfiguration: .init(),
      withDecoderLimitConfiguration: limits)
    try pipeline.addHandler(handler)
  }

  /// Whether no request of the connection is whole, so that it can make room for another one.
  var isIdle: Bool {
    switch phase {
    case .awaitingHead, .awaitingEnd, .discarding: true
    case .answering, .closed: false
    }
  }

  func channelActive(context: ChannelHandlerContext) {
    self.context = context
    let (entry, evicted) = core.places.enter(self)
    evicted?.close()
    switch entry {
    case .place: wait(PortLimits.requestTime)
    case .refusal:
      isRefused = true
      wait(PortLimits.refusalTime)
    case nil: return close()
    }
    context.read()
  }

  func channelInactive(context: ChannelHandlerContext) {
    core.places.leave(self)
    timer?.cancel()
    (timer, rest, self.context) = (nil, nil, nil)
    phase = .closed
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { close() }

  func close() {
    phase = .closed
    context?.close(promise: nil)
  }

  // MARK: The request

  /// Notes bytes that have arrived, whatever they are.
  fileprivate func bytesCame(_ count: Int) {
    guard case .awaitingHead = phase else { return }
    headBytes += count
    if headBytes > PortLimits.head { close() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), phase) {
    case (.head(let head), .awaitingHead): begin(head)
    case (.body(let bytes), .awaitingEnd(let head, let count)):
      phase = .awaitingEnd(head, body: count + bytes.readableBytes)
      if count + bytes.readableBytes > PortLimits.body { refuse(head) }
    case (.end, .awaitingEnd(let head, _)): requestEnded(head)
    case (.end, .discarding): close()
    default: break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    switch phase {
    case .awaitingHead, .awaitingEnd, .discarding: context.read()
    case .answering, .closed: break
    }
    context.fireChannelReadComplete()
  }

  private func begin(_ head: HTTPRequestHead) {
    headBytes = 0
    phase = .awaitingEnd(head, body: 0)
    if let length = head.headers.first(name: "Content-Length").flatMap(Int.init),
      length > PortLimits.body
    {
      return refuse(head)
    }
    guard head.version == .http1_1,
      head.headers["Expect"].contains(where: { $0.lowercased() == "100-continue" })
    else { return }
    let goOn = HTTPResponseHead(version: head.version, status: .continue)
    context?.writeAndFlush(wrapOutboundOut(.head(goOn)), promise: nil)
  }

  /// Refuses a request whose body is too large; it has not ended.
  private func refuse(_ head: HTTPRequestHead) {
    phase = .discarding
    let form = PortRequest(head, from: nil, to: nil).form
    write(.problem(.payloadTooLarge, "a body has at most 1,024 bytes", as: form), head)
  }

  private func requestEnded(_ head: HTTPRequestHead) {
    phase = .answering(head)
    timer?.cancel()
    timer = nil
    if isRefused {
      var answer = PortAnswer.problem(
        .serviceUnavailable, "all connections of the port are in use", as: .text)
      answer.headers.append(("Retry-After", "1"))
      return write(answer, head)
    }
    let address = context?.channel.remoteAddress.flatMap(OperationsPort.address)
    let local = context?.channel.localAddress.flatMap(OperationsPort.address)
    core.answer(PortRequest(head, from: address, to: local)) { self.write($0, head) }
  }

  // MARK: The answer

  private func write(_ answer: PortAnswer, _ request: HTTPRequestHead) {
    guard let context else { return }
    var isWhole = true
    if case .discarding = phase { isWhole = false }
    closesBehindAnswer = !isWhole || isRefused || !request.isKeepAlive
    let isChunked = answer.length == nil && request.version == .http1_1
    if answer.length == nil, !isChunked { closesBehindAnswer = true }
    var headers = HTTPHeaders(answer.headers)
    if let length = answer.length { headers.add(name: "Content-Length", value: "\(length)") }
    if isChunked { headers.add(name: "Transfer-Encoding", value: "chunked") }
    if closesBehindAnswer { headers.add(name: "Connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: answer.status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    rest = request.method == .HEAD ? { nil } : answer.pieces()
    wait(PortLimits.writeTime)
    writeOn()
  }

  /// Writes the next piece of the answer once the client's system has taken the one before.
  private func writeOn() {
    guard let context, let rest else { return }
    guard let piece = rest() else { return endAnswer(context) }
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece)))).assumeIsolated()
      .whenSuccess {
        self.wait(PortLimits.writeTime)
        self.writeOn()
      }
  }

  private func endAnswer(_ context: ChannelHandlerContext) {
    rest = nil
    guard closesBehindAnswer else {
      // Before the end is written: during that call, a request that waits may arrive.
      phase = .awaitingHead
      idleSince = .now()
      wait(PortLimits.requestTime)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      if case .awaitingHead = phase { context.read() }
      return
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenSuccess {
      guard case .discarding = self.phase else { return self.close() }
      // Closing with unread bytes would reset the connection, and the answer might be lost.
      self.context?.close(mode: .output, promise: nil)
      self.wait(PortLimits.discardTime)
    }
  }

  // MARK: Time

  /// Closes the connection after `time`, unless this is called again before.
  private func wait(_ time: TimeAmount) {
    timer?.cancel()
    timer = context?.eventLoop.assumeIsolated().scheduleTask(in: time) { self.timerFired() }
    unwritten = bufferedBytes
  }

  private func timerFired() {
    timer = nil
    guard case .answering = phase else { return close() }
    // A slow client gets its answer as long as it takes some of it.
    if bufferedBytes < unwritten { wait(PortLimits.writeTime) } else { close() }
  }

  /// The bytes that wait to be written.
  private var bufferedBytes: Int {
    (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}

/// Tells the connection's handler that bytes have come, before they are parsed.
private final class ByteCounter: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let handler: PortHandler

  init(_ handler: PortHandler) {
    self.handler = handler
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    handler.bytesCame(unwrapInboundIn(data).readableBytes)
    context.fireChannelRead(data)
  }
}
#endif
