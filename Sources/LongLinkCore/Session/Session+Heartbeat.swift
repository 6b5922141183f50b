/// A ping that was sent and not yet answered.
struct OutstandingPing: Equatable, Sendable {
  let id: UInt64
  let sent: LinkInstant
}

/// What a session waits for once it has asked its peer for a sign of life.
struct Suspicion: Equatable, Sendable {
  /// Without a byte until then the peer is dead.
  var limit: LinkInstant
  /// Bytes of this connection up to and with the ping.
  let pingEnd: UInt64
  /// Bytes that the peer's system had taken when that was last looked at; nil where it was not yet.
  var acknowledged: UInt64?
  /// Whether nothing of what stood before the ping is still on its way.
  var pingHasLeft: Bool
}

// MARK: - Suspecting and judging

extension Session {
  /// Whether a sign of life was asked for and has not come yet.
  package var isSuspecting: Bool { suspicion != nil }

  /// Sets how long this side itself lets a silence last; what was agreed is the most.
  package mutating func setPace(_ interval: Int64) {
    pace = interval
    followPace()
    guard isOpen, suspicion == nil else { return }
    timers[.heartbeat] = heartbeatDue
  }

  mutating func followPace() {
    pingInterval = min(agreement.heartbeatInterval, pace)
  }

  /// The heartbeat's time has come: ask for a sign of life, or give the peer up.
  mutating func heartbeatElapsed(due: LinkInstant, unacknowledged: Int) {
    guard isOpen else { return }
    guard !holdsReading else {
      // This side keeps itself from reading; the timer for writing judges the peer meanwhile.
      timers[.heartbeat] = now + pingInterval
      return
    }
    if suspicion != nil {
      if stoodStill(since: due) {
        suspect(unacknowledged: unacknowledged)
      } else {
        judge(unacknowledged: unacknowledged)
      }
    } else if let dialect {
      heartbeatElapsed(in: dialect, unacknowledged: unacknowledged)
    } else if now - lastRead >= pingInterval {
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
    suspicion = Suspicion(
      limit: now + agreement.heartbeatTimeout,
      pingEnd: counters.bytesSent + UInt64(outbox.encodedBytes),
      acknowledged: acknowledged,
      pingHasLeft: isClear)
    awaitJudgement()
  }

  /// Gives the peer up at the limit, which moves for as long as bytes before the ping leave.
  private mutating func judge(unacknowledged: Int) {
    guard var suspicion else { return }
    if !suspicion.pingHasLeft {
      let acknowledged = acknowledgedBytes(unacknowledged)
      if let last = suspicion.acknowledged, acknowledged > last {
        // It may have been a moment ago: what is seen late must not shorten the peer's time.
        suspicion.limit = now + agreement.heartbeatTimeout
      }
      suspicion.acknowledged = acknowledged
      let hasAllLeft = unacknowledged == 0 && outbox.encodedBytes == 0
      suspicion.pingHasLeft = hasAllLeft || acknowledged >= suspicion.pingEnd
    }
    self.suspicion = suspicion
    if now >= suspicion.limit { close(.heartbeatLost) } else { awaitJudgement() }
  }

  private mutating func awaitJudgement() {
    guard let suspicion else { return }
    let look = now + max(agreement.heartbeatTimeout / 8, 10_000_000)
    timers[.heartbeat] = suspicion.pingHasLeft ? suspicion.limit : min(suspicion.limit, look)
  }

  /// A byte has come: whatever was suspected, the peer lives.
  mutating func endSuspicion() {
    suspicion = nil
    guard isOpen else { return }
    timers[.heartbeat] = heartbeatDue
    if settings.pace != nil { tell(.heartbeatAnswered(silence: silenceProbed)) }
  }

  /// Sends a ping ahead of data that follows a long silence.
  @inline(__always)
  mutating func probeBeforeData() {
    if now - lastRead >= pingInterval, suspicion == nil { probeAfterSilence() }
  }

  private mutating func probeAfterSilence() {
    if canProbe { suspect(unacknowledged: nil) }
  }

  /// Whether a sign of life can be asked for, and is owed then.
  private var canProbe: Bool { dialect?.canProbe ?? true }

  /// When the heartbeat has something to do while nothing is suspected.
  var heartbeatDue: LinkInstant {
    if let dialect { return dialect.heartbeatDue(lastRead: lastRead, every: pingInterval) }
    return lastRead + pingInterval
  }

  /// Tells that a request which had left got no answer in its time. Several in a row, with nothing
  /// read in between, are a reason to ask for a sign of life before the interval is over.
  package mutating func deadlineMissed(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    guard isOpen, !holdsReading, suspicion == nil, settings.missedDeadlines > 0, canProbe
    else { return }
    missedDeadlines += 1
    guard missedDeadlines >= settings.missedDeadlines, self.now >= mayAskEarly else { return }
    missedDeadlines = 0
    // A peer that answers pings alone must not be flooded with them.
    mayAskEarly = self.now + Session.earlyPingRest
    counters.earlySuspicions += 1
    suspect(unacknowledged: unacknowledged)
  }

  /// Asks for a sign of life now, unless that was done and may still be answered.
  package mutating func probe(at now: LinkInstant, unacknowledged: Int) {
    self.now = max(self.now, now)
    guard isOpen, !holdsReading, suspicion == nil, canProbe else { return }
    suspect(unacknowledged: unacknowledged)
  }

  /// Between two pings that missed deadlines are the reason for, in nanoseconds.
  private static let earlyPingRest: Int64 = 1_000_000_000

  /// Bytes of this connection that the peer's system has taken, where `unacknowledged` of those
  /// that were written have not been.
  func acknowledgedBytes(_ unacknowledged: Int) -> UInt64 {
    counters.bytesSent - min(counters.bytesSent, UInt64(clamping: unacknowledged))
  }
}

// MARK: - Time that nobody watched

extension Session {
  /// Whether a timer comes so late that the process, or its loop, must have stood still: the peer
  /// cannot be judged by a time in which nobody would have heard it.
  func stoodStill(since due: LinkInstant) -> Bool {
    now - due > min(agreement.heartbeatTimeout / 2, Session.lateness)
  }

