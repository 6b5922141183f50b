// SPDX-License-Identifier: Apache-2.0

// MARK: - Suspecting and judging

extension Connection {
  /// Whether a sign of life was asked for and has not come yet.
  package var isSuspecting: Bool { liveness.suspicion != nil }
  /// How long a silence, in nanoseconds, was last asked after and not answered yet; 0 for none.
  package var silenceProbed: Int64 { liveness.silenceProbed }

  /// Sets how long this side itself lets a silence last; what was agreed is the most.
  package mutating func setPace(_ interval: Int64) {
    liveness.setPace(interval)
    guard isOpen, !isSuspecting else { return }
    timers[.heartbeat] = heartbeatDue
  }

  /// The heartbeat's time has come: ask for a sign of life, or give the peer up.
  mutating func heartbeatElapsed(due: LinkInstant, unacknowledged: Int) {
    guard isOpen else { return }
    guard !holdsReading else {
      // This side keeps itself from reading; the timer for writing judges the peer meanwhile.
      timers[.heartbeat] = now + liveness.pingInterval
      return
    }
    if isSuspecting {
      if liveness.stoodStill(since: due, at: now) {
        suspect(unacknowledged: unacknowledged)
      } else {
        judge(unacknowledged: unacknowledged)
      }
    } else if let dialect = framing.dialect {
      heartbeatElapsed(in: dialect, unacknowledged: unacknowledged)
    } else if liveness.isSilent(at: now) {
      suspect(unacknowledged: unacknowledged)
    } else {
      timers[.heartbeat] = heartbeatDue
    }
  }

  /// Asks for a sign of life; only a byte that is read ends the suspicion. What has not been
  /// acknowledged is nil where it is not known.
  mutating func suspect(unacknowledged: Int?) {
    let isClear = unacknowledged == 0 && outbox.encodedBytes == 0
    let acknowledged: UInt64? =
      if let unacknowledged { acknowledgedBytes(unacknowledged) } else { nil }
    _ = ping(at: now)
    counters.suspicions += 1
    liveness.suspect(
      pingEnd: counters.bytesSent + UInt64(outbox.encodedBytes), acknowledged: acknowledged,
      pingHasLeft: isClear, at: now)
    timers[.heartbeat] = liveness.nextJudgement(at: now)
  }

  private mutating func judge(unacknowledged: Int) {
    let isDead = liveness.isDead(
      acknowledged: acknowledgedBytes(unacknowledged),
      allHasLeft: unacknowledged == 0 && outbox.encodedBytes == 0, at: now)
    if isDead {
      close(.heartbeatLost)
    } else {
      timers[.heartbeat] = liveness.nextJudgement(at: now)
    }
  }

  /// A byte has come: whatever was suspected, the peer lives.
  mutating func endSuspicion(after silence: Int64) {
    guard isOpen else { return }
    timers[.heartbeat] = heartbeatDue
    if settings.pace != nil { tell(.heartbeatAnswered(silence: silence)) }
  }

  /// Sends a ping ahead of data that follows a long silence.
  @inline(__always)
  mutating func probeBeforeData() {
    if liveness.isSilent(at: now), !isSuspecting { probeAfterSilence() }
  }

  private mutating func probeAfterSilence() {
    if canProbe { suspect(unacknowledged: nil) }
  }

  /// Whether a sign of life can be asked for, and is owed then.
  private var canProbe: Bool { framing.canProbe }

  /// When the heartbeat has something to do while nothing is suspected.
  var heartbeatDue: LinkInstant {
    if let dialect = framing.dialect {
      return dialect.heartbeatDue(lastRead: liveness.lastRead, every: liveness.pingInterval)
    }
    return liveness.lastRead + liveness.pingInterval
  }

  /// Tells that a request which had left got no answer in its time. Several in a row, with nothing
  /// read in between, are a reason to ask for a sign of life before the interval is over.
  package mutating func deadlineMissed(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    guard isOpen, !holdsReading, !isSuspecting, settings.missedDeadlines > 0, canProbe
    else { return }
    guard liveness.deadlineMissed(limit: settings.missedDeadlines, at: self.now) else { return }
    counters.earlySuspicions += 1
    suspect(unacknowledged: unacknowledged)
  }

  /// Asks for a sign of life now, unless that was done and may still be answered.
  package mutating func probe(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    guard isOpen, !holdsReading, !isSuspecting, canProbe else { return }
    suspect(unacknowledged: unacknowledged)
  }

  /// Bytes of this connection that the peer's system has taken, where `unacknowledged` of those
  /// that were written have not been.
  func acknowledgedBytes(_ unacknowledged: Int) -> UInt64 {
    counters.bytesSent - min(counters.bytesSent, UInt64(clamping: unacknowledged))
  }
}

// MARK: - Pings

extension Connection {
  /// Pings that may still be answered.
  package var pingsUnanswered: Int { liveness.pingsUnanswered }

  /// Sends a ping and returns the number by which `.ponged` will name it.
  package mutating func ping(at now: LinkInstant) -> UInt64 {
    self.now = max(self.now, now)
    let id = liveness.nextPingID()
    guard isLive else { return id }
    if let dialect = framing.dialect {
      ping(id, in: dialect)
      return id
    }
    liveness.sentPing(id, at: self.now)
    outbox.encode(FrameHead(.ping, length: 8)) { span in
      // Any integer may be appended as its bytes.
      unsafe span.append(id.bigEndian, as: UInt64.self)
    }
    counters.pingsSent += 1
    return id
  }

  mutating func acceptPing(_ body: BodySlice) throws(Violation) {
    try countPing()
    unsafe input.withStorage { storage in
      // The body stands in the input, taken but not yet appended to.
      let bytes = unsafe UnsafeRawBufferPointer(
        rebasing: storage[body.start..<body.start + body.count])
      outbox.encode(FrameHead(.pong, length: body.count)) { span in
        unsafe span.appendBytes(bytes)
      }
    }
  }

  /// Counts a ping of the peer, which may not send too many.
  mutating func countPing() throws(Violation) {
    counters.pingsReceived += 1
    guard liveness.countPeerPing(at: now) else {
      throw Violation(.tooManyPings, kind: FrameKind.ping.rawValue, serial: 0)
    }
  }

  mutating func acceptPong(_ body: BodySlice) {
    let id: UInt64? = withBody(body) { bytes in
      guard bytes.byteCount == 8 else { return nil }
      return UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(as: UInt64.self))
    }
    guard let id, let ping = liveness.answered(where: { $0 == id }) else {
      counters.droppedPongs += 1
      return
    }
    tell(.ponged(id: id, roundTrip: now - ping.sent))
  }
}
