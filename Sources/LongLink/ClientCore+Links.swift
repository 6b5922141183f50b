import Logging
import LongLinkConnection
import LongLinkCore
import LongLinkTransport

extension ClientCore: LinkOwner {
  func link(_ link: Link, did effect: Effect) {
    switch effect {
    case .response(let arrival):
      // A link that drains tells nothing of its successor, and a refusal nothing of the server's
      // health.
      if !arrival.isRefused, requests.current === link { machine.worked() }
      requests.answered(arrival, on: link)
    case .collect(let serial):
      requests.collect(serial, on: link)
    case .push(let arrival):
      let body = link.session.withBody(arrival.payload) { [UInt8](decoding: $0) }
      hub.publish(Push(type: arrival.type, body: body))
    case .request(let arrival):
      connection(link.id)?.responder.handle(arrival)
    case .cancel(let serial):
      connection(link.id)?.responder.cancel(serial)
    case .established:
      established(link)
      resumeSending(link)
    case .ponged(let id, let roundTrip):
      ponged(id, on: link, .success(.nanoseconds(roundTrip)))
    case .began(let serial, let begin, let ordinal):
      requests.began(serial, on: link, at: begin, ordinal: ordinal)
    case .finished(let serial):
      requests.finishedSending(serial, on: link)
    case .resumeSending:
      resumeSending(link)
    case .peerLeaving(let goaway):
      leaving(link, goaway)
      followPushes(.goneAway(ResponseCode(rawValue: goaway.code)))
    case .abandon(let reason):
      abandoned(link, reason)
      followPushes(reason)
    case .send, .decodeHello, .decodeWelcome, .decodeGoAway, .shutDownWriting, .close:
      break
    }
  }

  private func established(_ link: Link) {
    machine.established(link.id)
    guard machine.phase == .up(link.id) else {
      perform()
      return
    }
    counters.connects += 1
    connection(link.id)?.isEstablished = true
    link.logger.info("Connected")
    requests.opened(link)
    resumeConnectWaiters(.success(()))
    if let workedTimer { loop.cancel(workedTimer) }
    workedTimer = loop.schedule(
      at: loop.now + link.session.agreement.heartbeatInterval, self, token: Timer.worked.rawValue)
    perform()
  }

  private func leaving(_ link: Link, _ goaway: GoAway) {
    link.logger.info(
      "The server is going away",
      metadata: [
        "code": "\(goaway.code)", "reason": "\(goaway.reason)",
        "accepted": "\(goaway.requestsAccepted)",
      ])
    let code = ResponseCode(rawValue: goaway.code)
    guard connection(link.id)?.isEstablished == true else {
      // It came in place of a welcome: the attempt has failed, for the reason that it gives.
      connection(link.id)?.farewell = goaway.reason
      link.close(.goneAway(code))
      return
    }
    requests.leaving(
      link, accepted: goaway.requestsAccepted, code: code, reason: goaway.reason)
    // Only a server that drains asks its clients to come again; other codes are a farewell.
    let wait = code == .draining ? hint(goaway) : nil
    ended(link, .goneAway(code), hint: wait)
    finishIfDone(link)
    perform()
  }

  /// How long the server asks to stay away: a fixed time, and a spread to draw from.
  private func hint(_ goaway: GoAway) -> Int64 {
    let spread = ReconnectPolicy.delay(
      within: Int64(goaway.spread) * 1_000_000, bits: loop.driver.nextRandom())
    return Int64(goaway.retryAfter) * 1_000_000 + spread
  }

  private func ended(_ link: Link, _ reason: CloseReason, hint: Int64?) {
    guard machine.phase == .up(link.id) else { return }
    if let workedTimer { loop.cancel(workedTimer) }
    workedTimer = nil
    machine.ended(link.id, reason, hint: hint, at: loop.now, bits: bits)
    lastFailure = ConnectFailure(detail: "\(reason)", address: link.peer, reason: reason)
    requests.failWaiting(all: false) { operation, _ in notConnected(operation) }
  }

  /// The error of what does not wait for a connection, and why there is none.
  func notConnected(_ operation: String) -> LongLinkError {
    LongLinkError(
      .notConnected, doing: operation, detail: lastFailure?.detail ?? "no connection",
      peer: lastFailure?.address, systemError: lastFailure?.systemError,
      closeReason: lastFailure?.reason)
  }

