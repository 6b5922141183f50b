// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
import LongLinkTransport

/// One connection of the server, on its loop.
final class ServerConnection {
  let id: UInt64
  let admission: Admission
  let link: Link
  let responder: Responder
  let peer: Peer
  /// The client, once the connection is open; nil if it showed neither a `client_id` nor a
  /// principal.
  var client: ServerClient?
  let lane: ServerLane
  private(set) var requestsIfAny: Requests?
  private(set) var pushesIfAny: PushQueue?
  /// When the connection was opened; nil before, and on a short link.
  var openedAt: LinkInstant?
  var wasOpened: Bool { openedAt != nil }
  /// Whether the connection still counts for `limits.maxHandshakes`.
  var isUnopened = true
  private var closesWhenUnused = false
  /// When the connection is closed even if requests still run; `distantFuture` without a drain.
  private var drainLimit = LinkInstant.distantFuture
  private var drainTimer: LoopTimer?
  /// The code and reason of the first goaway that the client was sent; nil before it.
  private var notice: (code: ResponseCode, reason: String)?
  /// The timer for the credential's expiry; `.none` if it has expired while its renewal is judged.
  private var expiryTimer: LoopTimer?
  private var onDrained: [@Sendable () -> Void] = []

  /// Whether a trusted proxy in front of a gateway has decrypted what the client sends.
  var isSecuredByProxy = false
  /// A short link as the gateway has handed it over; nil once the link is open.
  var accepted: (any AcceptedTransport)?

  init(
    _ admission: Admission, _ transport: any Transport, _ settings: ConnectionSettings,
    lane: ServerLane
  ) {
    self.admission = admission
    id = admission.id
    self.lane = lane
    let observers = lane.observers
    lane.configuration.record(on: lane.loop, as: lane.number)
    link = Link(
      id: UInt32(truncatingIfNeeded: id), transport: transport,
      // With security, a transport is connected only when it is secure.
      isConnected: settings.isShort || lane.configuration.security == nil, settings: settings,
      on: lane.loop, log: lane.log,
      label: ("connection", id), share: lane.memory, peer: admission.address,
      group: admission.group,
      readLimits: lane.configuration.readLimits, observers: observers)
    peer = Peer(
      id: id, address: link.peer, routes: lane.routes, log: lane.log, on: lane.loop,
      decoded: link.memory.decoded, observers: observers)
    responder = Responder(
      peer: peer, handlers: lane.handlers, observers: observers, on: lane.loop)
    peer.attach(to: self)
    responder.onIdle = { [unowned self] in finishIfDrained() }
  }

  /// The server's requests to this client; created with the first one.
  private var requests: Requests {
    if let requestsIfAny { return requestsIfAny }
    let made = Requests(
      role: .server, limits: lane.requestLimits, serials: lane.serials, on: lane.loop)
    made.onIdle = { [weak self] in self?.finishIfDrained() }
    if link.isOpen { made.opened(link) }
    requestsIfAny = made
    return made
  }

  /// The queue of pushes that wait for room; created with the first push.
  private var pushes: PushQueue {
    if let pushesIfAny { return pushesIfAny }
    let made = PushQueue(
      maxWaiting: lane.requestLimits.maxWaiting,
      maxWaitingBytes: lane.requestLimits.maxWaitingBytes, timeout: lane.defaults.timeout,
      on: lane.loop)
    pushesIfAny = made
    return made
  }

  /// The number of pushes that wait for room.
  var pushesWaiting: Int { pushesIfAny?.count ?? 0 }
  var requestCounters: RequestCounters { requestsIfAny?.counters ?? RequestCounters() }

  /// Sends a goaway, and closes the connection when its requests have ended and, where the notice
  /// awaits it, its client has left it; or after `bound` nanoseconds.
  ///
  /// The goaway is sent once; a later call can only shorten the bound.
  func drain(
    within bound: Int64, _ drainNotice: DrainNotice,
    _ completion: @escaping @Sendable () -> Void
  ) {
    guard link.isAlive else {
      completion()
      return
    }
    onDrained.append(completion)
    notice = notice ?? (drainNotice.code, drainNotice.reason)
    link.record?.departs(drainNotice.departure)
    // Only clients that can be told to move say that they have moved.
    if !drainNotice.awaitsMove || !link.connection.announcesLeaving { closesWhenUnused = true }
    let limit = lane.loop.now + bound
    link.goAway(
      code: drainNotice.code, reason: drainNotice.reason,
      spread: drainNotice.spread.wireMilliseconds,
      retryAfter: drainNotice.retryAfter.wireMilliseconds, alternatives: drainNotice.alternatives)
    if limit < drainLimit { peer.announce(.draining(until: limit)) }
    if drainLimit == .distantFuture { responder.tellDraining(of: link) }
    finishIfDrained()
    guard link.isAlive, limit < drainLimit else { return }
    drainLimit = limit
    if let drainTimer { lane.loop.cancel(drainTimer) }
    drainTimer = lane.loop.schedule(at: limit, self, token: Timer.drain.rawValue)
  }

