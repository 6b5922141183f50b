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
    case answering
    /// The last answer is written, and what still comes is dropped.
    case discarding
    case closed
  }

  private let core: PortCore
  private var phase = Phase.awaitingHead
  private var context: ChannelHandlerContext?
  /// The bytes that have come behind the last head, or behind the end of its request.
  private var bytesSince = 0
  /// Whether the connection has no place, so that it gets 503.
  private var isRefused = false
  /// Whether the last whole request may see all.
  private var isTrusted = false
  /// The rest of the answer; nil if there is none.
  private var rest: (() -> ByteBuffer?)?
  private var isStreamed = false
  /// Whether the connection ends behind the current request.
  private var isLast = false
  private var answerTime = AnswerTime(from: .now())
  private var timer: Scheduled<Void>?
  /// When the connection was made, or has had its last answer.
  private(set) var idleSince = NIODeadline.now()

  private init(_ core: PortCore) {
    self.core = core
  }

  /// Adds the handlers of a new connection.
  static func set(up channel: any Channel, _ core: PortCore) throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = PortLimits.head
    limits.maxHeaderListSize = PortLimits.head
    // An answer to HEAD has no chunks.
    var encoder = HTTPResponseEncoder.Configuration()
    encoder.automaticallySetFramingHeaders = false
    let handler = PortHandler(core)
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(ByteCounter(handler))
    try pipeline.configureHTTPServerPipeline(
      withOutboundHeaderValidation: true, withEncoderConfiguration: encoder,
      withDecoderLimitConfiguration: limits)
    try pipeline.addHandler(handler)
  }

  /// Whether a trusted request is being answered, so that the connection makes room for no other.
  var isServed: Bool {
    if case .answering = phase { isTrusted } else { false }
  }

  func channelActive(context: ChannelHandlerContext) {
    self.context = context
    let (isPlace, evicted) = core.places.enter(self)
    evicted?.close()
    isRefused = !isPlace
    wait(isPlace ? PortLimits.requestTime : PortLimits.refusalTime)
    context.read()
  }

  func channelInactive(context: ChannelHandlerContext) {
    core.places.leave(self)
    timer?.cancel()
    (timer, rest, self.context) = (nil, nil, nil)
    phase = .closed
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // Whoever sends nothing more gets the answer to the last request.
    if event as? ChannelEvent == .inputClosed {
      isLast = true
      switch phase {
      case .answering: break
      case .discarding where rest != nil: break
      case .awaitingHead, .awaitingEnd, .discarding, .closed: close()
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { close() }

  func close() {
    phase = .closed
    context?.close(promise: nil)
  }

  // MARK: The request

  /// Counts bytes that have come, which `parse` reads. Behind the last answer they are dropped.
  fileprivate func bytesCame(_ count: Int, _ parse: () -> Void) {
    if case .discarding = phase { return }
    bytesSince += count
    // It counts anew if a head is complete, or a request.
    parse()
    guard bytesSince > PortLimits.head else { return }
    switch phase {
    case .awaitingHead: close()
    case .awaitingEnd(let head, _): refuse(head)
    case .answering, .discarding, .closed: break
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), phase) {
    case (.head(let head), .awaitingHead): begin(head)
    case (.body(let bytes), .awaitingEnd(let head, let count)):
      phase = .awaitingEnd(head, body: count + bytes.readableBytes)
      if count + bytes.readableBytes > PortLimits.body { refuse(head) }
    case (.end, .awaitingEnd(let head, _)): requestEnded(head)
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
    bytesSince = 0
    phase = .awaitingEnd(head, body: 0)
    // The bytes that it came with were not counted.
    guard head.size <= PortLimits.head else { return close() }
    // The parser takes nothing behind such a request.
    if head.method == .CONNECT || head.headers.contains(name: "Upgrade") { isLast = true }
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
    bytesSince = 0
    phase = .answering
    timer?.cancel()
    timer = nil
    let address = context?.channel.remoteAddress.flatMap(OperationsPort.address)
    let local = context?.channel.localAddress.flatMap(OperationsPort.address)
    let request = PortRequest(head, from: address, to: local)
    if isRefused {
      var answer = PortAnswer.problem(
        .serviceUnavailable, "all connections of the port are in use", as: request.form)
      answer.headers.append(("Retry-After", "1"))
      return write(answer, head)
    }
    switch core.admission(of: request) {
    case .refusal(let answer): return write(answer, head)
    case .health: break
    case .all: isTrusted = true
    }
    // In a turn of its own: requests that wait behind this one arrive while its answer is written,
    // and would be answered within that call.
    context?.eventLoop.assumeIsolated().execute { [core, isTrusted] in
      core.answer(request, isTrusted: isTrusted) { self.write($0, head) }
    }
  }

  // MARK: The answer

  private func write(_ answer: PortAnswer, _ request: HTTPRequestHead) {
    guard let context else { return }
    let hasBody = request.method != .HEAD
    let isChunked = answer.length == nil && hasBody && request.version == .http1_1
    let endsAtClose = answer.length == nil && hasBody && !isChunked
    isLast = isLast || endsAtClose || !isTrusted || !request.isKeepAlive
    var headers = HTTPHeaders(answer.headers)
    if let length = answer.length { headers.add(name: "Content-Length", value: "\(length)") }
    if isChunked { headers.add(name: "Transfer-Encoding", value: "chunked") }
    if isLast { headers.add(name: "Connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: answer.status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    rest = hasBody ? answer.pieces() : { nil }
    isStreamed = answer.length == nil
    answerTime = AnswerTime(from: .now())
    writeOn()
  }

  /// Writes the next piece of the answer once the client's system has taken the one before.
  private func writeOn() {
    guard let context, let rest else { return }
    guard let piece = rest() else { return endAnswer(context) }
    if isStreamed { answerTime = AnswerTime(from: .now()) }
    let written = context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece))))
    wait(answerTime.wrote(unwritten: unwritten, at: .now()))
    written.assumeIsolated().whenSuccess { self.writeOn() }
  }

  private func endAnswer(_ context: ChannelHandlerContext) {
    rest = nil
    guard isLast else {
      // Before the end is written: during that call, a request that waits may arrive.
      phase = .awaitingHead
      isTrusted = false
      idleSince = .now()
      wait(PortLimits.requestTime)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      if case .awaitingHead = phase { context.read() }
      return
    }
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    wait(answerTime.wrote(unwritten: unwritten, at: .now()))
    written.assumeIsolated().whenSuccess { self.endOutput() }
  }

  /// Closes the connection once the client has closed it too, or has had some time for it: closing
  /// with unread bytes would reset it, and the answer might be lost.
  private func endOutput() {
    guard let context else { return }
    phase = .discarding
    wait(PortLimits.discardTime)
    context.close(mode: .output, promise: nil)
    context.read()
  }

  // MARK: Time

  /// Calls `timerFired` after `time`, unless this is called again before.
  private func wait(_ time: TimeAmount) {
    timer?.cancel()
    timer = context?.eventLoop.assumeIsolated().scheduleTask(in: time) { self.timerFired() }
  }

  private func timerFired() {
    timer = nil
    guard case .answering = phase,
      let time = answerTime.next(unwritten: unwritten, at: .now())
    else { return close() }
    wait(time)
  }

  /// The bytes that wait to be written.
  private var unwritten: Int {
    (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}

/// Tells the connection's handler of bytes that have come, before they are parsed.
private final class ByteCounter: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let handler: PortHandler

  init(_ handler: PortHandler) {
    self.handler = handler
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    handler.bytesCame(unwrapInboundIn(data).readableBytes) { context.fireChannelRead(data) }
  }
}

extension HTTPRequestHead {
  /// The bytes of the head, without spaces that have no meaning.
  fileprivate var size: Int {
    headers.reduce(method.rawValue.utf8.count + uri.utf8.count + 14) {
      $0 + $1.name.utf8.count + $1.value.utf8.count + 4
    }
  }
}
#endif
