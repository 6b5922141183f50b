// SPDX-License-Identifier: Apache-2.0

// MARK: - Suspecting the peer

extension Connection {
  /// Sets the ping interval of the adaptive heartbeat, capped at the agreed interval.
  package mutating func setPace(_ interval: Int64) {
    guard liveness.pace != interval else { return }
    liveness.setPace(interval)
    guard isOpen, !liveness.isSuspecting else { return }
    timers[.heartbeat] = heartbeatDue
  }

  /// Runs when the heartbeat timer fires: sends a ping, or closes the connection of a lost peer.
  mutating func heartbeatElapsed(due: LinkInstant, unacknowledged: Int) {
    guard isOpen else { return }
    guard carriage.hasHeartbeat else { return giveSignOfLife() }
    guard !holdsReading else {
      // This side has suspended reading; the writing timer watches the peer meanwhile.
      timers[.heartbeat] = now + liveness.pingInterval
      return
    }
    if !liveness.isSuspecting, let dialect = framing.dialect {
      return heartbeatElapsed(in: dialect, unacknowledged: unacknowledged)
    }
    let verdict = liveness.judge(
      due: due, acknowledged: counters.acknowledged(besides: unacknowledged),
      allHasLeft: unacknowledged == 0 && outbox.encodedBytes == 0, at: now)
    switch verdict {
    case .silent: suspect(unacknowledged: unacknowledged)
    case .dead: close(.heartbeatLost)
    case .alive: timers[.heartbeat] = heartbeatDue
    case .suspected(let next): timers[.heartbeat] = next
    }
  }

  /// On a short link: sends a ping that the peer does not answer, unless the response is complete.
  private mutating func giveSignOfLife() {
    guard !carriage.isAnswered else { return }
    if outbox.isEmpty {
      outbox.encode(FrameHead(.ping, length: 0))
      counters.pingsSent += 1
    }
    timers[.heartbeat] = heartbeatDue
  }

  /// Sends a ping and suspects the peer until a byte is read. `unacknowledged` is nil if it is not
  /// known.
  mutating func suspect(unacknowledged: Int?) {
    let isClear = unacknowledged == 0 && outbox.encodedBytes == 0
    let acknowledged: UInt64? =
      if let unacknowledged { counters.acknowledged(besides: unacknowledged) } else { nil }
    _ = ping(at: now)
    counters.suspicions += 1
    liveness.suspect(
      pingEnd: counters.bytesSent + UInt64(outbox.encodedBytes), acknowledged: acknowledged,
      pingHasLeft: isClear, at: now)
    timers[.heartbeat] = liveness.nextJudgement(at: now)
  }

  /// Ends a suspicion, because a byte has arrived.
  mutating func endSuspicion(after silence: Int64) {
    guard isOpen else { return }
    timers[.heartbeat] = heartbeatDue
    if settings.pace != nil { report(.observed(.heartbeatAnswered(silence: silence))) }
  }

  /// Sends a ping ahead of data after a long silence.
  @inline(__always)
  mutating func probeBeforeData() {
    if liveness.isSilent(at: now), !liveness.isSuspecting { probeAfterSilence() }
  }

  private mutating func probeAfterSilence() {
    if canProbe { suspect(unacknowledged: nil) }
  }

  /// Whether the peer must answer pings.
  var canProbe: Bool { framing.canProbe && carriage.hasHeartbeat }

  /// When the heartbeat is next due while nothing is suspected.
  var heartbeatDue: LinkInstant {
    guard carriage.hasHeartbeat else { return carriage.signOfLifeDue(at: now) }
    if let dialect = framing.dialect {
      return dialect.heartbeatDue(lastRead: liveness.lastRead, every: liveness.pingInterval)
    }
    return liveness.lastRead + liveness.pingInterval
  }

  /// Notes that the deadline of a sent request passed without a response. After several in a row,
  /// with nothing read in between, sends a ping before the interval is over.
  package mutating func deadlineMissed(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    guard maySuspect, settings.missedDeadlines > 0 else { return }
    guard liveness.deadlineMissed(limit: settings.missedDeadlines, at: self.now) else { return }
    counters.earlySuspicions += 1
    suspect(unacknowledged: unacknowledged)
  }

  /// Sends a ping now, unless the peer is already suspected.
  package mutating func probe(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    if maySuspect { suspect(unacknowledged: unacknowledged) }
  }

  private var maySuspect: Bool { isOpen && !holdsReading && !liveness.isSuspecting && canProbe }
}

// MARK: - Pings

extension Connection {
  /// Sends a ping and returns its number, which `.ponged` will contain.
  package mutating func ping(at now: LinkInstant) -> UInt64 {
    self.now = max(self.now, now)
    let id = liveness.nextPingID()
    guard isLive else { return id }
    if let dialect = framing.dialect {
      ping(id, in: dialect)
      return id
    }
    liveness.sentPing(id, at: self.now)
    outbox.encodePing(id)
    counters.pingsSent += 1
    return id
  }

  mutating func acceptPing(_ body: BodySlice) throws(Violation) {
    try countPing()
    guard carriage.hasHeartbeat else { return }
    unsafe inbox.withFrame(body) { unsafe outbox.encodePong($0) }
  }

  /// Counts a ping of the peer. Throws if it sends too many.
  mutating func countPing() throws(Violation) {
    counters.pingsReceived += 1
    guard liveness.countPeerPing(at: now) else {
      throw Violation(.tooManyPings, kind: FrameKind.ping.rawValue, serial: 0)
    }
  }

  /// Processes the answer to a ping of this side, by its number.
  mutating func acceptPong(where matches: (UInt64) -> Bool) {
    guard let ping = liveness.answered(where: matches) else {
      counters.droppedPongs += 1
      return
    }
    report(.observed(.ponged(id: ping.id, roundTrip: now - ping.sent)))
  }
}
