// SPDX-License-Identifier: Apache-2.0

internal import Logging
package import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// Runs the handlers of one connection's inbound requests, and sends their responses.
///
/// It lives on its loop. A request is removed from `running` exactly once: answered, cancelled by
/// the peer, past its deadline, or with the connection. In the last three cases its handler's task
/// is cancelled, and the connection counts the request until the handler returns.
package final class Responder: TimerHandler {
  struct Running {
    /// Distinguishes the request from a later one with the same serial.
    let number: UInt64
    var task: Task<Void, any Error>?
    var timer: LoopTimer?
    /// This side of its stream, if it carries items.
    var channel: ItemChannel?
  }

  /// The retry delay that a peer is given when the server's memory budget is spent.
  private static let pauseForMemory = Duration.seconds(1)

  let link: Link
  /// The link's loop, copied so that reading it does not retain the link.
  private let loop: EventLoop
  let routes: Routes
  let peer: Peer
  var running: SerialTable<Running>
  private var started: UInt64 = 0
  /// Called when the last handler has ended.
  package var onIdle: (() -> Void)?

  package init(link: Link, routes: Routes, peer: Peer) {
    self.link = link
    loop = link.loop
    self.routes = routes
    self.peer = peer
    running = SerialTable(mix: Link.serialMix)
  }

  /// Handles a request that has arrived.
  package func handle(_ arrival: Arrival) {
    let type = arrival.type
    guard let slot = routes.slot(of: type) else {
      refuse(arrival, .unknownType, "no handler for message type \(arrival.tag)")
      return
    }
    // Before anything else, so that a peer without access learns nothing about the route.
    if routes.isGuarded(at: slot), case .guarded(let rule, _) = routes[slot], !rule.allows(peer) {
      refuseAccess(arrival)
      return
    }
    let remaining = link.remaining
    if remaining == 0 {
      link.count { $0.handlersLate += 1 }
      refuse(arrival, .deadlinePassed, "the deadline had passed on arrival")
      return
    }
    if let problem = shapeProblem(of: arrival, routes.shape(at: slot)) {
      refuse(arrival, .malformed, problem)
      return
    }
    guard link.hasMemory else {
      link.count { $0.refusedForMemory += 1 }
      refuse(
        arrival, .overloaded, "the server's memoryLimit is reached",
        retryAfter: Responder.pauseForMemory)
      return
    }
    let request = InboundRequest(
      type: type,
      body: link.takeBody(of: arrival),
      byteCount: arrival.byteCount,
      serial: arrival.serial, peer: peer,
      deadline: remaining.map { loop.now + Int64($0) * 1_000_000 },
      metadata: link.notableMetadata)
    link.count { $0.handled += 1 }
    if request.priority > 0 { link.setPriority(request.priority, of: request.serial) }
    begin(routes[slot], request)
  }

  private func begin(_ route: borrowing Route, _ request: InboundRequest) {
    switch route {
    case .inline(let handler): run(handler, request)
    case .task(let placement, let handler): start(handler, placement, request)
    case .stream(let route): start(route, request)
    case .guarded(_, let route): begin(route, request)
    }
  }

  private func run(
    _ handler: @Sendable (InboundRequest) throws -> AnyBody, _ request: InboundRequest
  ) {
    loop.handlerBegins(request.type)
    do {
      let body = try handler(request)
      loop.handlerPauses()
      answer(request, body)
    } catch {
      loop.handlerPauses()
      reject(request, error)
    }
  }

  func start(
    _ handler: @escaping @Sendable (InboundRequest) async throws -> AnyBody,
    _ placement: HandlerPlacement, _ request: InboundRequest, _ channel: ItemChannel? = nil
  ) {
    started += 1
    let number = started
    var entry = Running(number: number, channel: channel)
    if let deadline = request.deadline {
      entry.timer = loop.schedule(at: deadline, self, token: UInt64(request.serial))
    }
    let work = HandlerRun(
      handler: handler, request: request, number: number, responder: LoopBound(self, on: loop),
      loop: loop)
    // Inserted first, because an executor may run the task to its end at once.
    running.insert(entry, for: request.serial)
    let executor: any TaskExecutor =
      switch placement {
      case .connectionLoop: loop
      case .globalPool: globalConcurrentExecutor
      case .executor(let executor): executor
      }
    // The task never throws. A non-throwing one would cost another allocation for each request,
    // because the runtime wraps it in a throwing one.
    let task = Task(executorPreference: executor) { () async throws -> Void in await work() }
    _ = running.update(request.serial) { entry in
      if entry.number == number { entry.task = task }
    }
  }

  fileprivate func finished(
    _ request: InboundRequest, _ number: UInt64, _ result: Result<AnyBody, any Error>
  ) {
    guard running[request.serial]?.number == number else {
      // Meanwhile the peer cancelled it, its deadline passed, or the connection ended.
      if case .failure(is HandlerSkipped) = result {
        link.count { $0.handlersSkipped += 1 }
      } else {
        link.count { $0.droppedResponses += 1 }
      }
      link.handlerReturned(bytes: request.byteCount)
      return
    }
    let channel = running[request.serial]?.channel
    // A response with code 200 follows the last item, also one that nobody waited for.
    if case .success = result, let channel, !channel.isFlushed {
      channel.whenWritten {
        self.finished(request, number, result)
      } orLate: {
        self.giveUp(request.serial, .deadlinePassed, "the peer took no item in time")
      }
      return
    }
    end(request.serial)
    switch result {
    case .success(let body): answer(request, body)
    case .failure(let error): reject(request, error, ofStream: channel?.number ?? 0)
    }
    if running.isEmpty { onIdle?() }
  }

  /// Removes a request. If its handler has returned and items still wait, returns what is left to
  /// do once the connection knows that the request has ended.
  @discardableResult
  func end(_ serial: UInt32) -> (() -> Void)? {
    guard let entry = running.remove(serial) else { return nil }
    if let timer = entry.timer { loop.cancel(timer) }
    let rest = entry.channel?.onWritten
    entry.channel?.close("the exchange has ended")
    return rest
  }
}

