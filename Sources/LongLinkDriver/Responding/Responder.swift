// SPDX-License-Identifier: Apache-2.0

internal import Logging
package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// Runs the handlers of a peer's requests, and sends their responses. The peer may have any number
/// of links, or none.
///
/// It lives on its loop. The link that carried a request has a row for it until the request has
/// ended and its handler has returned; for a handler that runs in a task, the row keeps the
/// `RunningHandler`. Every such request ends in `end`, once: answered, cancelled by the peer,
/// interrupted, or abandoned with its link.
package final class Responder {
  /// The retry delay that a peer is given when the server's memory budget is spent.
  static let pauseForMemory = Duration.seconds(1)

  let loop: EventLoop
  let routes: Routes
  let peer: Peer
  /// Runs the handlers that share the loop.
  private let handlers: HandlerQueue
  let observers: Observers?
  /// The record of the request that is being handled or ended; nil if nobody observes.
  @safe @exclusivity(unchecked) private(set) var record: ExchangeRecord?
  /// The handlers that run in tasks and whose requests have not ended.
  private var running = 0
  /// The client whose requests can run once; nil if they cannot.
  package var onceClient: (any OnceClient)?
  /// Called when the last request with a handler that runs in a task has ended.
  package var onIdle: (() -> Void)?

  package init(
    peer: Peer, handlers: HandlerQueue, observers: Observers? = nil,
    on loop: EventLoop
  ) {
    self.handlers = handlers
    self.observers = observers
    self.loop = loop
    self.peer = peer
    routes = peer.routes
  }

  /// Handles a request that has arrived.
  package func handle(_ arrival: Arrival, on link: Link) {
    guard let observers else { return route(arrival, on: link) }
    let outer = record
    begin(arrival, on: link, observers)
    route(arrival, on: link)
    record = outer
  }

  /// Passes a request to the handler of its type, or refuses it.
  private func route(_ arrival: Arrival, on link: Link) {
    let type = arrival.type
    guard let slot = routes.slot(of: type) else {
      refuse(arrival, on: link, .unknownType, "no handler for message type \(arrival.tag)")
      return
    }
    // Before anything else, so that a peer without access learns nothing about the route.
    if routes.isWrapped(at: slot), !passes(arrival, on: link, routes[slot]) { return }
    let remaining = link.remaining(of: arrival)
    if remaining == 0 {
      link.count { $0.handlersLate += 1 }
      refuse(arrival, on: link, .deadlinePassed, "the deadline had passed on arrival")
      return
    }
    if let problem = shapeProblem(of: arrival, on: link, routes.shape(at: slot)) {
      refuse(arrival, on: link, .malformed, problem)
      return
    }
    guard link.memory.hasRoom(for: link.connection.inbound) else {
      link.count { $0.refusedForMemory += 1 }
      refuse(
        arrival, on: link, .overloaded, "the server's limits.memoryLimit is reached",
        retryAfter: Responder.pauseForMemory)
      return
    }
    let request = InboundRequest(
      type: type,
      body: link.takeBody(of: arrival),
      id: link.connection.id(of: arrival), peer: peer,
      deadline: remaining.map { loop.now + Int64($0) * 1_000_000 },
      metadata: link.notableMetadata(of: arrival))
    link.count { $0.handled += 1 }
    if request.priority > 0 {
      link.setPriority(request.priority, of: request.serial)
    }
    begin(routes[slot], request, on: link)
  }

  /// Begins the record of a request that has arrived.
  private func begin(_ arrival: Arrival, on link: Link, _ observers: Observers) {
    let isStream = !link.connection.streams.shape(of: arrival.serial).isEmpty
    record = ExchangeRecord(
      arrival.type, of: routes.names[arrival.type], arrival.serial, arrival.payload.count,
      isStream: isStream, link.metadata(of: arrival), on: link, observers)
  }

  /// Runs `body`, during which `record` records what becomes of its request.
  private func recording(_ record: ExchangeRecord?, _ body: () -> Void) {
    guard record != nil || self.record != nil else { return body() }
    let outer = self.record
    self.record = record
    body()
    self.record = outer
  }

  /// The core has refused a request before it got here.
  package func refused(_ type: MessageType, _ serial: UInt32, _ refusal: Refusal, on link: Link) {
    peer.logRefusal(of: type, serial, refusal, on: link)
    guard let observers else { return }
    let method = routes.names[type]
    ExchangeRecord(type, of: method, serial, 0, isStream: false, nil, on: link, observers)
      .respond(refusal.code, isRefused: true, 0, isSent: true, on: link)
  }

  private func begin(_ route: borrowing Route, _ request: InboundRequest, on link: Link) {
    switch route {
    case .inline(let handler): run(handler, request, on: link)
    case .task(let placement, let handler): start(handler, placement, request, on: link)
    case .stream(let route): start(route, request, on: link)
    case .guarded(_, let route), .once(_, let route): begin(route, request, on: link)
    }
  }

  @inline(__always)
  private func run(
    _ handler: @Sendable (InboundRequest) throws -> AnyBody, _ request: InboundRequest,
    on link: Link
  ) {
    loop.handlerBegins(request.type)
    do {
      let body =
        record == nil
        ? try handler(request) : try observed(request, on: link) { try handler(request) }
      loop.handlerPauses()
      answer(request, body, on: link)
    } catch {
      loop.handlerPauses()
      reject(request, error, on: link)
    }
  }

  /// Calls the synchronous handler of a request, in the scope that observers open.
  func observed(
    _ request: InboundRequest, on link: Link, _ handler: () throws -> AnyBody
  ) throws -> AnyBody {
    guard let record, let observers else { return try handler() }
    record.handedOver(request.serial, request.body.count, on: link)
    return try observers.withScope(of: record, handler)
  }

  func start(
    _ handler: @escaping @Sendable (InboundRequest) async throws -> AnyBody,
    _ placement: HandlerPlacement, _ request: InboundRequest, _ channel: ItemChannel? = nil,
    on link: Link
  ) {
    // Kept first, because an executor may run the task to its end at once.
    guard let work = keep(handler, request, channel, on: link) else { return }
    launch(work, placement)
  }

  /// Keeps what runs the handler of a request; returns nil if the request has ended.
  func keep(
    _ handler: @escaping @Sendable (InboundRequest) async throws -> AnyBody,
    _ request: InboundRequest, _ channel: ItemChannel?, on link: Link
  ) -> RunningHandler? {
    let work = RunningHandler(handler, request, channel, record, for: self, on: link)
    guard link.note({ $0.inbound.setPayload(work, of: request.id) }) else {
      channel?.close("the exchange has ended")
      record?.end(.lost(link.connection.phase.endReason ?? .closedHere), .refused)
      link.handlerReturned(from: request.id)
      return nil
    }
    // What is to run once may only wait for a reply.
    if request.onceRun == nil {
      record?.handedOver(request.serial, request.body.count, on: link)
    }
    running += 1
    work.setTimer()
    return work
  }

  func launch(_ work: RunningHandler, _ placement: HandlerPlacement) {
    switch placement {
    case .connectionLoop: handlers.run(work)
    case .globalPool: HandlerQueue.run(work, on: globalConcurrentExecutor)
    case .executor(let executor): HandlerQueue.run(work, on: executor)
    }
  }

  /// A handler has returned.
  func returned(_ work: RunningHandler, _ result: Result<AnyBody, any Error>) {
    // The task may run other handlers now.
    work.task = nil
    if let run = work.request.onceRun { return returned(work, of: run, result) }
    if work.isEnding {
      // An executor runs its tasks at once: this call is within `end`, which goes on.
      work.result = result
      return
    }
    if work.hasEnded { return drop(work, result) }
    // A response with code 200 follows the last item, also one that nobody waited for.
    if case .success = result, let channel = work.channel, !channel.isFlushed {
      work.result = result
      channel.whenWritten {
        self.conclude(work, result)
      } orLate: {
        self.interrupt(
          work, .deadlinePassed, "the peer took no item within \(channel.itemTimeText)")
      }
      return
    }
    conclude(work, result)
  }

  private func conclude(_ work: RunningHandler, _ result: Result<AnyBody, any Error>) {
    work.result = nil
    end(work, cancelling: false) {
      switch result {
      case .success(let body): answer(work.request, body, on: work.link)
      case .failure(let error):
        reject(work.request, error, ofStream: work.channel?.number ?? 0, on: work.link)
      }
    }
  }

  /// Drops what a handler has returned after its request had ended.
  private func drop(_ work: RunningHandler, _ result: Result<AnyBody, any Error>) {
    work.link.count {
      if case .failure(is HandlerSkipped) = result {
        $0.handlersSkipped += 1
      } else {
        $0.droppedResponses += 1
      }
    }
    work.link.handlerReturned(from: work.request.id)
  }

  /// Ends a request whose handler runs in a task.
  func end(
    _ work: RunningHandler, cancelling: Bool = true, _ ending: ExchangeEnding? = nil,
    _ respond: () -> Void = {}
  ) {
    guard !work.hasEnded else { return }
    running -= 1
    work.isEnding = true
    work.end(cancelling: cancelling)
    recording(work.record, respond)
    if let ending { work.record?.end(ending, .sent) }
    work.isEnding = false
    // The handler has returned: before, while its last items waited, or during this end.
    if let result = work.result {
      work.result = nil
      drop(work, result)
    }
    if running == 0 { onIdle?() }
  }
}

