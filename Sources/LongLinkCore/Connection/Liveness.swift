// SPDX-License-Identifier: Apache-2.0

/// A ping that was sent and not yet answered.
struct OutstandingPing: Equatable, Sendable {
  let id: UInt64
  let sent: LinkInstant
}

/// What a connection knows of its peer's life, from what was read and written when.
///
/// It judges, and does nothing: the connection sends the pings, sets the timers and closes. It is a
/// plain value, so that a test may copy it and try what comes of either course.
struct Liveness: Equatable, Sendable {
  /// What is awaited once the peer has been asked for a sign of life.
  struct Suspicion: Equatable, Sendable {
    /// Without a byte until then the peer is dead.
    var limit: LinkInstant
    /// Bytes of this connection up to and with the ping.
    let pingEnd: UInt64
    /// Bytes that the peer's system had taken at the last look; nil before the first.
    var acknowledged: UInt64?
    /// Whether nothing of what stood before the ping is still on its way.
    var pingHasLeft: Bool
  }

  /// The agreed heartbeat, in nanoseconds.
  private var interval: Int64
  private(set) var timeout: Int64
  /// How long this side lets a silence last, where it has an opinion of its own, in nanoseconds.
  private var pace: Int64
  /// How long it does, with what was agreed.
  private(set) var pingInterval: Int64

  private(set) var lastRead: LinkInstant
  private var lastWrote: LinkInstant
  /// The longest time, in nanoseconds, for which neither side had said anything before bytes that
  /// this side wrote and that nothing read has answered yet; 0 where there are none.
  private(set) var silenceProbed: Int64 = 0
  private(set) var suspicion: Suspicion?
  /// Requests whose deadlines have passed since a byte was last read.
  private var missedDeadlines = 0
  /// When they may be a reason to ask again.
  private var mayAskEarly: LinkInstant
  /// When the peer was last seen to take bytes, and how many it had taken by then.
  private var writingProgress: LinkInstant
  private var writingAcknowledged: UInt64?
  private var pings: [OutstandingPing] = []
  private var nextPing: UInt64 = 1
  /// When the peer's pings of the last `Wire.pingWindow` came.
  private var peerPings: [LinkInstant] = []

  /// Between two pings that missed deadlines are the reason for, in nanoseconds.
  private static let earlyPingRest: Int64 = 1_000_000_000
  /// How late a timer may be on a machine that is merely busy, in nanoseconds.
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

  /// Takes over what both sides agreed on.
  mutating func agree(interval: Int64, timeout: Int64) {
    (self.interval, self.timeout) = (interval, timeout)
    pingInterval = min(interval, pace)
  }

  /// Sets how long this side itself lets a silence last; what was agreed is the most.
  mutating func setPace(_ pace: Int64) {
    self.pace = pace
    pingInterval = min(interval, pace)
  }

  /// The connection begins now.
  mutating func begin(at now: LinkInstant) {
    lastRead = now
    lastWrote = now
  }

  /// Whether a timer comes so late that the process, or its loop, must have stood still: the peer
  /// cannot be judged by a time in which nobody would have heard it.
  func stoodStill(since due: LinkInstant, at now: LinkInstant) -> Bool {
    now - due > min(timeout / 2, Liveness.lateness)
  }
}

// MARK: - Reading and writing

extension Liveness {
  /// Bytes of the peer came. Returns the silence that it had been asked after, where they end a
  /// suspicion.
  @inline(__always)
  mutating func read(at now: LinkInstant) -> Int64? {
    let silence = suspicion == nil ? nil : silenceProbed
    heard(at: now)
    return silence
  }

  /// Reading goes on after this side had kept itself from it, which is nobody's silence.
  @inline(__always)
  mutating func heard(at now: LinkInstant) {
    lastRead = now
    missedDeadlines = 0
    suspicion = nil
    silenceProbed = 0
  }

  /// Bytes of this side left.
  @inline(__always)
  mutating func wrote(at now: LinkInstant) {
    silenceProbed = max(silenceProbed, now - max(lastRead, lastWrote))
    lastWrote = now
  }

