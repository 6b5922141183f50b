// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2

/// Watches one connection of HTTP/1, or one stream of HTTP/2: what has left of a request, the size
/// of a response's head, how long the server is silent, and the deadline. The bytes of a response's
/// body leave here to their reader: see `ResponseBytes`.
///
/// It stands between the codec and the client. The client's own time-outs also run while nobody
/// reads a response, and its errors do not state whether a request has left.
final class HTTPGuard: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// The most bytes of a response's head: names, values, and 4 for each.
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
  /// Whether what follows belongs to a request whose head was not written.
  private var isRefused = false
  /// The status of the response, once its head is there.
  private var status: UInt?
  /// Whether the response has ended, and the request has not.
  private var hasResponseEnded = false
  private var isReadPending = false
  /// When the last read ended.
  private var readEnded = NIODeadline.distantPast
  private var body: ResponseBytes.Source?
  /// Whether the reader of the body has enough for now.
  private var isPaused = false
  /// Whether a read waits for the reader.
  private var isReadHeld = false
  private var writesPending = 0
  /// When something last happened that is not to be waited for again.
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
    // A number without a flight is that of an exchange which has ended.
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
      // The response was there before.
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
      // The time in which nobody reads the body does not count. What it was silent for before
      // does: a head, and what is in a body without being its content, may come byte by byte, and
      // is read again and again.
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
        // No life of the response: endless ones end by the time, and by their number.
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
      // A frame of HTTP/2 may have none, and is no sign of life then.
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

  /// The response is whole before the request is.
  private func endEarly(_ data: NIOAny, _ context: ChannelHandlerContext) {
    hasResponseEnded = true
    guard version == .http1, (200..<300).contains(status ?? 0) else {
      // The client forgets such a request, and whoever waits to write more of its body with it; on
      // HTTP/2 its stream, too. An error behind what has come ends them all.
      return abort(.endedEarly, context)
    }
    // The rest of the request is still timed.
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

  /// The timer stays: the next request on the connection mostly comes before it fires.
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
    // Who reads the response has all of it.
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

  /// Lets the timer fire at a time or before, and at the deadline.
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
    // The time in which the source of the body has nothing does not count either. A head is always
    // waited for, also by a read that was under way before this guard was there.
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