// MARK: - Responses

extension Responder {
  private func reject(
    _ request: InboundRequest, _ error: any Error, ofStream stream: UInt64 = 0
  ) {
    switch error {
    case let rejection as Rejection where rejection.code != .ok:
      send(
        request, rejection.code, rejection.body,
        dialectCode: rejection.dialectCode, retryAfter: rejection.retryAfter)
    case let error as UndecodableRequest:
      refuse(request, error.reason)
    case let error as BodyError:
      send(request, .malformed, text("\(error)"))
    case let error as LongLinkError
    where error.code == .deadlineExceeded && error.isOf(stream: stream):
      send(request, .deadlinePassed, text(error.detail))
    case let error as LongLinkError
    where error.code == .decodingFailed && error.isOf(stream: stream):
      link.count { $0.undecodable += 1 }
      send(request, .malformed, text(error.detail))
    case let error as LongLinkError where error.code == .overloaded && error.isOf(stream: stream):
      link.count { $0.refusedForMemory += 1 }
      send(request, .overloaded, text(error.detail), retryAfter: Responder.pauseForMemory)
    case is CancellationError:
      send(request, .cancelled, text("cancelled"))
    case is HandlerSkipped:
      link.count { $0.handlersSkipped += 1 }
      send(request, .cancelled, text("cancelled"), isRefused: true)
    default:
      link.count { $0.handlersFailed += 1 }
      // The error's text may contain data that the peer must not see, so it is only logged. It may
      // also contain text from the peer, so it is escaped and cut.
      link.log(
        .error, "A handler failed",
        metadata(request.type, request.serial, ["error": "\(PeerText("\(error)"))"]))
      send(request, .failed, text("the handler failed"))
    }
  }

  /// Refuses a request whose body does not decode, or not within its memory. A client may retry the
  /// latter if another time can differ.
  private func refuse(_ request: InboundRequest, _ reason: BodyError) {
    let code: ResponseCode
    switch reason.code {
    case .outOfMemory:
      link.count { $0.refusedForMemory += 1 }
      code = .overloaded
    case .tooLarge:
      link.count { $0.undecodable += 1 }
      code = .tooLarge
    default:
      link.count { $0.undecodable += 1 }
      code = .malformed
    }
    // `isRefused` tells the peer that the handler was not called.
    send(
      request, code, text("\(reason)"), isRefused: true,
      retryAfter: code == .overloaded ? Responder.pauseForMemory : nil)
  }

  func send(
    _ request: InboundRequest, _ code: ResponseCode, _ body: [UInt8], isRefused: Bool = false,
    dialectCode: UInt32? = nil, retryAfter: Duration? = nil
  ) {
    let isOwed = send(
      request.serial, code, body, isRefused: isRefused, dialectCode: dialectCode,
      retryAfter: retryAfter)
    if !isOwed { link.handlerReturned(bytes: request.byteCount) }
  }

