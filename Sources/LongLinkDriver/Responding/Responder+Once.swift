// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

// Requests that run once. The handler belongs to the run, which may have many exchanges that wait
// for its reply, on any connection; the end of an exchange is not that of the handler.

extension Responder {
  /// Whether a request is to run once, and is handled here therefore.
  @inline(__always)
  func runsOnce(_ arrival: Arrival, on link: Link, _ route: Route) -> Bool {
    guard case .once(let once, _) = route, let metadata = link.metadata(of: arrival),
      metadata.keySpace != nil, let client = onceClient
    else { return false }
    handle(arrival, on: link, once, metadata, of: client)
    return true
  }

  private func handle(
    _ arrival: Arrival, on link: Link, _ route: OnceRoute, _ metadata: ReceivedMetadata,
    of client: any OnceClient
  ) {
    let remaining = link.remaining(of: arrival)
    if remaining == 0 {
      link.count { $0.handlersLate += 1 }
      return refuse(arrival, on: link, .deadlinePassed, "the deadline had passed on arrival")
    }
    let hasMemory = link.memory.hasRoom || link.memory.hasReserve(for: link.connection.inbound)
    let question = OnceQuestion(
      type: arrival.type, metadata: metadata,
      isOverloaded: !hasMemory || link.connection.isOverloaded, route: route, loop: loop)
    let id = link.connection.id(of: arrival)
    let step = link.connection.inbox.withBody(arrival.payload) {
      client.find(question, payload: $0)
    }
    if case .reply(let reply) = step { return send(reply, id, arrival.type, on: link) }
    // One that only waits does not hold the payload.
    guard let (run, runs) = step.run else { return }
    let request = InboundRequest(
      type: arrival.type, body: runs ? link.takeBody(of: arrival) : [], id: id, peer: peer,
      deadline: remaining.map { loop.now + Int64($0) * 1_000_000 }, of: run,
      waitsWith: runs ? nil : metadata)
    if case .run = step, let handler = route.synchronous {
      return call(handler, request, of: run, on: link)
    }
    if request.priority > 0 {
      link.setPriority(request.priority, of: request.serial)
    }
    guard let exchange = keep(route.handler, request, nil, on: link) else {
      return runs ? run.dropped() : ()
    }
    if !runs { exchange.done() }
    if let reply = run.join(exchange, runs: runs) { return exchange.answer(reply) }
    switch step {
    case .run: begin(exchange, route.placement)
    case .ask:
      run.ask(route.placement)
    default: break
    }
  }

  /// Calls the synchronous handler of a run, whose store is asked at once.
  private func call(
    _ handler: @Sendable (InboundRequest) throws -> AnyBody, _ request: InboundRequest,
    of run: any OnceRun, on link: Link
  ) {
    link.count { $0.handled += 1 }
    loop.handlerBegins(request.type)
    do {
      let body =
        record == nil
        ? try handler(request) : try observed(request, on: link) { try handler(request) }
      loop.handlerPauses()
      answer(request, body, of: run, on: link)
    } catch {
      loop.handlerPauses()
      let reply = OnceReply(rejection(of: request, error, on: link))
      let other = run.concluded(reply.code, reply.body, isRefused: reply.isRefused)
      send(other ?? reply, request.id, request.type, on: link)
    }
  }

  /// Answers with what the synchronous handler of a run has returned.
  private func answer(
    _ request: InboundRequest, _ body: AnyBody, of run: any OnceRun, on link: Link
  ) {
    guard let bytes = try? body.encodedBytes() else {
      let reply = reply(to: request, body, on: link)
      let other = run.concluded(reply.code, reply.body, isRefused: false)
      return send(other ?? reply, request.id, request.type, on: link)
    }
    if let other = run.concluded(.ok, bytes, isRefused: false) {
      return send(other, request.id, request.type, on: link)
    }
    answer(request, bytes, on: link)
  }

  /// Calls the handler of a run; on the loop.
  func begin(_ exchange: RunningHandler, _ placement: HandlerPlacement) {
    let (link, request) = (exchange.link, exchange.request)
    link.count { $0.handled += 1 }
    // The exchange may have ended, and the handler runs for the record alone.
    if !exchange.hasEnded {
      exchange.record?.handedOver(request.serial, request.body.count, on: link)
    }
    launch(exchange, placement)
  }

