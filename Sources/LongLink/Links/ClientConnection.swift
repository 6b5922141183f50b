// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
import LongLinkTransport

/// One connection of a client, from its connect to its end. It passes what its link receives to the
/// client's requests and to its own responder, and tells the client's machine the rest.
final class ClientConnection {
  enum Stage {
    /// The handshake is not complete.
    case opening
    /// The handshake is not complete, and the connection is not needed any more. Once it is
    /// complete, the connection is left.
    case unwanted
    /// The connection stands its trial, which began at that time.
    case tried(since: LinkInstant)
    /// The application prepares the connection, whose handshake was complete at that time.
    case preparing(since: LinkInstant)
    /// The connection never takes requests of the client: it is not needed, or the server sent a
    /// goaway during the trial or the preparation, or the preparation has failed.
    case left
    /// The connection has taken new requests since that time.
    case used(since: LinkInstant)
  }

  let link: Link
  let peer: Peer
  private let responder: Responder
  let core: ClientCore
  let requests: Requests
  var stage = Stage.opening
  /// The call of `prepare`; nil if there is none, or if it has succeeded.
  var preparation: Preparation?
  /// Why the connection cannot be used, although it was opened.
  var unusable: ConnectFailure?
  /// Whether a server that drains has sent the client away, and the client has no other connection
  /// yet: it reads on here until it has one.
  var awaitsNext = false
  /// Whether the connection has shown that the server is healthy.
  private var hasWorked = false
  /// The number of the client's network path when the connection was made.
  private let path: Int
  /// The number of bytes that had arrived when the connection was established; nil before.
  private var bytesBefore: UInt64?
  /// The number of requests that the connection carried when it was lost.
  private var requestsLost = 0

  init(_ link: Link, to address: SocketAddress, for core: ClientCore) {
    self.link = link
    self.core = core
    requests = core.requests
    path = core.pathHeartbeat?.path ?? 0
    let observers = core.configuration.observers
    peer = Peer(
      id: UInt64(link.id), address: address, routes: core.router.snapshot, log: core.log,
      on: core.loop, observers: core.configuration.requestObservers)
    peer.attach(to: core)
    responder = Responder(
      peer: peer, handlers: core.handlers, observers: observers, on: core.loop)
  }

  /// Whether the handshake was completed.
  private var isOpened: Bool {
    switch stage {
    case .opening, .unwanted: false
    case .tried, .preparing, .left, .used: true
    }
  }

  /// Whether bytes have arrived since the connection was established. True without any in a
  /// protocol that has no ping, because there none need ever arrive.
  var isHeard: Bool {
    guard let bytesBefore else { return false }
    return link.counters.bytesReceived > bytesBefore || !link.connection.framing.canProbe
  }

  /// Whether the server has answered any exchange with a response, an item or credit.
  private var hasAnswered: Bool {
    let counters = link.counters
    return counters.responsesReceived + counters.itemsReceived + counters.creditsReceived > 0
  }

  /// Closes the link once its last request has ended, if it takes no new requests.
  private func finishIfLeft() {
    switch stage {
    case .left, .used: core.finishIfDone(link)
    case .opening, .unwanted, .tried, .preparing: break
    }
  }
}

// MARK: - What the machine decides

extension ClientConnection {
  /// Sends new requests over this connection.
  func use() {
    if case .tried = stage { core.counters.trialsPassed += 1 }
    if isPreparing { endPreparation() }
    stage = .used(since: core.loop.now)
    core.leaveDrained()
    // The server may have frozen after its last answer to `prepare`, so only later bytes count.
    bytesBefore = link.connection.counters.bytesReceived
    core.counters.connects += 1
    link.log(.info, "Connected")
    core.notifyObserver(.established(link.id))
  }

  /// Sends no new requests over this connection, and closes it when its last request has ended.
  func retire() {
    if hasAnswered { core.note(.long(.answered)) }
    requests.retire(link)
    core.updateWaitingPushes(.left)
    core.failWaiting(after: .failed, core.notConnected)
    core.finishIfDone(link)
  }

