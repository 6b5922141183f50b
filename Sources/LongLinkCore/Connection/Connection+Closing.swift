// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// The peer broke a rule: it is told why, and the connection ends.
  mutating func violate(_ violation: Violation) {
    guard isLive else { return }
    let goaway = GoAway(
      code: violation.goawayCode.rawValue,
      reason: violation.description,
      requestsAccepted: requestsAccepted)
    beginClosing(.violation(violation), saying: framing.hasControlFrames ? goaway : nil)
  }

  /// Ends the connection on purpose once what is encoded has left.
  package mutating func shutDown(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isLive else { return }
    beginClosing(.closedHere, saying: nil)
  }

  /// Says that nothing new is taken here; what runs goes on.
  package mutating func goAway(
    code: ResponseCode, reason: String, spread: UInt32, retryAfter: UInt32, alternatives: [String]
  ) {
    guard isLive, !saidGoAway else { return }
    saidGoAway = true
    guard framing.hasControlFrames else { return }
    send(
      .goaway,
      GoAway(
        code: code.rawValue, reason: reason, requestsAccepted: requestsAccepted,
        spread: spread, retryAfter: retryAfter, alternatives: alternatives))
  }

  /// Tells what the peer's goaway said.
  package mutating func received(goaway: GoAway) {
    guard isLive else { return }
    // It is kept as long as the connection, and a server goes nowhere else.
    var goaway = goaway
    if settings.role == .server { goaway.alternatives = [] }
    goaway.reason = Connection.cut(goaway.reason)
    peerGoAway = goaway
    tell(.peerLeaving(goaway))
  }

  /// Tells that the system reported an error on the socket.
  package mutating func failed(errno code: Int32) {
    if case .closing(let reason) = phase {
      close(reason)
    } else {
      close(.transport(code))
    }
  }

  /// Ends the connection since it holds the most of the memory that is short.
  ///
  /// The peer is told unless it does not read: what waits for it is memory as well.
  package mutating func evict(at now: LinkInstant) {
    self.now = max(self.now, now)
    guard isLive, outbox.totalBytes <= Wire.fragmentLimit, framing.hasControlFrames else {
      close(.memoryLimit)
      return
    }
    let goaway = GoAway(
      code: ResponseCode.overloaded.rawValue, reason: "the server is short of memory",
      requestsAccepted: requestsAccepted)
    beginClosing(.memoryLimit, saying: goaway)
  }

  /// Ends the connection at once.
  package mutating func close(_ reason: CloseReason) {
    guard !isClosed else { return }
    let wasLive = isLive
    become(.closed(reason))
    timers = ConnectionTimers()
    forgetPeer()
    outbox.dropPending()
    input.removeAll()
    if wasLive { tell(.abandon(reason)) }
    effects.append(.close(reason))
  }

  private mutating func beginClosing(_ reason: CloseReason, saying goaway: GoAway?) {
    outbox.dropPending()
    forgetPeer()
    if let goaway {
      saidGoAway = true
      send(.goaway, goaway)
    }
    become(.closing(reason))
    timers = ConnectionTimers()
    timers[.linger] = now + Wire.lingerTime
    tell(.abandon(reason))
  }

  /// Nothing of the peer's is acted on or handed on any more, not even what waits to be.
  private mutating func forgetPeer() {
    peerRequests.cancelAll()
    framing.forgetExchanges()
    assemblies.removeAll()
    // A request that has not been handed over has no handler to return.
    var unseen: [Int] = []
    effects.removeAll { effect in
      if case .message(let message) = effect, message.kind == .request {
        unseen.append(message.byteCount)
      }
      return effect.isDelivery
    }
    for bytes in unseen { handlerReturned(bytes: bytes) }
  }

  mutating func lingerElapsed() {
    if case .closing(let reason) = phase { close(reason) }
  }

  /// Whether nothing is on its way in or out.
  package var isIdle: Bool {
    input.isEmpty && outbox.isEmpty && assemblies.isEmpty && peerRequests.isEmpty
  }

  /// Gives memory back that a connection which is ending does not need.
  package mutating func releaseInput() {
    input.releaseStorage(over: 0)
    if isClosed { outbox.releaseAll() } else { outbox.releaseRoom() }
    assembled = []
    lastMetadata = []
  }

  /// Gives memory back that holds nothing at the moment, for others need it.
  package mutating func releaseRoom() {
    input.releaseRoom()
    if outbox.isEmpty { outbox.releaseStorage() } else { outbox.releaseRoom() }
    peerRequests.releaseStorage()
    assemblies.releaseStorage()
  }

  /// Gives memory back that an idle connection does not need.
  package mutating func releaseStorage() {
    input.releaseStorage(over: 0)
    outbox.releaseStorage()
    peerRequests.releaseStorage()
    framing.releaseStorage()
    assemblies.releaseStorage()
    assembled = []
    lastMetadata = []
  }
}