// MARK: - Endings that the handler does not make

extension Responder {
  /// Handles the peer's cancel: cancels the handler's task.
  package func cancel(_ request: InboundID, on link: Link) {
    guard let work = link.connection.inbound.handler(ofOutlived: request), !work.hasEnded else {
      return
    }
    link.count { $0.handlersCancelled += 1 }
    end(work, .cancelled)
    left(work, .cancelled)
  }

  /// Handles the end of a link: cancels the tasks of its handlers, but for those that run once.
  package func abandon(_ link: Link, _ reason: CloseReason) {
    for work in link.connection.inbound.outlivedHandlers where !work.hasEnded {
      if work.request.onceRun == nil { link.count { $0.handlersAbandoned += 1 } }
      end(work, .lost(reason))
      left(work, .linkEnded)
    }
  }

  /// Handles that the deadline of a request has passed. A request that is to run once may have no
  /// exchange any more.
  func deadlinePassed(_ work: RunningHandler) {
    work.isLate = true
    work.link.count { $0.handlersLate += 1 }
    interrupt(work, .deadlinePassed, "the deadline passed before the response")
    left(work, .deadlinePassed)
  }

  /// Tells the run of a request that is to run once that its exchange has ended without a reply.
  private func left(_ work: RunningHandler, _ reason: OnceLeaving) {
    guard let run = work.request.onceRun else { return }
    // There is no handler that would return.
    if work.isDone { work.link.handlerReturned(from: work.request.id) }
    run.left(work, reason)
  }