  /// Closes this replaced connection, because `timeouts.lingering` has passed.
  func expire() {
    if !requests.isUnused(link) || link.connection.inbound.count > 0 {
      core.counters.linksExpired += 1
    }
    link.close(.left)
  }

  func proven() {
    hasWorked = true
    core.notifyObserver(.worked(link.id))
  }

  /// Lets this connection take requests, because its trial is over.
  func passed() {
    guard link.isOpen, case .tried(let start) = stage else { return }
    bytesBefore = link.counters.bytesReceived
    core.tell(.long(.accepted(link.id, terms(since: start))))
  }

  /// Returns what the handshake has agreed on. It was complete at `start`.
  func terms(since start: LinkInstant) -> ClientMachine.Terms {
    let heartbeat = core.configuration.dialect.heartbeat(core.configuration.heartbeat)
    let least = min(heartbeat.interval.clampedNanoseconds, LinkMachine.leastProof)
    return (
      proof: max(link.connection.agreement.heartbeatInterval, least),
      validity: validity(since: start), renewsInPlace: link.connection.canRenew
    )
  }
}

// MARK: - What the link reports

extension ClientConnection: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    switch message.kind {
    case .response:
      if core.machine.wantsOutcomes { answered(message) }
      requests.answered(message, on: link)
    case .request: responder.handle(message, on: link)
    case .item, .end: side(of: message.serial).received(item: message, on: link)
    default: core.publish(Push(type: message.type, body: link.takeBody(of: message)))
    }
  }

  private func answered(_ arrival: Arrival) {
    // A refusal does not show that the server is healthy.
    if !arrival.isRefused { core.note(.long(.worked(link.id))) }
    // A response after the deadline was counted when the deadline passed.
    if let ratio = core.configuration.reconnect.errorRatio,
      requests.awaits(arrival.serial, on: link)
    {
      core.note(.long(.outcome(link.id, isError: ratio.codes.contains(arrival.code))))
    }
    core.settle()
  }

  func link(_ link: Link, reports news: LifeNews) {
    switch news {
    case .established: established()
    case .renewed(let answer): renewed(answer)
    case .peerLeaving(let goaway):
      if peer.announce(.leaving) { responder.tellDraining(of: link) }
      leaving(goaway)
      core.updateWaitingPushes(.goneAway(ResponseCode(wire: goaway.code)))
    case .abandon(let reason):
      abandoned(reason)
      core.updateWaitingPushes(reason)
    }
  }

  func link(_ link: Link, reports news: RequestNews) { requests.heard(news, on: link) }

  func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {
    side(of: serial).heard(news, of: serial, on: link)
  }

  func link(_ link: Link, observed observation: LinkObservation) {
    switch observation {
    case .ponged(let id, let roundTrip):
      core.pings.take(id, on: link)?(.success(.nanoseconds(roundTrip)))
      core.tell(.long(.ponged(link.id)))
    case .heartbeatAnswered(let silence):
      core.pathHeartbeat?.answered(after: silence, on: path)
      core.updateHeartbeatPace()
    case .damaged(let violation):
      core.notifyObserver(.damaged(link.id, violation))
    case .refused(let type, let serial, let refusal):
      responder.refused(MessageType(tag: type), serial, refusal, on: link)
    }
  }

  func link(_ link: Link, cancels request: InboundID) {
    responder.cancel(request, on: link)
    finishIfLeft()
  }

  func linkResumesSending(_ link: Link) { core.resumeSending(link) }

  func requestsCarried(by link: Link) -> Int { requests.carriedCount(by: link) }

  func linkWroteAll(_ link: Link) {
    if core.closing != nil { core.finishClosingIfDone() }
    finishIfLeft()
  }

  /// The side that handles a stream: the requester's if the serial is this client's own.
  private func side(of serial: UInt32) -> any StreamSide {
    link.connection.settings.role.owns(serial) ? requests : responder
  }

  private func established() {
    peer.identified(as: nil, security: link.security)
    core.servers.forgetSecured()
    core.note(.long(.established(link.id, terms(since: core.loop.now))))
    guard core.machine.ways.isTrying(link.id) else {
      bytesBefore = link.counters.bytesReceived
      return core.settle()
    }
    link.log(.info, "The link takes no requests yet, because earlier ones were cut")
    stage = .tried(since: core.loop.now)
    core.settle()
    core.resumeConnectWaiters(.success(()))
  }

  private func abandoned(_ reason: CloseReason) {
    core.totals.ended(reason)
    requestsLost = requests.carriedCount(by: link)
    responder.abandon(link, reason)
    requests.lost(link, reason, resends: core.closing == nil)
    for completion in core.pings.takeAll(on: link) {
      completion(.failure(.lost(reason, delivery: .sent, doing: "ping", peer: link.peer)))
    }
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    link.count(in: core.totals)
    core.connections.removeAll { $0 === self }
    cancelPreparation()
    peer.detach()
    if isOpened {
      core.pathHeartbeat?.lost(after: link.connection.liveness.silenceProbed, reason, on: path)
      core.updateHeartbeatPace()
    }
    switch stage {
    case .used(let start): ended(reason, usedSince: start)
    case .left:
      core.notifyObserver(.failed(link.id, reason))
      core.tell(.long(.ended(link.id, reason, record(since: core.loop.now))))
    case .unwanted: failed(.left)
    case .opening, .tried, .preparing: failed(reason)
    }
  }

  private func ended(_ reason: CloseReason, usedSince start: LinkInstant) {
    reason.log(
      endOf: link,
      ["ageMs": .milliseconds(core.loop.now - start), "requests": "\(requestsLost)"])
    core.notifyObserver(.ended(link.id, reason, worked: hasWorked))
    let wasCurrent = core.machine.link.isCurrent(link.id)
    core.note(.long(.ended(link.id, reason, record(since: start))))
    if wasCurrent {
      note(loss: reason)
      core.failWaiting(after: .failed, core.notConnected)
      core.failIfRefused()
    }
    core.settle()
  }

  /// Notes why the current link takes no more requests, unless a final refusal explains more.
  func note(loss reason: CloseReason) {
    guard core.machine.refusals.finalCode == nil else { return }
    core.lastFailure = ConnectFailure(of: link, reason)
  }

  private func record(since start: LinkInstant) -> ClientMachine.Record {
    (
      hasAnswered: hasAnswered, hasRequests: link.counters.requestsSent > 0,
      life: core.loop.now - start
    )
  }

  private func failed(_ reason: CloseReason) {
    core.notifyObserver(.failed(link.id, reason))
    if unusable == nil, reason == .left || reason == .closedHere {
      core.counters.abandonedAttempts += 1
    } else {
      if case .tried = stage {
        core.counters.trialsFailed += 1
        link.log(.info, "The link ended in its trial", reason.logMetadata)
      } else {
        core.counters.failedAttempts += 1
      }
      core.connector.failed(unusable ?? failure(of: reason))
    }
    core.tell(.long(.failed(link.id, unusable == nil ? reason : nil)))
  }

  func failure(of reason: CloseReason) -> ConnectFailure {
    var detail = link.securityFailure.map { "\($0)" }
    if case .transport(let code) = reason { detail = SocketError.text(of: code) }
    if case .goneAway(let code) = reason, !isOpened {
      detail = core.connector.text(ofRefusal: code) + link.ending.farewell
    }
    let hint = seemsForeign(reason) ? "; this may not be a LongLink server" : ""
    let place = isPreparing ? "the connection ended while `prepare` ran: " : ""
    return ConnectFailure(
      reason, detail: "\(place)\(detail ?? link.ending.detail(of: reason))\(hint)",
      address: link.peer, securityFailure: link.securityFailure, recording: link.recording)
  }

  /// Whether the server's first bytes were not a frame, for example because it speaks HTTP.
  private func seemsForeign(_ reason: CloseReason) -> Bool {
    // The checksum is only checked after a valid header.
    guard case .violation(let violation) = reason, violation.rule != .checksumMismatch else {
      return false
    }
    return core.configuration.dialect.source == nil && link.counters.framesReceived == 0
  }
}
