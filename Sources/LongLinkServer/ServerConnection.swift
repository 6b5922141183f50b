import Logging
import LongLinkConnection
import LongLinkCore
import LongLinkTransport

/// One session of the server, on its loop.
final class ServerConnection {
  let id: UInt64
  let link: Link
  let responder: Responder
  let session: PeerSession
  private let lane: ServerLane
  private var requestsIfAny: Requests?
  private var pushesIfAny: PushQueue?
  private var pushesGoFirst = false
  /// Whether the session could be used.
  var wasOpened = false
  private var isDraining = false
  /// When the session ends whatever still runs.
  private var drainLimit = LinkInstant.distantFuture
  private var drainTimer: LoopTimer?
  private var onDrained: [@Sendable () -> Void] = []

  init(id: UInt64, stream: any ByteStream, _ settings: SessionSettings, lane: ServerLane) {
    self.id = id
    self.lane = lane
    link = Link(
      id: UInt32(truncatingIfNeeded: id), stream: stream, isConnected: true,
      settings: settings, on: lane.loop, log: lane.log,
      label: ("session", id), share: lane.memory)
    session = PeerSession(id: id, address: link.peer, on: lane.loop)
    responder = Responder(link: link, routes: lane.routes, session: session)
    session.attach(to: self)
    responder.onIdle = { [unowned self] in finishIfDrained() }
  }

  /// Requests of the server to this client; made when the first one is.
  private var requests: Requests {
    if let requestsIfAny { return requestsIfAny }
    let made = Requests(
      role: .server, limits: lane.requestLimits, serials: lane.serials, on: lane.loop)
    made.onIdle = { [weak self] in self?.finishIfDrained() }
    if link.session.isOpen { made.opened(link) }
    requestsIfAny = made
    return made
  }

  /// Pushes that wait for room; made when the first one is sent.
  private var pushes: PushQueue {
    if let pushesIfAny { return pushesIfAny }
    let made = PushQueue(
      maxWaiting: lane.requestLimits.maxWaiting,
      maxWaitingBytes: lane.requestLimits.maxWaitingBytes, timeout: lane.defaults.timeout,
      on: lane.loop)
    pushesIfAny = made
    return made
  }

  /// Pushes that wait for room.
  var pushesWaiting: Int { pushesIfAny?.count ?? 0 }
  var pushCounters: PushQueueCounters { pushesIfAny?.counters ?? PushQueueCounters() }

  /// There is room again: requests and pushes take turns in being the first to use it.
  private func resumeSending() {
    pushesGoFirst.toggle()
    if pushesGoFirst { pushesIfAny?.pump(over: link) }
    requestsIfAny?.pump()
    pushesIfAny?.pump(over: link)
  }

  var requestCounters: RequestCounters { requestsIfAny?.counters ?? RequestCounters() }

  /// Tells the client to go, and ends the session when what runs has ended, or when the time is up.
  ///
  /// The client is told once; a later call may only bring the end nearer.
  func drain(
    within bound: Int64, _ farewell: Farewell, _ completion: @escaping @Sendable () -> Void
  ) {
    guard link.isAlive else {
      completion()
      return
    }
    onDrained.append(completion)
    isDraining = true
    link.session.goAway(
      code: .draining, reason: farewell.reason, spread: farewell.spread.wireMilliseconds,
      retryAfter: farewell.retryAfter.wireMilliseconds, alternatives: farewell.alternatives)
    link.drain()
    finishIfDrained()
    guard link.isAlive else { return }
    let limit = lane.loop.now + bound
    guard limit < drainLimit else { return }
    drainLimit = limit
    if let drainTimer { lane.loop.cancel(drainTimer) }
    drainTimer = lane.loop.schedule(at: limit, self, token: 0)
  }

  private func finishDraining() {
    if let drainTimer { lane.loop.cancel(drainTimer) }
    drainTimer = nil
    let waiters = onDrained
    onDrained = []
    for waiter in waiters { waiter() }
  }

  private func finishIfDrained() {
    if isDraining { finishIfDone() }
  }

  private func finishIfDone() {
    guard link.session.requestsRunning == 0, link.session.outbox.isEmpty,
      requestsIfAny?.carriedCount ?? 0 == 0, pushesWaiting == 0
    else { return }
    link.session.shutDown(at: lane.loop.now)
    link.drain()
  }
}

extension ServerConnection: TimerHandler {
  func timerFired(token: UInt64) {
    drainTimer = nil
    link.close(.closedHere)
  }
}

