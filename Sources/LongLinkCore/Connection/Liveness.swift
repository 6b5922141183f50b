// SPDX-License-Identifier: Apache-2.0

/// A ping that has no response yet.
struct OutstandingPing: Equatable, Sendable {
  let id: UInt64
  let sent: LinkInstant
}

/// The state that decides whether the peer is alive, from the times of reads and writes.
///
/// It only decides: the connection sends the pings, sets the timers and closes. It is a plain
/// value, so that a test can copy it and try both outcomes.
package struct Liveness: Equatable, Sendable {
  /// The state after a ping was sent because the peer may be lost.
  struct Suspicion: Equatable, Sendable {
    /// The peer is considered lost if no byte arrives until then.
    var limit: LinkInstant
    /// The stream offset behind the ping.
    let pingEnd: UInt64
    /// The number of bytes acknowledged by the peer's system at the last check; nil before that.
    var acknowledged: UInt64?
    /// Whether the peer's system has acknowledged everything up to the ping.
    var pingHasLeft: Bool
  }

  /// The agreed heartbeat, in nanoseconds.
  private var interval: Int64
  private(set) var timeout: Int64
  /// The ping interval of this side's adaptive heartbeat, in nanoseconds; `.max` without one.
  private(set) var pace: Int64
  /// The effective ping interval: the smaller of `interval` and `pace`.
  private(set) var pingInterval: Int64

  private(set) var lastRead: LinkInstant
  private var lastWrote: LinkInstant
  /// The longest silence of both sides, in nanoseconds, that this side ended by writing, while
  /// nothing has been read yet; 0 if there is none.
  package private(set) var silenceProbed: Int64 = 0
  private(set) var suspicion: Suspicion?
  /// The number of requests whose deadlines have passed since a byte was last read.
  private var missedDeadlines = 0
  /// The earliest time at which missed deadlines can cause another ping.
  private var mayAskEarly: LinkInstant
  /// When the peer's system last acknowledged bytes, and how many it had acknowledged by then.
  private var writingProgress: LinkInstant
  private var writingAcknowledged: UInt64?
  private var pings: [OutstandingPing] = []
  private var nextPing: UInt64 = 1
  /// The arrival times of the peer's pings in the last `Wire.pingWindow`.
  private var peerPings: [LinkInstant] = []

  /// The minimum time between two pings that missed deadlines cause, in nanoseconds.
  private static let earlyPingRest: Int64 = 1_000_000_000
  /// How late a timer can be on a machine that is merely busy, in nanoseconds.
  private static let lateness: Int64 = 1_000_000_000

  init(_ settings: ConnectionSettings, at now: LinkInstant) {
    interval = settings.heartbeatInterval
    timeout = settings.heartbeatTimeout
    pace = settings.pace ?? .max
    pingInterval = min(interval, pace)
    lastRead = now
    lastWrote = now
    mayAskEarly = now
    writingProgress = now
  }

  /// Sets the negotiated heartbeat.
  mutating func agree(interval: Int64, timeout: Int64) {
    (self.interval, self.timeout) = (interval, timeout)
    pingInterval = min(interval, pace)
  }

  /// Sets the ping interval of the adaptive heartbeat, capped at the agreed interval.
  mutating func setPace(_ pace: Int64) {
    self.pace = pace
    pingInterval = min(interval, pace)
  }

  /// Starts to measure silence now.
  mutating func begin(at now: LinkInstant) {
    lastRead = now
    lastWrote = now
  }

  /// Whether a timer fires so late that the process or its loop must have stood still. The peer
  /// must not be declared dead for a time in which this side could not have received anything.
  func stoodStill(since due: LinkInstant, at now: LinkInstant) -> Bool {
    now - due > min(timeout / 2, Liveness.lateness)
  }
}

// MARK: - Reading and writing

extension Liveness {
  /// Notes that bytes of the peer arrived. Returns `silenceProbed` if they end a suspicion.
  @inline(__always)
  mutating func read(at now: LinkInstant) -> Int64? {
    let silence = suspicion == nil ? nil : silenceProbed
    heard(at: now)
    return silence
  }

  /// Notes that reading resumes after this side had suspended it: the time without reads does not
  /// count as silence.
  @inline(__always)
  mutating func heard(at now: LinkInstant) {
    lastRead = now
    missedDeadlines = 0
    suspicion = nil
    silenceProbed = 0
  }

  /// Notes that bytes of this side were written.
  @inline(__always)
  mutating func wrote(at now: LinkInstant) {
    silenceProbed = max(silenceProbed, now - max(lastRead, lastWrote))
    lastWrote = now
  }

  /// Whether no bytes of this side were written for `time` nanoseconds.
  func hasWrittenNothing(for time: Int64, at now: LinkInstant) -> Bool { now - lastWrote >= time }

  /// Starts to watch whether the peer takes the bytes that were just written.
  @inline(__always)
  mutating func watchWriting(at now: LinkInstant) {
    writingProgress = now
    writingAcknowledged = nil
  }

