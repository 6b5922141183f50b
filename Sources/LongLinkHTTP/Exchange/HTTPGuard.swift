// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2

/// Watches one connection of HTTP/1, or one stream of HTTP/2: what has left of a request, the size
/// of a response's head, and how long the server is silent.
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
  /// The most interim responses (1xx) in front of one response.
  static let interimHeads = 20

  enum Version {
    case http1
    case http2
  }

  private let flights: FlightTable
  private let idle: TimeAmount
  private var flight: HTTPFlight?
  private var interim = 0
  private var isRequestSent = false
  private var hasHead = false
  private var isReadPending = false
  private var writesPending = 0
  /// When something last happened that is not to be waited for again.
  private var active = NIODeadline.distantPast
  private var timer: Scheduled<Void>?

  private init(_ flights: FlightTable, idle: TimeAmount) {
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
      try pipeline.addHandler(HTTPGuard(flights, idle: idle), position: position)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head):
      begin(&head.headers, context)
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .body(let part):
      watch(part.readableBytes, promise, context) { context.write(data, promise: $0) }
    case .end:
      watch(0, promise, context) { context.write(data, promise: $0) }
      isRequestSent = true
      touch(context)
    }
  }

  private func begin(_ headers: inout HTTPHeaders, _ context: ChannelHandlerContext) {
    let number = headers.first(name: HTTPFlight.header).flatMap { UInt64($0) }
    headers.remove(name: HTTPFlight.header)
    interim = 0
    isRequestSent = false
    hasHead = false
    flight = number.flatMap { flights.take($0) }
    touch(context)
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let isWanted = flight?.willSend { failure in
      bound.eventLoop.execute {
        let (this, context) = bound.value
        if this.flight?.number == number { this.abort(failure, context) }
      }
    }
    if isWanted == false { abort(flight?.failure ?? .unwanted, context) }
  }

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
    }
    write(promise)
  }

  func read(context: ChannelHandlerContext) {
    if !isReadPending {
      isReadPending = true
      // The time in which nobody reads the body does not count. A head that comes byte by byte
      // is read again and again, and has to be there in time all the same.
      if hasHead { touch(context) }
    }
    context.read()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReadPending = false
    context.fireChannelReadComplete()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      guard HTTPGuard.isSmall(head.headers) else { return abort(.headTooLarge, context) }
      if (100..<200).contains(head.status.code) {
        // No life of the response: endless ones end by the time, and by their number.
        interim += 1
        if interim > HTTPGuard.interimHeads { return abort(.tooManyInterim, context) }
      } else {
        hasHead = true
        touch(context)
      }
    case .body: touch(context)
    case .end: end()
    }
    context.fireChannelRead(data)
  }

  private static func isSmall(_ headers: HTTPHeaders) -> Bool {
    guard headers.count <= headFields else { return false }
    var bytes = 0
    for (name, value) in headers { bytes += name.utf8.count + value.utf8.count + 4 }
    return bytes <= headBytes
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    flight?.hasLeft()
    flight = nil
    timer?.cancel()
    timer = nil
  }

  private func abort(_ failure: HTTPFailure, _ context: ChannelHandlerContext) {
    flight?.note(failure)
    end()
    context.fireErrorCaught(failure)
    context.close(promise: nil)
  }

  private func touch(_ context: ChannelHandlerContext) {
    active = .now()
    guard flight != nil, timer == nil else { return }
    schedule(at: active + idle, context)
  }

  private func schedule(at deadline: NIODeadline, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) {
      let (this, context) = bound.value
      this.timer = nil
      this.elapsed(context)
    }
  }

  private func elapsed(_ context: ChannelHandlerContext) {
    guard flight != nil else { return }
    // The time in which the source of the body has nothing does not count either. A head is always
    // waited for, also by a read that was under way before this guard was there.
    let isWaiting =
      isRequestSent
      ? !hasHead || isReadPending : writesPending > 0 || flight?.isReadingBody == false
    let now = NIODeadline.now()
    if isWaiting, now >= active + idle { return abort(.silence, context) }
    schedule(at: isWaiting ? active + idle : now + idle, context)
  }
}
#endif