  /// Responds in the handler's place, and cancels its task. The response waits for no room, because
  /// the connection may be about to close, and says that the handler did not make it.
  func interrupt(_ work: RunningHandler, _ code: ResponseCode, _ detail: String) {
    guard !work.hasEnded else { return }
    let link = work.link
    end(work) {
      send(work.request.id, on: link, code, text(detail, on: link), isInterrupting: true)
    }
  }
}

/// Thrown instead of calling the handler of a request that was given up.
struct HandlerSkipped: Error {}

/// Thrown instead of calling a typed handler if the body does not decode.
package struct UndecodableRequest: Error {
  package let reason: BodyError

  package init(_ reason: BodyError) {
    self.reason = reason
  }
}

extension InboundRequest {
  /// Decodes the body, whose memory counts while `lease` lives. A request whose body does not
  /// decode is refused with 400, and one whose body takes too much memory with 413 or 429.
  package func decoded<Message: BodyDecodable>(
    as type: Message.Type, lease: inout DecodedLease?
  ) throws(UndecodableRequest) -> Message {
    do throws(BodyError) {
      return try DecodedLease.decode(type, from: body, in: peer.decoded, lease: &lease)
    } catch {
      throw UndecodableRequest(error)
    }
  }

  /// Decodes a body whose values are few and small: their memory counts only during this call.
  package func decoded<Message: BodyDecodable>(
    as type: Message.Type
  ) throws(UndecodableRequest) -> Message {
    var lease: DecodedLease?
    return try decoded(as: type, lease: &lease)
  }
}