extension ServerConnection: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    switch message.kind {
    case .request:
      responder.handle(message)
      finishIfDrained()
    case .response:
      requests.answered(message, on: link)
      finishIfDrained()
    default:
      let body = link.session.takeBytes(of: message.payload)
      lane.received(Push(type: message.type, body: body), from: session)
    }
  }

  func link(_ link: Link, did effect: Effect) {
    switch effect {
    case .cancel(let serial):
      responder.cancel(serial)
    case .collect(let serial):
      requests.collect(serial, on: link)
    case .established:
      // The frame that opened the session may have broken a rule in the same breath.
      guard link.session.isOpen else { return }
      requestsIfAny?.opened(link)
      lane.opened(self)
    case .began(let serial, let begin, let ordinal):
      requests.began(serial, on: link, at: begin, ordinal: ordinal)
    case .finished(let serial):
      requests.finishedSending(serial, on: link)
    case .resumeSending:
      resumeSending()
    case .peerLeaving(let goaway):
      link.log(
        .info, "The client is going away",
        ["code": "\(goaway.code)", "detail": "\(PeerText(goaway.reason))"])
      requestsIfAny?.leaving(
        link, accepted: goaway.requestsAccepted, code: ResponseCode(rawValue: goaway.code),
        reason: goaway.reason)
      // There is no other link that they could wait for.
      requestsIfAny?.failWaiting(all: true) { operation, _ in goneAway(operation, goaway) }
      isDraining = true
      finishIfDrained()
    case .abandon(let reason):
      session.ended(reason)
      lane.abandoned(reason)
      responder.abandon()
      requestsIfAny?.lost(link, reason, resends: false)
      requestsIfAny?.failWaiting(all: true) { operation, _ in
        .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
      }
      pushesIfAny?.failAll { operation in
        .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
      }
    case .damaged, .ponged, .heartbeatAnswered, .message, .shutDownWriting, .close:
      break
    }
  }

  func linkWroteAll(_ link: Link) {
    finishIfDrained()
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    requestsIfAny?.failWaiting(all: true) { operation, _ in
      .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
    }
    requestsIfAny?.stop()
    switch reason {
    case .violation, .heartbeatLost, .stalledPeer, .unreadOutput, .memoryLimit:
      link.log(.warning, "Session ended", reason.logMetadata)
    case .closedByPeer, .closedHere, .goneAway, .handshakeTimeout, .left, .transport:
      link.log(.debug, "Session ended", reason.logMetadata)
    }
    session.detach()
    // A handler's task may hold the responder for longer than the server holds this.
    responder.onIdle = nil
    responder.onLateReturn = { [weak lane] wasSkipped in
      lane?.handlerReturnedLate(wasSkipped: wasSkipped)
    }
    lane.ended(self)
    finishDraining()
  }
}

extension ServerConnection: PeerSessionOwner {
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    guard let failure = failureOfRequests else {
      return requests.submit(type, body, options, completion, defaults: lane.defaults)
    }
    return requests.submit(
      type, body, copy options, completion, defaults: lane.defaults, failing: failure)
  }

  /// Makes the error of a request that cannot even wait; nil where it may.
  private var failureOfRequests: ((LongLinkError.Operation) -> LongLinkError)? {
    // While the session closes nobody is left who would end what begins to wait.
    guard link.isAlive, link.session.isLive else { return session.endedError }
    if let objection = lane.objectionToRequests {
      return { [link] operation in
        LongLinkError(.unsupported, doing: operation, detail: objection, peer: link.peer)
      }
    }
    return link.session.peerGoAway.map { goaway in
      { [self] operation in goneAway(operation, goaway) }
    }
  }

  /// The error of a request to a client that takes none any more.
  private func goneAway(_ operation: LongLinkError.Operation, _ goaway: GoAway) -> LongLinkError {
    .lost(
      .goneAway(ResponseCode(rawValue: goaway.code)), delivery: .notSent, doing: operation,
      peer: link.peer)
  }

  func state(of id: RequestID) -> RequestState? {
    requestsIfAny?.state(of: id)
  }

  func cancel(_ id: RequestID) {
    requests.cancel(id)
  }

  func push(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: PushOptions
  ) -> PushStep {
    guard link.session.isLive else {
      return .ended(.failure(session.endedError(doing: .push(type))))
    }
    return pushes.push(type, body, options, over: link)
  }

  func pushNow(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32
  ) throws(LongLinkError) {
    guard link.session.isLive else { throw session.endedError(doing: .push(type)) }
    try pushes.pushNow(type, body, priority: priority, over: link)
  }

  func cancelPush(_ id: UInt64) {
    pushesIfAny?.cancel(id)
  }

  func closeSession(_ id: UInt64) {
    link.session.shutDown(at: lane.loop.now)
    link.drain()
  }
}
