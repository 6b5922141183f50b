// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Ends the connection because of a protocol violation, and reports it to the peer.
  mutating func violate(_ violation: Violation) {
    guard isLive else { return }
    guard carriage.tellsViolations else { return close(.violation(violation)) }
    beginClosing(
      .violation(violation), saying: notice(violation.goawayCode, violation.description))
  }

  /// A goaway that ends the connection; nil in a dialect, which has none.
  func notice(_ code: ResponseCode, _ reason: String) -> GoAway? {
    framing.isNative ? goodbyes.notice(code, reason) : nil
  }

  /// Ends the connection on purpose, after the encoded bytes have been written. A server's short
  /// link says `notice` with a goaway first, because `goAway` sends none there.
  package mutating func shutDown(
    at now: LinkInstant, saying notice: (code: ResponseCode, reason: String)? = nil
  ) {
    self.now = max(self.now, now)
    guard isLive else { return }
    guard !carriage.awaitsAnswer else {
      // To wait would not tell the server that the exchange was given up.
      close(.closedHere)
      return
    }
    let goaway = notice.flatMap { self.notice($0.code, $0.reason) }
    beginClosing(.closedHere, saying: carriage.announcesLeaving ? nil : goaway)
  }

  /// Whether each side says goaway before it leaves the connection.
  package var announcesLeaving: Bool { framing.isNative && carriage.announcesLeaving }

  /// Sends a goaway: no new requests are accepted, and running ones continue. On a short link the
  /// request is refused if it is yet to come, and nothing is sent.
  package mutating func goAway(
    code: ResponseCode, reason: String, spread: UInt32, retryAfter: UInt32, alternatives: [String]
  ) {
    guard isLive, goodbyes.say(), announcesLeaving else { return }
    send(
      .goaway,
      goodbyes.notice(
        code, reason.cutToName, spread: spread, retryAfter: retryAfter, alternatives: alternatives))
  }

  /// Leaves the connection, which the client does not use any more: says goaway, and reads on until
  /// the server closes, for 10 s at most, since what it has sent before is still on its way.
  package mutating func leave(at now: LinkInstant) {
    guard !isLeaving else { return }
    guard isOpen, announcesLeaving else { return shutDown(at: now) }
    self.now = max(self.now, now)
    goAway(
      code: .draining, reason: "the client does not use this connection", spread: 0, retryAfter: 0,
      alternatives: [])
    timers[.linger] = self.now + Wire.leavingTime
  }

  /// Whether this client has left the connection, which is still open.
  package var isLeaving: Bool { settings.role == .client && goodbyes.isSaid && isOpen }

  /// Processes the peer's goaway.
  package mutating func received(goaway: GoAway) {
    guard isLive else { return }
    report(.life(.peerLeaving(goodbyes.hear(goaway))))
  }

  /// Processes the failure of the socket, or of the layer that secures the connection.
  package mutating func failed(_ reason: CloseReason) { close(phase.closingReason ?? reason) }

  /// Evicts the connection, because memory is short and this connection holds the most.
  ///
  /// The peer gets a goaway, unless it does not read: bytes that wait for it take memory too.
  package mutating func evict(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isLive, outbox.totalBytes <= Wire.fragmentLimit,
      let notice = notice(.overloaded, "the server is short of memory")
    else { return close(.memoryLimit) }
    beginClosing(.memoryLimit, saying: notice)
  }

  /// Whether the transport is to be broken off rather than closed in good order.
  package var breaksOff: Bool { carriage.breaksOff(hasShutDown: goodbyes.hasShutDown) }

  /// Ends the connection at once.
  package mutating func close(_ reason: CloseReason) {
    guard !isClosed else { return }
    let wasLive = isLive
    become(.closed(reason))
    timers = ConnectionTimers()
    forgetPeer()
    outbox.dropPending()
    inbox.input.removeAll()
    if wasLive { report(.life(.abandon(reason))) }
    effects.append(.close(reason))
  }

  mutating func beginClosing(_ reason: CloseReason, saying goaway: GoAway?) {
    outbox.dropPending()
    forgetPeer()
    if let goaway {
      _ = goodbyes.say()
      send(.goaway, goaway)
    }
    become(.closing(reason))
    timers = ConnectionTimers()
    timers[.linger] = now + Wire.lingerTime
    report(.life(.abandon(reason)))
  }

  /// Drops everything that the peer sent, including messages that wait to be passed on.
  private mutating func forgetPeer() {
    greeting = nil
    inbound.abandonAll()
    framing.forgetExchanges()
    assemblies.removeAll()
    streams.removeAll()
    // A request that was not passed on has no handler that could return.
    if effects.elements.contains(where: \.isRequest) { inbound.newestReturned() }
    effects.removeAll(where: \.isDelivery)
  }

  mutating func lingerElapsed() {
    if let reason = phase.closingReason { close(reason) } else if isLeaving { close(.closedHere) }
  }

  /// Whether nothing is in flight in either direction.
  package var isIdle: Bool {
    inbox.input.isEmpty && outbox.isEmpty && assemblies.isEmpty && inbound.isEmpty
  }
}