  /// Sends a reply to a request that was to run once, unless that has ended.
  func send(_ reply: OnceReply, _ id: InboundID, _ type: MessageType, on link: Link) {
    if reply.outcome != .run { onceClient?.count(reply.outcome) }
    peer.logRefusal(of: type, id.serial, by: reply, on: link)
    let limit = link.connection.agreement.maxBody
    guard reply.code != .ok || reply.body.count <= limit else {
      return send(
        id, on: link, .failed, text("the response is larger than \(limit) bytes", on: link))
    }
    let (block, body) = reply.parts(within: limit)
    let isSent = link.respond(
      id, code: reply.code, isRefused: reply.isRefused, metadata: block, body)
    record?.respond(
      reply.code, isRefused: reply.isRefused, isInterrupting: reply.isGone, body.count,
      isSent: isSent, on: link)
  }

  /// The handler of a run has returned: its reply is that of all who wait, once the store has it.
  func returned(
    _ exchange: RunningHandler, of run: any OnceRun, _ result: Result<AnyBody, any Error>
  ) {
    exchange.done()
    var (reply, hasThrown) = reply(to: exchange.request, result, on: exchange.link)
    if exchange.isLate, hasThrown, reply.code == .cancelled, !reply.isRefused {
      reply.code = .deadlinePassed
    }
    if exchange.hasEnded { exchange.link.handlerReturned(from: exchange.request.id) }
    run.returned(reply, hasThrown: hasThrown)
  }

  /// The reply that a handler has made, and whether it has thrown.
  private func reply(
    to request: InboundRequest, _ result: Result<AnyBody, any Error>, on link: Link
  ) -> (OnceReply, hasThrown: Bool) {
    switch result {
    case .success(let body): return (reply(to: request, body, on: link), false)
    case .failure(let error): return (OnceReply(rejection(of: request, error, on: link)), true)
    }
  }

  private func reply(to request: InboundRequest, _ body: AnyBody, on link: Link) -> OnceReply {
    do throws(BodyError) {
      return OnceReply(.ok, try body.encodedBytes())
    } catch {
      link.log(
        .error, "A response could not be encoded",
        metadata(request.type, request.serial, ["error": "\(error)"]))
      return OnceReply(.failed, Array("the response could not be encoded".utf8))
    }
  }
}

extension OnceReply {
  fileprivate init(_ rejection: HandlerRejection) {
    self.init(
      rejection.code, rejection.body, isRefused: rejection.isRefused,
      retryAfter: rejection.retryAfter)
  }

  /// Whether there is no answer to be had: no handler has made this reply.
  fileprivate var isGone: Bool { outcome == .gone }

  /// Its metadata and body, which fit into a limit if the body of a 200 does.
  fileprivate func parts(within limit: Int) -> (MetadataBlock?, [UInt8]) {
    let block = metadata
    let room = limit - (block.map { $0.count + 2 } ?? 0)
    if body.count <= max(0, room) { return (block, body) }
    // A reply that fills the limit goes without saying that it is one of an earlier request.
    return room < 0 || code == .ok ? (nil, body) : (block, Array(body.prefix(room)))
  }

  /// Its metadata; nil for the reply of a handler to its own request, which needs none.
  private var metadata: MetadataBlock? {
    if !isReplayed, retryAfter == nil, terms == nil { return nil }
    return try? Metadata(
      retryAfter: retryAfter?.wireMilliseconds ?? 0, interrupted: isGone,
      keySpace: terms?.space, keyTime: terms?.time ?? 0, replayed: isReplayed
    ).encodedBlock()
  }
}

extension RunningHandler {
  /// Sends the reply of a run, unless the exchange has ended; from any thread.
  package func answer(_ reply: OnceReply) {
    onLoop { [self] in
      guard !hasEnded else { return }
      responder.end(self, cancelling: false) {
        responder.send(reply, request.id, request.type, on: link)
      }
    }
  }

  /// Calls the handler; from any thread.
  package func launch(_ placement: HandlerPlacement) {
    onLoop { [self] in responder.begin(self, placement) }
  }

  /// Cancels the handler, which nobody wants any more, or whose deadline has passed; from any
  /// thread.
  package func cancelHandler() {
    onLoop { [self] in
      isUnwanted = true
      task?.cancel()
    }
  }

  /// Notes that the handler will not be called; from any thread.
  package func isNotCalled() {
    onLoop { [self] in
      guard !isDone else { return }
      done()
      if hasEnded { link.handlerReturned(from: request.id) }
    }
  }

  private func onLoop(_ body: @escaping @Sendable () -> Void) { responder.loop.runOnLoop(body) }
}