  /// Starts the validity of the client's credential, in nanoseconds; nil for no end.
  func expires(after time: Int64?) {
    if let expiryTimer { lane.loop.cancel(expiryTimer) }
    expiryTimer = nil
    // A short link ends with its request.
    guard let time, !link.connection.settings.isShort else { return }
    expiryTimer = lane.loop.schedule(at: lane.loop.now + time, self, token: Timer.expiry.rawValue)
  }

  private func expired() {
    guard !link.connection.isRenewing else {
      expiryTimer = LoopTimer.none
      return
    }
    expiryTimer = nil
    lane.credentialExpired(self)
  }

  /// Lets the credential expire if its time was over before its renewal was refused.
  func notRenewed() {
    if expiryTimer == LoopTimer.none { expired() }
  }

  private func finishDraining() {
    for timer in [drainTimer, expiryTimer] { if let timer { lane.loop.cancel(timer) } }
    (drainTimer, expiryTimer) = (nil, nil)
    let waiters = onDrained
    onDrained = []
    for waiter in waiters { waiter() }
  }

  private func finishIfDrained() {
    // A short link ends by itself after its response.
    guard closesWhenUnused, !link.connection.settings.isShort, link.connection.outbox.isEmpty,
      pushesWaiting == 0
    else {
      return
    }
    link.shutDownIfUnused(by: requestsIfAny)
  }
}

extension ServerConnection: TimerHandler {
  private enum Timer: UInt64 {
    case drain
    case expiry
  }

  func timerFired(token: UInt64) {
    if token == Timer.expiry.rawValue { return expired() }
    drainTimer = nil
    // Closing fails the requests that still run: no response could claim to be the handler's. Items
    // that were written are sent first; nothing else is waited for.
    if link.connection.hasStreams || link.connection.settings.isShort {
      link.shutDown(saying: notice)
    } else {
      link.close(.closedHere)
    }
  }
}