  /// Begins anew to watch the peer's progress, from this number of acknowledged bytes.
  mutating func writingExcused(acknowledged: UInt64) {
    writingAcknowledged = acknowledged
  }

  /// Checks whether the peer's system acknowledged bytes, and returns when the lack of progress
  /// becomes a failure. Over a slow path, the stream may accept no bytes for a long time while it
  /// still delivers those in its buffer.
  mutating func writingLimit(
    acknowledged: UInt64, timeout: Int64, at now: LinkInstant
  ) -> LinkInstant {
    if let last = writingAcknowledged, acknowledged > last { writingProgress = now }
    writingAcknowledged = acknowledged
    return writingProgress + timeout
  }
}

// MARK: - Suspecting the peer

extension Liveness {
  /// Whether nothing was read for the ping interval, so that a ping is due.
  @inline(__always)
  func isSilent(at now: LinkInstant) -> Bool { now - lastRead >= pingInterval }

  /// Begins a suspicion, after a ping was sent. It ends only when a byte is read.
  mutating func suspect(
    pingEnd: UInt64, acknowledged: UInt64?, pingHasLeft: Bool, at now: LinkInstant
  ) {
    suspicion = Suspicion(
      limit: now + timeout, pingEnd: pingEnd, acknowledged: acknowledged,
      pingHasLeft: pingHasLeft)
  }

  /// Whether a ping was sent because of silence and nothing has been read since.
  package var isSuspecting: Bool { suspicion != nil }

  /// What the timer of the heartbeat finds.
  enum Verdict: Equatable {
    /// Something was read within the interval.
    case alive
    /// A ping is due: nothing was read, or this side stood still, so that no answer counts.
    case silent
    /// Nothing has come since the ping. The next judgement is due then.
    case suspected(until: LinkInstant)
    case dead
  }

  /// Judges the peer when the heartbeat's timer fires, which was due at `due`.
  mutating func judge(
    due: LinkInstant, acknowledged: UInt64, allHasLeft: Bool, at now: LinkInstant
  ) -> Verdict {
    guard isSuspecting else { return isSilent(at: now) ? .silent : .alive }
    if stoodStill(since: due, at: now) { return .silent }
    let isDead = isDead(acknowledged: acknowledged, allHasLeft: allHasLeft, at: now)
    return isDead ? .dead : .suspected(until: nextJudgement(at: now))
  }

  /// Whether the peer is lost: the limit has passed. While bytes ahead of the ping make progress,
  /// the limit is extended.
  mutating func isDead(acknowledged: UInt64, allHasLeft: Bool, at now: LinkInstant) -> Bool {
    guard var suspicion else { return false }
    if !suspicion.pingHasLeft {
      if let last = suspicion.acknowledged, acknowledged > last {
        // The progress may be recent: seeing it late must not shorten the peer's time.
        suspicion.limit = now + timeout
      }
      suspicion.acknowledged = acknowledged
      suspicion.pingHasLeft = allHasLeft || acknowledged >= suspicion.pingEnd
    }
    self.suspicion = suspicion
    return now >= suspicion.limit
  }

  /// When to check a suspicion next.
  func nextJudgement(at now: LinkInstant) -> LinkInstant {
    guard let suspicion else { return .distantFuture }
    let look = now + max(timeout / 8, 10_000_000)
    return suspicion.pingHasLeft ? suspicion.limit : min(suspicion.limit, look)
  }

  /// Counts a sent request whose deadline passed without a response. Returns true if `limit` of
  /// them in a row are a reason to send a ping before the interval is over.
  mutating func deadlineMissed(limit: Int, at now: LinkInstant) -> Bool {
    missedDeadlines += 1
    guard missedDeadlines >= limit, now >= mayAskEarly else { return false }
    missedDeadlines = 0
    // A peer that answers only pings must not be flooded with them.
    mayAskEarly = now + Liveness.earlyPingRest
    return true
  }
}

// MARK: - Pings

extension Liveness {
  /// The number of pings that can still be answered.
  package var pingsUnanswered: Int { pings.count }

  /// Returns the number for the next ping.
  mutating func nextPingID() -> UInt64 {
    defer { nextPing += 1 }
    return nextPing
  }

  /// Notes that a ping was sent.
  mutating func sentPing(_ id: UInt64, at now: LinkInstant) {
    // A peer that sends data but never answers pings must not make this grow.
    if pings.count >= Wire.pingsPerWindow { pings.removeFirst() }
    pings.append(OutstandingPing(id: id, sent: now))
  }

  /// Removes and returns the first ping that a pong matches.
  mutating func answered(where matches: (UInt64) -> Bool) -> OutstandingPing? {
    guard let index = pings.firstIndex(where: { matches($0.id) }) else { return nil }
    return pings.remove(at: index)
  }

  /// Counts a ping of the peer; false if there are too many.
  mutating func countPeerPing(at now: LinkInstant) -> Bool {
    let windowStart = now + -Wire.pingWindow
    peerPings.removeAll { $0 <= windowStart }
    peerPings.append(now)
    return peerPings.count <= Wire.pingsPerWindow
  }
}