  /// Sends a response; returns false if the request had already ended.
  func send(
    _ serial: UInt32, _ code: ResponseCode, _ body: [UInt8], isRefused: Bool = false,
    isInterrupted: Bool = false, dialectCode: UInt32? = nil, retryAfter: Duration? = nil
  ) -> Bool {
    var metadata: MetadataBlock?
    if isInterrupted || retryAfter != nil, link.features.contains(.metadata) {
      metadata = try? Metadata(
        retryAfter: retryAfter?.wireMilliseconds ?? 0, interrupted: isInterrupted
      ).encodedBlock()
    }
    var room = link.maxBody
    if let block = metadata {
      room -= 2 + block.count
      if room < 0 { (metadata, room) = (nil, link.maxBody) }
    }
    var body = body.count > room ? Array(body.prefix(room)) : body
    // Checked after it was cut, because a cut body may end with part of a delimiter.
    if (try? link.validate(body)) == nil { body = [] }
    return link.respond(
      serial, code: code, isRefused: isRefused, isUrgent: isInterrupted, ownCode: dialectCode,
      metadata: metadata, body)
  }

  /// The framework's text for the peer; empty in a dialect, which has no field for it.
  func text(_ text: String) -> [UInt8] {
    link.isNative ? Array(text.utf8) : []
  }

  func refuse(
    _ arrival: Arrival, _ code: ResponseCode, _ detail: String, retryAfter: Duration? = nil
  ) {
    let isOwed = send(
      arrival.serial, code, text(detail), isRefused: true, retryAfter: retryAfter)
    if !isOwed { link.handlerReturned(bytes: arrival.byteCount) }
  }
}

// MARK: - Endings without a response

extension Responder {
  /// Handles the peer's cancel: cancels the handler's task.
  package func cancel(_ serial: UInt32) {
    guard let task = running[serial]?.task else { return }
    link.count { $0.handlersCancelled += 1 }
    let rest = end(serial)
    task.cancel()
    rest?()
    if running.isEmpty { onIdle?() }
  }

  /// Cancels every handler's task when the connection has ended.
  package func abandon() {
    let serials = running.keys.sorted()
    for serial in serials {
      let task = running[serial]?.task
      let rest = end(serial)
      task?.cancel()
      rest?()
    }
    link.count { $0.handlersAbandoned += UInt64(serials.count) }
  }

  package func timerFired(token: UInt64) {
    let serial = UInt32(token)
    guard running[serial]?.task != nil else { return }
    link.count { $0.handlersLate += 1 }
    giveUp(serial, .deadlinePassed, "the deadline passed before the response")
  }

  /// Responds in the handler's place, and cancels its task. The response waits for no room, because
  /// the connection may be about to close, and says that the handler did not make it.
  func giveUp(_ serial: UInt32, _ code: ResponseCode, _ detail: String) {
    guard let task = running[serial]?.task else { return }
    let rest = end(serial)
    task.cancel()
    link.outlives(serial)
    _ = send(serial, code, text(detail), isInterrupted: true)
    rest?()
    if running.isEmpty { onIdle?() }
  }
}

/// One run of an asynchronous handler.
private struct HandlerRun: Sendable {
  let handler: @Sendable (InboundRequest) async throws -> AnyBody
  let request: InboundRequest
  let number: UInt64
  let responder: LoopBound<Responder>
  let loop: EventLoop

  func callAsFunction() async {
    if loop.isCurrent { loop.handlerBegins(request.type) }
    // A request that was given up before its task ran: skip the handler.
    let result: Result<AnyBody, any Error>
    do {
      if Task.isCancelled { throw HandlerSkipped() }
      result = .success(try await handler(request))
    } catch {
      result = .failure(error)
    }
    if loop.isCurrent {
      finish(result)
    } else {
      loop.execute { finish(result) }
    }
  }

  private func finish(_ result: Result<AnyBody, any Error>) {
    responder.value.finished(request, number, result)
  }
}

/// Thrown instead of calling the handler of a request that was given up.
private struct HandlerSkipped: Error {}

/// Thrown instead of calling a typed handler if the body does not decode.
package struct UndecodableRequest: Error {
  package let reason: BodyError

  package init(_ reason: BodyError) {
    self.reason = reason
  }
}

extension InboundRequest {
  /// Decodes the body, which counts while `lease` lives. A request whose body does not decode is
  /// refused with 400, and one whose body takes too much memory with 413 or 429.
  package func decoded<Message: BodyDecodable>(
    as type: Message.Type, lease: inout DecodedLease?
  ) throws(UndecodableRequest) -> Message {
    do throws(BodyError) {
      return try DecodedLease.decode(type, from: body, in: peer.decoded, lease: &lease)
    } catch {
      throw UndecodableRequest(error)
    }
  }

  /// Decodes a body whose values are few and small: they count only while it is decoded.
  package func decoded<Message: BodyDecodable>(
    as type: Message.Type
  ) throws(UndecodableRequest) -> Message {
    var lease: DecodedLease?
    return try decoded(as: type, lease: &lease)
  }
}