  /// What was written begins to be watched: it left just now.
  @inline(__always)
  mutating func watchWriting(at now: LinkInstant) {
    writingProgress = now
    writingAcknowledged = nil
  }

  /// What leaves from now on is seen to have left.
  mutating func writingExcused(acknowledged: UInt64) {
    writingAcknowledged = acknowledged
  }

  /// Looks whether the peer's system took bytes of late; until when it may take none. The stream
  /// may take nothing more for a long time while what it has goes out over a slow path.
  mutating func writingLimit(
    acknowledged: UInt64, timeout: Int64, at now: LinkInstant
  ) -> LinkInstant {
    if let last = writingAcknowledged, acknowledged > last { writingProgress = now }
    writingAcknowledged = acknowledged
    return writingProgress + timeout
  }
}

// MARK: - Suspecting and judging

extension Liveness {
  /// Whether nothing was read for so long that a sign of life is to be asked for.
  @inline(__always)
  func isSilent(at now: LinkInstant) -> Bool { now - lastRead >= pingInterval }

  /// The peer has been asked for a sign of life; only a byte that is read ends the suspicion.
  mutating func suspect(
    pingEnd: UInt64, acknowledged: UInt64?, pingHasLeft: Bool, at now: LinkInstant
  ) {
    suspicion = Suspicion(
      limit: now + timeout, pingEnd: pingEnd, acknowledged: acknowledged,
      pingHasLeft: pingHasLeft)
  }

  /// Whether the peer is to be given up: the limit has passed, which moves for as long as bytes
  /// before the ping leave.
  mutating func isDead(acknowledged: UInt64, allHasLeft: Bool, at now: LinkInstant) -> Bool {
    guard var suspicion else { return false }
    if !suspicion.pingHasLeft {
      if let last = suspicion.acknowledged, acknowledged > last {
        // It may have been a moment ago: what is seen late must not shorten the peer's time.
        suspicion.limit = now + timeout
      }
      suspicion.acknowledged = acknowledged
      suspicion.pingHasLeft = allHasLeft || acknowledged >= suspicion.pingEnd
    }
    self.suspicion = suspicion
    return now >= suspicion.limit
  }

  /// When to judge next what is suspected.
  func nextJudgement(at now: LinkInstant) -> LinkInstant {
    guard let suspicion else { return .distantFuture }
    let look = now + max(timeout / 8, 10_000_000)
    return suspicion.pingHasLeft ? suspicion.limit : min(suspicion.limit, look)
  }

  /// Counts a request that had left and got no answer in its time; true when `limit` of them in a
  /// row are a reason to ask for a sign of life before the interval is over.
  mutating func deadlineMissed(limit: Int, at now: LinkInstant) -> Bool {
    missedDeadlines += 1
    guard missedDeadlines >= limit, now >= mayAskEarly else { return false }
    missedDeadlines = 0
    // A peer that answers pings alone must not be flooded with them.
    mayAskEarly = now + Liveness.earlyPingRest
    return true
  }
}

// MARK: - Pings

extension Liveness {
  /// Pings that may still be answered.
  var pingsUnanswered: Int { pings.count }

  /// The number of the next ping.
  mutating func nextPingID() -> UInt64 {
    defer { nextPing += 1 }
    return nextPing
  }

  /// A ping was sent that may be answered.
  mutating func sentPing(_ id: UInt64, at now: LinkInstant) {
    // A peer that sends, but answers no ping, must not make this grow.
    if pings.count >= Wire.pingsPerWindow { pings.removeFirst() }
    pings.append(OutstandingPing(id: id, sent: now))
  }

  /// Takes the first ping that an answer is for.
  mutating func answered(where matches: (UInt64) -> Bool) -> OutstandingPing? {
    guard let index = pings.firstIndex(where: { matches($0.id) }) else { return nil }
    return pings.remove(at: index)
  }

  /// Counts a ping of the peer; false when they are too many.
  mutating func countPeerPing(at now: LinkInstant) -> Bool {
    let windowStart = now + -Wire.pingWindow
    peerPings.removeAll { $0 <= windowStart }
    peerPings.append(now)
    return peerPings.count <= Wire.pingsPerWindow
  }
}
