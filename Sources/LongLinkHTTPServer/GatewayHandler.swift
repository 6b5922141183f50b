// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCLibrary
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1

/// One connection of a gateway. It hands the requests to the server, one after the other.
///
/// It reads only bytes that there is room for, and writes only while the client reads. Everything
/// here runs on the connection's thread.
final class GatewayHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  enum Phase {
    case awaitingHead
    /// The server has the request.
    case exchanging(Exchange)
    /// The request will be refused, when it has ended, or when its rest is too large or too slow.
    case refusing(GatewayRefusal, HTTPRequestHead, bytes: Int)
    /// The answer has ended before the request; the rest of the request is dropped.
    case discarding(bytes: Int, thenCloses: Bool)
    case closed
  }

  /// A request, and the progress of its answer.
  struct Exchange {
    let number: Int
    let bridge: TransportBridge
    let head: HTTPRequestHead
    /// Whether the request has ended.
    var hasRequest = false
    /// Whether the bridge has room for more of the request.
    var hasRoom = true
    /// The bytes of the request that came although there was no room.
    var excess = 0
    var hasAnswerHead = false
    /// The welcome, if the answer has nothing else yet and the request still arrives; else empty.
    var greeting: [UInt8] = []
    /// Whether the connection ends with the answer; known once the answer's head is.
    var closes = false
    /// The number of writes that the client's system has not taken.
    var unsentWrites = 0
    /// Whether the server has closed the transport of the exchange.
    var isAbandoned = false
  }

  let gateway: GatewayState
  /// The gateway's number for the connection.
  let id: UInt64
  private let threads: GatewayThreads
  var phase = Phase.awaitingHead
  var context: ChannelHandlerContext?
  private var number = 0
  /// Whether the next request's head has begun to arrive.
  private var hasHeadBegun = false
  /// The bytes that have arrived since the last request, before any parsing.
  private var headBytes = 0
  /// Completed when the client's system has the end of the last answer; nil before the first
  /// answer.
  var answerWritten: EventLoopFuture<Void>?
  /// Whether the gateway shuts down, so that the connection takes no further request.
  private(set) var isDraining = false
  private var deadline = NIODeadline.distantFuture
  private var timer: Scheduled<Void>?
  private var timerIsFor = NIODeadline.distantFuture

  /// The most bytes of a request that are dropped before it is refused, or once it is answered.
  private static let mostDiscarded = 262_144
  /// The most bytes until a head is complete: the parser's limits and one read, doubled.
  private static let mostHeadBytes = 131_072
  /// The most bytes that are accepted although no read was requested: they come when a client hangs
  /// up.
  private static let mostExcess = 262_144

  init(_ gateway: GatewayState, _ id: UInt64, _ threads: GatewayThreads) {
    self.gateway = gateway
    self.id = id
    self.threads = threads
  }

  func channelActive(context: ChannelHandlerContext) {
    self.context = context
    wait(gateway.headTimeout)
    context.read()
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(because: ECONNRESET, "the client has hung up")
    timer?.cancel()
    timer = nil
    self.context = nil
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    gateway.count { $0.badRequests += error is HTTPParserError ? 1 : 0 }
    end(because: EPROTO, "the client's HTTP is not valid, or the connection failed")
    context.close(promise: nil)
  }

  /// Ends the phase; the exchange, if there is one, fails with an error number and a text.
  func end(because errno: CInt, _ detail: String) {
    if case .exchanging(let exchange) = phase {
      exchange.bridge.fail(SocketError(operation: "read", errno: errno), text: detail)
    }
    phase = .closed
  }

  func close() {
    end(because: ETIMEDOUT, "the client was silent for too long")
    context?.close(promise: nil)
  }

  /// Closes the connection once the client's system has the current answer.
  func drain() {
    isDraining = true
    switch phase {
    case .awaitingHead: closeBehindAnswer()
    case .exchanging(var exchange):
      exchange.closes = true
      phase = .exchanging(exchange)
    case .discarding(let bytes, _): phase = .discarding(bytes: bytes, thenCloses: true)
    case .refusing, .closed: break
    }
  }

  // MARK: The request

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let bytes): take(bytes)
    case .end: requestEnded()
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    readOn()
    context.fireChannelReadComplete()
  }

  /// Notes bytes that have arrived, whatever they are.
  func bytesCame(_ count: Int) {
    switch phase {
    case .awaitingHead:
      if !hasHeadBegun { wait(gateway.headTimeout) }
      hasHeadBegun = true
      headBytes += count
      if headBytes > Self.mostHeadBytes {
        gateway.count { $0.badRequests += 1 }
        close()
      }
    case .exchanging: clientSent()
    case .refusing, .discarding, .closed: break
    }
  }

  /// Requests more bytes, if there is room for them.
  func readOn() {
    switch phase {
    case .awaitingHead, .refusing, .discarding:
      context?.read()
    case .exchanging(let exchange):
      if exchange.hasRoom { context?.read() }
    case .closed: break
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    guard case .awaitingHead = phase else { return }
    hasHeadBegun = false
    headBytes = 0
    if let refusal = GatewayRefusal(of: head, path: gateway.path) {
      gateway.count { $0.refusals += 1 }
      return refuse(refusal, head)
    }
    number += 1
    let bridge = TransportBridge(isConnected: true)
    phase = .exchanging(Exchange(number: number, bridge: bridge, head: head))
    gateway.count { $0.requests += 1 }
    if head.expectsContinue {
      let goOn = HTTPResponseHead(version: head.version, status: .continue)
      context.writeAndFlush(wrapOutboundOut(.head(goOn)), promise: nil)
    }
    waitForClient()
    let socket = gateway.address(context.remoteAddress)
    gateway.server.accept(
      short: GatewayExchange(
        bridge, number: number, peer: gateway.forwarded.client(socket, head.headers),
        isSecuredByProxy: gateway.isSecuredByProxy && gateway.forwarded.isProxy(socket),
        connection: self, on: context.eventLoop, threads: threads))
  }

  private func take(_ bytes: ByteBuffer) {
    switch phase {
    case .exchanging(var exchange):
      if !exchange.hasRoom { exchange.excess += bytes.readableBytes }
      if exchange.excess > Self.mostExcess { return close() }
      exchange.hasRoom = unsafe bytes.withUnsafeReadableBytes {
        unsafe exchange.bridge.deliver($0)
      }
      phase = .exchanging(exchange)
    case .refusing(let refusal, let head, let dropped):
      phase = .refusing(refusal, head, bytes: dropped + bytes.readableBytes)
      if dropped + bytes.readableBytes > Self.mostDiscarded { answer(refusal, head) }
    case .discarding(let dropped, let closes):
      phase = .discarding(bytes: dropped + bytes.readableBytes, thenCloses: closes)
      if dropped + bytes.readableBytes > Self.mostDiscarded { close() }
    case .awaitingHead, .closed: break
    }
  }

  private func requestEnded() {
    switch phase {
    case .exchanging(var exchange):
      exchange.hasRequest = true
      phase = .exchanging(exchange)
      exchange.bridge.endInput()
      clientSent()
      if !exchange.greeting.isEmpty { writeOutput() }
    case .refusing(let refusal, let head, _):
      answer(refusal, head, hasRequest: true)
    case .discarding(_, thenCloses: false):
      awaitNextRequest()
      answered(number)
    case .discarding: closeBehindAnswer()
    case .awaitingHead, .closed: break
    }
  }

  func inputHasRoom(_ number: Int) {
    guard case .exchanging(var exchange) = phase, exchange.number == number else { return }
    exchange.hasRoom = true
    exchange.excess = 0
    phase = .exchanging(exchange)
    clientSent()
    context?.read()
  }

  // MARK: Time

  func awaitNextRequest() {
    phase = .awaitingHead
    headBytes = 0
    wait(gateway.keepAliveTimeout)
  }

  /// Lets the connection make room for another one, once the client's system has the answer.
  func answered(_ number: Int) {
    answerWritten?.assumeIsolated().whenComplete { [gateway, id] _ in
      gateway.answered(id, request: number)
    }
  }

  func discard(thenCloses: Bool) {
    phase = .discarding(bytes: 0, thenCloses: thenCloses)
    wait(gateway.discardTimeout)
  }

  /// Limits the client's silence, if the client has to send or to read something.
  func waitForClient() {
    guard case .exchanging(let exchange) = phase else { return }
    let isExpected = !exchange.hasRequest && exchange.hasRoom || owesReading
    wait(isExpected ? gateway.idleTimeout : nil)
  }

  /// Whether the client still has to read something, earlier answers included.
  private var owesReading: Bool {
    guard case .exchanging(let exchange) = phase else { return false }
    return exchange.unsentWrites > 0 || context?.channel.isWritable == false
  }

  /// Notes that the client has sent something. That does not extend its time to read.
  private func clientSent() {
    if owesReading, deadline != .distantFuture { return }
    waitForClient()
  }

  /// Closes the connection after `time`, unless `wait` is called again before; nil for never.
  func wait(_ time: TimeAmount?) {
    deadline = time.map { .now() + $0 } ?? .distantFuture
    if deadline < timerIsFor { arm() }
  }

  private func arm() {
    timer?.cancel()
    timer = nil
    timerIsFor = deadline
    guard deadline != .distantFuture, let context else { return }
    timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
      self.timerFired()
    }
  }

  private func timerFired() {
    timer = nil
    timerIsFor = .distantFuture
    if deadline <= .now(), case .refusing(let refusal, let head, _) = phase {
      answer(refusal, head)
    } else if deadline <= .now() {
      gateway.count { $0.timeouts += 1 }
      close()
    } else {
      arm()
    }
  }
}
#endif
