// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2

/// Watches one connection of HTTP/1, or one stream of HTTP/2: which part of a request has left, the
/// size of a response's head, how long the server is silent, and the deadline. It passes the bytes
/// of a response's body to their reader directly: see `ResponseBytes`.
///
/// It stands between the codec and async-http-client, whose own time-outs also run while a response
/// is not read, and whose errors do not state whether a request has left.
final class HTTPGuard: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// The most bytes of a response's head: names, values, and 4 for each field.
  static let headBytes = 65_536
  /// The most fields of a head.
  static let headFields = 100
  /// The most interim responses (1xx) before one response.
  static let interimHeads = 20

  enum Version {
    case http1
    case http2
  }

  private let version: Version
  private let flights: FlightTable
  private let idle: TimeAmount
  private var flight: HTTPFlight?
  /// Whether a response has ended on the connection.
  private var isUsed = false
  private var interim = 0
  private var isRequestSent = false
  /// Whether the parts that are written now belong to a request whose head was refused.
  private var isRefused = false
  /// The status of the response, once its head is there.
  private var status: UInt?
  /// Whether the response has ended, and the request has not.
  private var hasResponseEnded = false
  private var isReadPending = false
  /// When the last read ended.
  private var readEnded = NIODeadline.distantPast
  private var body: ResponseBytes.Source?
  /// Whether the reader of the body wants no more bytes for now.
  private var isPaused = false
  /// Whether a read was held back until the reader wants more.
  private var isReadHeld = false
  private var writesPending = 0
  /// The instant from which the server's silence is measured.
  private var active = NIODeadline.distantPast
  private var timer: Scheduled<Void>?
  /// When `timer` fires.
  private var timerAt = NIODeadline.distantFuture

  private init(_ version: Version, _ flights: FlightTable, idle: TimeAmount) {
    self.version = version
    self.flights = flights
    self.idle = idle
  }

  static func install(
    on channel: any Channel, over version: Version, _ flights: FlightTable, idle: TimeAmount
  ) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      let position: ChannelPipeline.SynchronousOperations.Position
      switch version {
      case .http1:
        position = .after(
          try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self))
      case .http2:
        position = .after(try pipeline.handler(type: HTTP2FramePayloadToHTTP1ClientCodec.self))
      }
      try pipeline.addHandler(HTTPGuard(version, flights, idle: idle), position: position)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head):
      begin(&head.headers, context)
      guard !isRefused else { return refuse(promise) }
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .body where isRefused, .end where isRefused: refuse(promise)
    case .body(let part):
      watch(part.readableBytes, promise, context) { context.write(data, promise: $0) }
    case .end:
      isRequestSent = true
      watch(0, promise, context) { context.write(data, promise: $0) }
    }
  }

  private func begin(_ headers: inout HTTPHeaders, _ context: ChannelHandlerContext) {
    let number = headers.first(name: HTTPFlight.header).flatMap { UInt64($0) }
    headers.remove(name: HTTPFlight.header)
    interim = 0
    isRequestSent = false
    status = nil
    hasResponseEnded = false
    endBody()
    flight = number.flatMap { flights.take($0) }
    touch(context)
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let isWanted = flight?.willSend(onUsed: isUsed) { failure in
      bound.eventLoop.execute {
        let (this, context) = bound.value
        if this.flight?.number == number { this.abort(failure, context) }
      }
    }
    // If the head has a number but there is no flight, its exchange has ended.
    isRefused = !(isWanted ?? (number == nil))
    if isRefused { abort(flight?.failure ?? .unwanted, context) }
  }

  private func refuse(_ promise: EventLoopPromise<Void>?) { promise?.fail(HTTPFailure.unwanted) }

  private func watch(
    _ count: Int, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext,
    _ write: (EventLoopPromise<Void>) -> Void
  ) {
    let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
    let bound = NIOLoopBound((self, context, flight), eventLoop: context.eventLoop)
    if writesPending == 0 { touch(context) }
    writesPending += 1
    promise.futureResult.whenComplete { result in
      let (this, context, flight) = bound.value
      this.writesPending -= 1
      this.touch(context)
      if count > 0, case .success = result { flight?.sent(count) }
      // The response has ended before.
      if this.hasResponseEnded, this.isRequestSent, this.writesPending == 0,
        this.flight === flight
      {
        this.end()
      }
    }
    write(promise)
  }

  func read(context: ChannelHandlerContext) {
    guard !isPaused else {
      isReadHeld = true
      return
    }
    if !isReadPending {
      isReadPending = true
      // Time in which the application does not read the body does not count as silence. Silence
      // before that does: a head, and parts of a body that are not its content, may come byte by
      // byte, with a new read each time.
      if status != nil {
        let now = context.eventLoop.now
        setActive(now - max(readEnded - active, .zero), context)
      }
    }
    context.read()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReadPending = false
    readEnded = context.eventLoop.now
    context.fireChannelReadComplete()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      flight?.noteAnswer()
      guard HTTPGuard.isSmall(head.headers) else { return abort(.headTooLarge, context) }
      if (100..<200).contains(head.status.code) {
        // Not activity of the response: endless interim responses end by time and by their number.
        interim += 1
        if interim > HTTPGuard.interimHeads { return abort(.tooManyInterim, context) }
      } else {
        status = head.status.code
        touch(context)
      }
      if !(100..<200).contains(head.status.code) || head.status == .switchingProtocols {
        beginBody(context)
      }
    case .body(let bytes):
      // A frame of HTTP/2 may be empty, and is no activity then.
      guard bytes.readableBytes > 0 else { return }
      touch(context)
      if let body {
        if body.yield(bytes) == .stopProducing { isPaused = true }
        return
      }
    case .end:
      endBody()
      isUsed = true
      guard isRequestSent else { return endEarly(data, context) }
      end()
    }
    context.fireChannelRead(data)
  }

  private func beginBody(_ context: ChannelHandlerContext) {
    guard let flight else { return }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let made = ResponseBytes.makeSequence(
      elementType: ByteBuffer.self, backPressureStrategy: .init(lowWatermark: 1, highWatermark: 1),
      finishOnDeinit: true,
      delegate: ResponseDemand {
        bound.eventLoop.execute {
          let (this, context) = bound.value
          this.isPaused = false
          guard this.isReadHeld else { return }
          this.isReadHeld = false
          this.read(context: context)
        }
      })
    body = made.source
    flight.begin(made.sequence)
  }

  private func endBody() {
    body?.finish()
    body = nil
    isPaused = false
  }

  /// Handles a response that ends before its request does.
  private func endEarly(_ data: NIOAny, _ context: ChannelHandlerContext) {
    hasResponseEnded = true
    guard version == .http1, (200..<300).contains(status ?? 0) else {
      // async-http-client would forget the request, and a task that waits to write more of its
      // body, and on HTTP/2 the stream. An error after the response ends them all.
      return abort(.endedEarly, context)
    }
    // The rest of the request still has its time limit.
    touch(context)
    context.fireChannelRead(data)
  }

  private static func isSmall(_ headers: HTTPHeaders) -> Bool {
    guard headers.count <= headFields else { return false }
    var bytes = 0
    for (name, value) in headers { bytes += name.utf8.count + value.utf8.count + 4 }
    return bytes <= headBytes
  }

  func channelInactive(context: ChannelHandlerContext) {
    endBody()
    end()
    disarm()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    endBody()
    end()
    disarm()
  }

  /// Ends the request. The timer is kept: most often the next request begins before it fires.
  private func end() {
    flight?.hasLeft()
    flight = nil
  }

  private func disarm() {
    timer?.cancel()
    timer = nil
    timerAt = .distantFuture
  }

  private func abort(_ failure: HTTPFailure, _ context: ChannelHandlerContext) {
    // After the response's end, its reader needs no failure.
    if !hasResponseEnded { flight?.note(failure) }
    end()
    context.fireErrorCaught(failure)
    context.close(promise: nil)
  }

  private func touch(_ context: ChannelHandlerContext) {
    setActive(context.eventLoop.now, context)
  }

  private func setActive(_ time: NIODeadline, _ context: ChannelHandlerContext) {
    active = time
    schedule(at: active + idle, context)
  }

  /// Makes sure that the timer fires by `time` and by the deadline.
  private func schedule(at time: NIODeadline, _ context: ChannelHandlerContext) {
    guard let flight else { return }
    let deadline = min(time, flight.deadline)
    guard deadline < timerAt else { return }
    timer?.cancel()
    timerAt = deadline
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) {
      let (this, context) = bound.value
      this.timer = nil
      this.timerAt = .distantFuture
      this.elapsed(context)
    }
  }

  private func elapsed(_ context: ChannelHandlerContext) {
    guard let flight else { return }
    let now = context.eventLoop.now
    if now >= flight.deadline { return abort(.deadline, context) }
    // Time in which the request's body has no next piece does not count either. For a head the
    // server is always waited for, even if the read began before this guard was installed.
    let isWaiting =
      if hasResponseEnded {
        true
      } else if isRequestSent {
        status == nil || isReadPending
      } else {
        writesPending > 0 || !flight.isReadingBody
      }
    if isWaiting, now >= active + idle { return abort(.silence, context) }
    schedule(at: isWaiting ? active + idle : now + idle, context)
  }
}
#endif
