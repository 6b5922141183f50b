// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension ClientCore: LinkOwner {
  func link(_ link: Link, received message: Arrival) {
    switch message.kind {
    case .response:
      if machine.wantsOutcomes { answered(message, on: link) }
      requests.answered(message, on: link)
    case .request:
      connection(link.id)?.responder.handle(message, on: link)
    case .item, .end:
      side(of: message.serial, on: link)?.received(item: message, on: link)
    default:
      publish(Push(type: message.type, body: link.takeBody(of: message)))
    }
  }

  func link(_ link: Link, reports news: LifeNews) {
    switch news {
    case .established:
      established(link)
    case .peerLeaving(let goaway):
      leaving(link, goaway)
      updateWaitingPushes(.goneAway(ResponseCode(wire: goaway.code)))
    case .abandon(let reason):
      abandoned(link, reason)
      updateWaitingPushes(reason)
    }
  }

  func link(_ link: Link, reports news: RequestNews) { requests.heard(news, on: link) }

  func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {
    side(of: serial, on: link)?.heard(news, of: serial, on: link)
  }

  func link(_ link: Link, observed observation: LinkObservation) {
    switch observation {
    case .ponged(let id, let roundTrip):
      pings.take(id, on: link)?(.success(.nanoseconds(roundTrip)))
      machine.heard(link.id)
      perform()
      shortLinks?.machine.ponged(link.id)
      performWays()
    case .heartbeatAnswered(let silence):
      if let connection = connection(link.id) {
        pathHeartbeat?.answered(after: silence, on: connection.path)
        updateHeartbeatPace()
      }
    case .damaged(let violation):
      notifyObserver(.damaged(link.id, violation))
    case .refused(let type, let serial, let code):
      connection(link.id)?.responder.refused(MessageType(tag: type), serial, code, on: link)
    }
  }

  func link(_ link: Link, cancels request: InboundID) {
    connection(link.id)?.responder.cancel(request, on: link)
    finishIfLeft(link)
  }

  func linkResumesSending(_ link: Link) { resumeSending(link) }

  func requestsCarried(by link: Link) -> Int { requests.carriedCount(by: link) }

  /// The side that a stream belongs to.
  private func side(of serial: UInt32, on link: Link) -> (any StreamSide)? {
    link.owns(serial) ? requests : connection(link.id)?.responder
  }

  /// Reports to the machine how a request on a link ended.
  func recordOutcome(on link: UInt32, isError: Bool) {
    machine.outcome(link, isError: isError, at: loop.now, bits: bits)
    perform()
  }

  private func answered(_ arrival: Arrival, on link: Link) {
    // A refusal does not show that the server is healthy.
    if !arrival.isRefused { machine.worked(link.id) }
    // A response after the deadline was counted when the deadline passed.
    if let ratio = configuration.serverPolicy.errorRatio,
      requests.awaits(arrival.serial, on: link)
    {
      recordOutcome(on: link.id, isError: ratio.codes.contains(arrival.code))
    } else {
      perform()
    }
  }

  private func established(_ link: Link) {
    if let connection = connection(link.id) {
      connection.peer.identified(as: nil, security: link.security)
    }
    // The server has accepted it.
    refusals.forget()
    servers.forgetSecured()
    if beginsTrial(link) {
      link.log(.info, "The link takes no requests yet, because earlier ones were cut")
      connection(link.id)?.heldSince = loop.now
      machine.hold(link.id)
      perform()
      resumeConnectWaiters(.success(()))
    } else {
      acceptLink(link)
      perform()
    }
  }

  /// Whether a link must stand a trial before it takes requests.
  private func beginsTrial(_ link: Link) -> Bool {
    // No short link is opened with a credential that was refused twice.
    guard let shortLinks, shortLinks.refusals.finalCode == nil else { return false }
    return shortLinks.machine.beginTrial(
      of: link.id, on: machine.server(of: link.id), validFor: link.validity, at: loop.now)
  }

  /// Uses a link whose handshake is complete, and whose trial is over if it had to stand one.
  func acceptLink(_ link: Link) {
    let held = loop.now - (connection(link.id)?.heldSince ?? loop.now)
    let heartbeat = configuration.dialect.heartbeat(configuration.heartbeat)
    let least = min(heartbeat.interval.clampedNanoseconds, LinkMachine.leastProof)
    connection(link.id)?.bytesBefore = link.counters.bytesReceived
    machine.established(
      link.id, provenAfter: max(link.heartbeatInterval, least),
      validFor: link.validity.map { max(1, $0 - held) }, at: loop.now, bits: bits)
    if machine.isCurrent(link.id) { shortLinks?.refusals.forget() }
  }

  private func leaving(_ link: Link, _ goaway: GoAway) {
    link.log(
      .info, "The server is going away",
      [
        "code": "\(goaway.code)", "detail": "\(PeerText(goaway.reason))",
        "accepted": "\(goaway.requestsAccepted)",
      ])
    let code = ResponseCode(wire: goaway.code)
    notifyObserver(
      .goaway(
        link.id, code, retryAfter: .milliseconds(Int64(goaway.retryAfter)),
        spread: .milliseconds(Int64(goaway.spread))))
    // Only a draining server's hint is about reconnecting.
    let hint =
      code == .draining
      ? configuration.reconnect.hint(
        retryAfter: goaway.retryAfter, spread: goaway.spread, bits: bits()) : nil
    let named = code == .draining ? alternatives(in: goaway) : []
    let number = machine.alternativesNamed
    guard connection(link.id)?.isEstablished == true else {
      // It came instead of a welcome, or in a trial: the attempt has failed for that reason. In a
      // trial, it does not refuse the credential, which the server has accepted.
      let wasAccepted = connection(link.id)?.isOpened == true
      machine.turnedAway(
        link.id, isRefusal: code.deniesAccess && !wasAccepted, hint: hint,
        alternatives: named.count, at: loop.now)
      take(named, since: number)
      if wasAccepted { return leftInTrial(link, code) }
      link.close(.goneAway(code))
      if code.deniesAccess { credentialRefused(code) }
      return
    }
    requests.leaving(
      link, accepted: goaway.requestsAccepted, code: code, reason: goaway.reason,
      acceptsNext: code.isPassing)
    machine.peerLeft(
      link.id, .goneAway(code), hint: hint, alternatives: named.count, at: loop.now, bits: bits)
    take(named, since: number)
    lastFailure = ConnectFailure(
      .goneAway(code), detail: link.detail(of: .goneAway(code)), address: link.peer)
    perform()
    // A link that was replaced earlier waits only for its last responses.
    finishIfDone(link)
  }

  /// Gives up a link in its trial whose server takes no requests; it ends what that has asked.
  private func leftInTrial(_ link: Link, _ code: ResponseCode) {
    guard let connection = connection(link.id), !connection.hasLeft else { return }
    connection.hasLeft = true
    counters.trialsFailed += 1
    shortLinks?.machine.trialFailed(link.id)
    lastFailure = ConnectFailure(
      .goneAway(code), detail: link.detail(of: .goneAway(code)), address: link.peer)
    machine.heldLeft(link.id, at: loop.now, bits: bits)
    perform()
  }

  /// Returns the valid servers that a goaway names; none if the policy does not follow them.
  private func alternatives(in goaway: GoAway) -> [Endpoint] {
    let names = goaway.alternatives
    guard configuration.serverPolicy.followsAlternatives else {
      counters.alternativesIgnored += UInt64(names.count)
      return []
    }
    let found = names.prefix(Wire.alternativesLimit).compactMap(Endpoint.init(alternative:))
    if found.count < names.count {
      counters.alternativesIgnored += UInt64(names.count - found.count)
      log.log(.warning, "Ignored servers named in a goaway", at: loop.now) {
        ["named": "\(names.count)", "used": "\(found.count)"]
      }
    }
    return found
  }

  /// Keeps the servers named in a goaway if the machine has numbered them.
  private func take(_ named: [Endpoint], since number: Int) {
    if machine.alternativesNamed > number { servers.take(named, from: number) }
  }

  /// Returns the error of an operation that does not wait for a connection, with the reason why
  /// there is none.
  func notConnected(_ operation: LongLinkError.Operation) -> LongLinkError {
    (lastFailure ?? .unknown).error(.notConnected, doing: operation)
  }

  /// Why requests cannot be sent now; nil if there is a connection, or none was tried.
  var waitReason: WaitReason? {
    guard !requests.hasLink else { return nil }
    if let machine = shortLinks?.machine, machine.carriesRequests,
      machine.count >= machine.settings.limit
    {
      return WaitReason("it waited for one of the \(machine.settings.limit) short links")
    }
    return lastFailure?.waitReason
  }

  /// Closes a link that takes no new requests once the last request of either side has ended.
  func finishIfDone(_ link: Link) {
    if !requests.isCurrent(link) { link.shutDownIfUnused(by: requests) }
  }

  private func abandoned(_ link: Link, _ reason: CloseReason) {
    totals.ended(reason)
    connection(link.id)?.requestsLost = requests.carriedCount(by: link)
    connection(link.id)?.responder.abandon(link, reason)
    requests.lost(link, reason, resends: closing == nil)
    for completion in pings.takeAll(on: link) {
      completion(.failure(.lost(reason, delivery: .sent, doing: "ping", peer: link.peer)))
    }
  }

  func linkWroteAll(_ link: Link) {
    if closing != nil { finishClosingIfDone() }
    finishIfLeft(link)
  }

  /// The same, for a link that may be current or not yet established.
  private func finishIfLeft(_ link: Link) {
    guard let connection = connection(link.id), connection.isEstablished || connection.hasLeft,
      !requests.isCurrent(link)
    else { return }
    finishIfDone(link)
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    guard let connection = connection(link.id) else { return }
    link.count(in: totals)
    connections.removeAll { $0 === connection }
    connection.peer.detach()
    if connection.isOpened {
      pathHeartbeat?.lost(after: link.silenceProbed, reason, on: connection.path)
      updateHeartbeatPace()
    }
    if connection.hasLeft {
      notifyObserver(.failed(link.id, reason))
      machine.ended(link.id, reason, at: loop.now, bits: bits)
    } else if connection.isEstablished {
      ended(connection, reason)
    } else {
      failed(connection, reason)
    }
    connectionEnded()
    perform()
  }

  private func failed(_ connection: ClientConnection, _ reason: CloseReason) {
    let link = connection.link
    notifyObserver(.failed(link.id, reason))
    shortLinks?.machine.trialFailed(link.id)
    // An attempt that lost the race, or was dropped, reveals nothing about its server.
    guard reason != .left, reason != .closedHere else {
      counters.abandonedAttempts += 1
      return
    }
    if connection.isOpened {
      counters.trialsFailed += 1
      link.log(.info, "The link ended in its trial", reason.logMetadata)
    } else {
      counters.failedAttempts += 1
    }
    var detail = link.securityFailure.map { "\($0)" }
    if case .transport(let code) = reason { detail = SocketError.text(of: code) }
    if case .goneAway(let code) = reason, !connection.isOpened {
      detail = ConnectFailure.text(ofRefusal: code, of: needs.credential ?? []) + link.farewell
    }
    let hint = seemsForeign(link, reason) ? "; this may not be a LongLink server" : ""
    noteFailure(
      ConnectFailure(
        reason, detail: "\(detail ?? link.detail(of: reason))\(hint)", address: link.peer,
        securityFailure: link.securityFailure))
    machine.failed(link.id, at: loop.now, bits: bits)
  }

  /// Notes why the round, or an attempt of it, has failed.
  func noteFailure(_ failure: ConnectFailure) {
    lastFailure = failure
    roundMetTLS = roundMetTLS != false && failure.securityFailure?.code == .securePeer
  }

  /// Whether the server's first bytes were not a frame, for example because it speaks HTTP.
  private func seemsForeign(_ link: Link, _ reason: CloseReason) -> Bool {
    // The checksum is only checked after a valid header.
    guard case .violation(let violation) = reason, violation.rule != .checksumMismatch else {
      return false
    }
    return configuration.dialect.source == nil && link.counters.framesReceived == 0
  }

  private func ended(_ connection: ClientConnection, _ reason: CloseReason) {
    let link = connection.link
    link.logEnd(
      reason,
      [
        "ageMs": .milliseconds(loop.now - (connection.usedSince ?? loop.now)),
        "requests": "\(connection.requestsLost)",
      ])
    notifyObserver(.ended(link.id, reason, worked: connection.hasWorked))
    let wasCurrent = machine.isCurrent(link.id)
    let server = machine.server(of: link.id)
    machine.ended(link.id, reason, at: loop.now, bits: bits)
    if connection.hasAnswered { shortLinks?.machine.answered() }
    guard wasCurrent else { return }
    shortLinks?.machine.lost(at: loop.now)
    if !connection.hasAnswered, reason.isCut {
      shortLinks?.machine.wasCut(
        on: server, hasRequests: link.counters.requestsSent > 0,
        life: loop.now - (connection.usedSince ?? loop.now))
    }
    lastFailure = ConnectFailure(reason, detail: link.detail(of: reason), address: link.peer)
    failWaiting(after: .failed, notConnected)
  }
}

extension Link {
  /// How long the server accepts this client's credential, in nanoseconds; nil without an end.
  fileprivate var validity: Int64? {
    credentialExpires == 0 ? nil : Int64(credentialExpires) * 1_000_000
  }
}

extension CloseReason {
  /// Whether a connection ended like this may have been cut by the network.
  fileprivate var isCut: Bool {
    switch self {
    case .closedByPeer, .noResponse, .heartbeatLost, .transport, .securityFailed: true
    case .violation(let violation): violation.rule == .truncatedFrame
    default: false
    }
  }
}