extension ServerConnection: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    switch message.kind {
    case .request:
      responder.handle(message, on: link)
      finishIfDrained()
    case .response:
      requests.answered(message, on: link)
      finishIfDrained()
    case .item, .end:
      side(of: message.serial).received(item: message, on: link)
    default:
      lane.received(Push(type: message.type, body: link.takeBody(of: message)), from: peer)
    }
  }

  func link(_ link: Link, reports news: LifeNews) {
    switch news {
    case .established:
      // The frame that opened the connection may also have broken a rule.
      guard link.isOpen else { return }
      let isNew = !link.connection.settings.isShort && joinClient()
      if link.connection.settings.isShort, !link.connection.settings.identifies {
        peer.identified(as: nil, security: link.security)
      }
      requestsIfAny?.opened(link)
      lane.opened(self, isNew: isNew)
    case .renewed: break
    case .peerLeaving(let goaway):
      link.log(
        .debug, "The client is going away",
        ["code": "\(goaway.code)", "detail": "\(PeerText(goaway.reason))"])
      requestsIfAny?.leaving(
        link, accepted: goaway.requestsAccepted, code: ResponseCode(wire: goaway.code),
        reason: goaway.reason, acceptsNext: ResponseCode(wire: goaway.code) == .draining)
      // Fail them, because a server's requests have no other link to wait for.
      requestsIfAny?.failWaiting(all: true) { operation, _ in goneAway(operation, goaway) }
      closesWhenUnused = true
      if peer.announce(.leaving) { responder.tellDraining(of: link) }
      finishIfDrained()
    case .abandon(let reason):
      peer.ended(reason)
      client?.leave(peer)
      lane.abandoned(self, reason)
      responder.abandon(link, reason)
      requestsIfAny?.lost(link, reason, resends: false)
      requestsIfAny?.failWaiting(all: true) { operation, _ in
        .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
      }
      pushesIfAny?.failAll { operation in
        .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
      }
    }
  }

  func link(_ link: Link, reports news: RequestNews) {
    // A connection without requests needs no table of them for stray frames.
    if case .stray = news, requestsIfAny == nil { return }
    requests.heard(news, on: link)
  }

  func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {
    side(of: serial).heard(news, of: serial, on: link)
  }

  func link(_ link: Link, observed observation: LinkObservation) {
    if case .refused(let type, let serial, let refusal) = observation {
      responder.refused(MessageType(tag: type), serial, refusal, on: link)
    }
  }

  func requestsCarried(by link: Link) -> Int { requestsIfAny?.carriedCount(by: link) ?? 0 }

  func linkIdentifies(_ link: Link) { lane.identify(self) }

  func link(_ link: Link, cancels request: InboundID) {
    responder.cancel(request, on: link)
    finishIfDrained()
  }

  func linkResumesSending(_ link: Link) { link.shareRoom(requestsIfAny, pushesIfAny) }

  /// The side that handles a stream: the requester's if the serial is the server's own.
  private func side(of serial: UInt32) -> any StreamSide {
    link.connection.settings.role.owns(serial) ? requests : responder
  }

  func linkWroteAll(_ link: Link) {
    finishIfDrained()
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    requestsIfAny?.failWaiting(all: true) { operation, _ in
      .lost(reason, delivery: .notSent, doing: operation, peer: link.peer)
    }
    requestsIfAny?.stop()
    logEnd(reason)
    peer.detach()
    // A handler's task may retain the responder longer than the server retains this connection.
    responder.onIdle = nil
    lane.ended(self)
    finishDraining()
  }
}

extension ServerConnection: PeerOwner {
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    requests.submit(
      type, body, options, completion, defaults: lane.defaults, failure: failureOfRequests)
  }

  func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    after delay: Int64
  ) -> RequestID {
    // No later connection carries a request that fails here, so retrying would be in vain.
    let hasLeft = link.connection.goodbyes.ofPeer != nil
    guard let failure = hasLeft ? peer.endedError : failureOfRequests else {
      return requests.submit(
        type, body, options, completion, defaults: lane.defaults, after: delay)
    }
    return requests.submit(
      type, body, options, completion, defaults: lane.defaults, failure: failure)
  }

  var reconnect: ReconnectPolicy { ReconnectPolicy() }

  /// Makes the error of a request that must fail at once; nil if it may be submitted.
  private var failureOfRequests: ((LongLinkError.Operation) -> LongLinkError)? {
    // While the connection closes, nothing would end a request that begins to wait.
    guard link.isAlive, link.isLive else { return peer.endedError }
    if let objection = link.connection.settings.isShort
      ? objectionOfShortLinks : lane.objectionToRequests
    {
      return { [link] operation in
        LongLinkError(.unsupported, doing: operation, detail: objection, peer: link.peer)
      }
    }
    return link.connection.goodbyes.ofPeer.map { goaway in
      { [self] operation in goneAway(operation, goaway) }
    }
  }

  private var objectionOfShortLinks: String {
    "the client has sent its request over a short link, which carries only the answer back"
  }

  /// Returns the error of a request to a client that has sent goaway.
  private func goneAway(_ operation: LongLinkError.Operation, _ goaway: GoAway) -> LongLinkError {
    .lost(
      .goneAway(ResponseCode(wire: goaway.code)), delivery: .notSent, doing: operation,
      peer: link.peer)
  }

  func state(of id: RequestID) -> RequestState? {
    requestsIfAny?.state(of: id)
  }

  func cancel(_ id: RequestID) {
    requests.cancel(id)
  }

  func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link) {
    guard link.isLive else { throw peer.endedError(doing: .push(type)) }
    guard !link.connection.settings.isShort else {
      throw LongLinkError(
        .unsupported, doing: .push(type), detail: objectionOfShortLinks, peer: link.peer)
    }
    return (pushes, link)
  }

  func perform(_ command: PeerCommand, on id: UInt64) {
    switch command {
    case .close: link.shutDown()
    case .probe:
      peer.announce(.moved)
      link.probe()
    case .leave: lane.retire(self)
    }
  }
}