  /// A link that takes nothing new is closed when its last request has ended.
  func finishIfDone(_ link: Link) {
    guard requests.current !== link, requests.isUnused(link) else { return }
    link.session.shutDown(at: loop.now)
    link.drain()
  }

  private func abandoned(_ link: Link, _ reason: CloseReason) {
    counters.ended.ended(reason)
    connection(link.id)?.responder.abandon()
    requests.lost(link, reason, resends: closing == nil)
    for waiter in pingWaiters where waiter.link === link {
      ponged(
        waiter.id, on: link,
        .failure(.lost(reason, delivery: .sent, doing: "ping", peer: link.peer)))
    }
  }

  private func ponged(
    _ id: UInt64, on link: Link, _ result: Result<Duration, LongLinkError>
  ) {
    guard let index = pingWaiters.firstIndex(where: { $0.id == id && $0.link === link }) else {
      return  // A heartbeat's own.
    }
    pingWaiters.remove(at: index).completion(result)
  }

  func linkWroteAll(_ link: Link) {
    if closing != nil { finishClosingIfDone() }
  }

  func link(_ link: Link, endedWith reason: CloseReason) {
    guard let connection = connection(link.id) else { return }
    counters.ended.add(link.session.counters, connection.responder.counters)
    connections.removeAll { $0 === connection }
    if !connection.isEstablished {
      counters.failedAttempts += 1
      var systemError: Int32?
      if case .transport(let code) = reason { systemError = code }
      let detail = systemError.map { "\(SocketError(operation: "connect", errno: $0))" }
      let farewell = connection.farewell.map { ": \($0)" } ?? ""
      lastFailure = ConnectFailure(
        detail: detail ?? "\(reason)\(farewell)", address: link.peer, systemError: systemError,
        reason: reason)
      machine.failed(link.id, at: loop.now, bits: bits)
    } else {
      log(link, reason)
      ended(link, reason, hint: nil)
    }
    connectionEnded()
    perform()
  }

  private func log(_ link: Link, _ reason: CloseReason) {
    switch reason {
    case .closedHere, .closedByPeer, .goneAway:
      link.logger.info("Disconnected", metadata: ["reason": "\(reason)"])
    case .violation, .heartbeatLost, .handshakeTimeout, .stalledPeer, .unreadOutput, .transport:
      link.logger.warning("Disconnected", metadata: ["reason": "\(reason)"])
    }
  }
}

extension ClientCore: PeerSessionOwner {
  func register(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: RequestOptions
  ) -> RequestID {
    requests.register(type, body, options, defaults: defaults)
  }

  func launch(_ id: RequestID, _ completion: Completion) {
    if requests.current == nil || closing != nil {
      launchOffline(id, completion)
    } else {
      requests.launch(id, completion)
    }
  }

  private func launchOffline(_ id: RequestID, _ completion: Completion) {
    guard closing == nil else {
      requests.launch(id, completion) { operation in
        LongLinkError(.closed, doing: operation, detail: "the client was closed")
      }
      return
    }
    if case .waiting = machine.phase, requests.failsOffline(id) {
      requests.launch(id, completion) { operation in
        notConnected(operation)
      }
      return
    }
    requests.launch(id, completion)
    start()
  }

  func cancel(_ id: RequestID) {
    requests.cancel(id)
  }

  func closeSession() {
    guard let link = requests.current else { return }
    link.session.shutDown(at: loop.now)
    link.drain()
  }

  func ping(_ completion: @escaping @Sendable (Result<Duration, LongLinkError>) -> Void) {
    guard closing == nil, let link = requests.current, link.session.isOpen else {
      let code: LongLinkError.Code = closing == nil ? .notConnected : .closed
      completion(.failure(LongLinkError(code, doing: "ping")))
      return
    }
    let now = loop.driver.now
    pingTimes.removeAll { now - $0 >= Wire.pingWindow }
    guard pingTimes.count < ClientCore.mostPings else {
      completion(
        .failure(
          LongLinkError(
            .overloaded, doing: "ping", detail: "\(ClientCore.mostPings) within 10 s",
            peer: link.peer)))
      return
    }
    pingTimes.append(now)
    let id = link.session.ping(at: loop.driver.now)
    pingWaiters.append(PingWaiter(id: id, link: link, completion: completion))
    link.writeAtEndOfTurn()
  }
}