  /// How late a timer may be on a machine that is merely busy, in nanoseconds.
  private static let lateness: Int64 = 1_000_000_000
}

// MARK: - Pings

extension Session {
  /// Pings that may still be answered.
  package var pingsUnanswered: Int { pings.count }

  /// Sends a ping and returns the number by which `.ponged` will name it.
  package mutating func ping(at now: LinkInstant) -> UInt64 {
    self.now = max(self.now, now)
    let id = nextPing
    nextPing += 1
    guard isLive else { return id }
    if let dialect {
      ping(id, in: dialect)
      return id
    }
    // A peer that sends, but answers no ping, must not make this grow.
    if pings.count >= Wire.pingsPerWindow { _ = pings.popFirst() }
    pings.append(OutstandingPing(id: id, sent: self.now))
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
    let windowStart = now + -Wire.pingWindow
    pingTimes.removeAll { $0 <= windowStart }
    pingTimes.append(now)
    guard pingTimes.count <= Wire.pingsPerWindow else {
      throw Violation(.tooManyPings, kind: FrameKind.ping.rawValue, serial: 0)
    }
  }

  mutating func acceptPong(_ body: BodySlice) {
    let id: UInt64? = withBody(body) { bytes in
      guard bytes.byteCount == 8 else { return nil }
      return UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(as: UInt64.self))
    }
    guard let id, let ping = pings.remove(where: { $0.id == id }) else {
      counters.droppedPongs += 1
      return
    }
    tell(.ponged(id: id, roundTrip: now - ping.sent))
  }
}
