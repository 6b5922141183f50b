// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1

extension GatewayHandler {
  func channelWritabilityChanged(context: ChannelHandlerContext) {
    // The client's time to read begins when the channel is full, and ends when there is room.
    waitForClient()
    if context.channel.isWritable { writeOutput() }
    context.fireChannelWritabilityChanged()
  }

  func outputWaits(_ number: Int) {
    guard case .exchanging(let exchange) = phase, exchange.number == number else { return }
    writeOutput()
  }

  /// Writes the bytes that wait in the bridge, if the client has read enough of the earlier ones.
  func writeOutput() {
    guard let context, context.channel.isWritable, case .exchanging(var exchange) = phase else {
      return
    }
    let (output, hasEnded) = exchange.bridge.takeOutput()
    let bytes = exchange.greeting + output
    exchange.greeting = []
    if !exchange.hasRequest, !exchange.hasAnswerHead, !exchange.isAbandoned, !hasEnded,
      let greeting = GatewayGreeting.alone(in: bytes)
    {
      exchange.greeting = greeting
      phase = .exchanging(exchange)
      return
    }
    guard !bytes.isEmpty || hasEnded else {
      if exchange.isAbandoned { breakOff(context) }
      return
    }
    if !exchange.hasAnswerHead {
      exchange.hasAnswerHead = true
      exchange.closes = closes(behind: exchange)
      let head = answerHead(exchange, length: hasEnded ? bytes.count : nil)
      context.write(wrapOutboundOut(.head(head)), promise: nil)
    }
    phase = .exchanging(exchange)
    if !bytes.isEmpty {
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
    }
    if hasEnded {
      endAnswer(exchange, context)
    } else {
      watch(exchange, context)
      if exchange.isAbandoned { breakOff(context) }
    }
  }

  /// Flushes, and records when the client's system has taken all bytes.
  private func watch(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    var exchange = exchange
    exchange.unsentWrites += 1
    phase = .exchanging(exchange)
    // A later write does not extend the client's time to read the first.
    if exchange.unsentWrites == 1 { waitForClient() }
    let number = exchange.number
    // This empty write succeeds once the writes before it have.
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer())))).assumeIsolated()
      .whenSuccess {
        guard case .exchanging(var exchange) = self.phase, exchange.number == number else { return }
        exchange.unsentWrites -= 1
        self.phase = .exchanging(exchange)
        self.waitForClient()
      }
  }

  private func answerHead(_ exchange: Exchange, length: Int?) -> HTTPResponseHead {
    var headers = HTTPHeaders()
    headers.add(name: "Content-Type", value: GatewayRefusal.contentType)
    headers.add(name: "Cache-Control", value: "no-store")
    headers.add(name: "X-Accel-Buffering", value: "no")
    if let length { headers.add(name: "Content-Length", value: "\(length)") }
    if exchange.closes { headers.add(name: "Connection", value: "close") }
    return HTTPResponseHead(version: exchange.head.version, status: .ok, headers: headers)
  }

  /// Whether the connection ends with the answer. An answer in HTTP 1.0 may have no other end.
  /// After a request that offers an upgrade the parser reads nothing more. A client that the server
  /// has not accepted must not occupy a place that others need.
  private func closes(behind exchange: Exchange) -> Bool {
    let request = exchange.head
    return isDraining || !request.isKeepAlive || request.version != .http1_1
      || !request.headers["Upgrade"].isEmpty || !gateway.wasOpened(id, request: exchange.number)
  }

  private func endAnswer(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    let closes = exchange.closes
    // Before the end is written: during that call, a request that waits may arrive.
    if !exchange.hasRequest {
      discard(thenCloses: closes)
    } else if closes {
      stopReading()
    } else {
      awaitNextRequest()
    }
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    answerWritten = written
    if !exchange.hasRequest { return readOn() }
    if closes { return close(behind: written) }
    answered(exchange.number)
    readOn()
  }

  /// Reads no more: only the answer is still sent.
  private func stopReading() {
    phase = .closed
    wait(gateway.idleTimeout)
  }

  /// Closes the connection once the client's system has the last answer, if there was one.
  func closeBehindAnswer() {
    if let answerWritten { close(behind: answerWritten) } else { context?.close(promise: nil) }
  }

  /// Closes the connection once the client's system has the complete answer.
  func close(behind written: EventLoopFuture<Void>) {
    stopReading()
    written.assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
  }

  /// Closes the connection without ending the answer, so that the client does not take it for
  /// complete.
  private func breakOff(_ context: ChannelHandlerContext) {
    close(behind: context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer())))))
  }

  func transportClosed(_ number: Int, isReset: Bool) {
    guard case .exchanging(var exchange) = phase, exchange.number == number else { return }
    exchange.isAbandoned = true
    phase = .exchanging(exchange)
    if isReset || !exchange.hasAnswerHead && exchange.bridge.hasNoOutput {
      phase = .closed
      context?.close(promise: nil)
    } else {
      writeOutput()
    }
  }

  // MARK: Refusing

  /// Refuses the request of an exchange that the server has not taken.
  func exchangeRefused(_ number: Int) {
    guard case .exchanging(let exchange) = phase, exchange.number == number else { return }
    gateway.count { $0.refusals += 1 }
    refuse(.unavailable, exchange.head, hasRequest: exchange.hasRequest)
  }

  /// Refuses a request, once it has ended: some clients and proxies read an answer only then.
  func refuse(_ refusal: GatewayRefusal, _ head: HTTPRequestHead, hasRequest: Bool = false) {
    // A client that waits for "100 Continue" sends no more before it has an answer.
    if hasRequest || head.expectsContinue {
      return answer(refusal, head, hasRequest: hasRequest)
    }
    phase = .refusing(refusal, head, bytes: 0)
    wait(gateway.discardTimeout)
    readOn()
  }

  /// Answers with a status other than 200 and a short text, and closes the connection.
  func answer(_ refusal: GatewayRefusal, _ head: HTTPRequestHead, hasRequest: Bool = false) {
    guard let context else { return }
    if hasRequest { stopReading() } else { discard(thenCloses: true) }
    var headers = HTTPHeaders()
    headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
    headers.add(name: "Content-Length", value: "\(refusal.text.utf8.count)")
    headers.add(name: "Cache-Control", value: "no-store")
    headers.add(name: "Connection", value: "close")
    for (name, value) in refusal.headers { headers.add(name: name, value: value) }
    let answer = HTTPResponseHead(version: head.version, status: refusal.status, headers: headers)
    context.write(wrapOutboundOut(.head(answer)), promise: nil)
    if head.method != .HEAD {
      context.write(
        wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: refusal.text)))), promise: nil)
    }
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    answerWritten = written
    if hasRequest { close(behind: written) } else { readOn() }
  }
}

extension HTTPRequestHead {
  /// Whether the client sends the body only after an interim response (RFC 9110, section 10.1.1).
  var expectsContinue: Bool {
    version == .http1_1 && headers["Expect"].contains { $0.lowercased() == "100-continue" }
  }
}
#endif
