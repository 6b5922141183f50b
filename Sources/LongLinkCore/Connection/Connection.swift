// SPDX-License-Identifier: Apache-2.0

/// One connection's protocol, for either role: bytes and instants in, effects out.
///
/// The driver calls `connected(at:)` once the stream is connected. It appends what it read to
/// `input` and calls `received(_:at:)`, and calls `elapsed(to:)` when `deadline` has come. After
/// each of these it asks for `nextMessage()` until there is none, then for one `nextEffect()`, and
/// begins anew until there is neither. Messages come by themselves, since they are many: to wrap
/// each in an effect would cost a copy. A command has set off something where `hasEffects`.
/// Nothing here knows a socket, a thread or a clock.
package struct Connection: ~Copyable {
  /// Where a connection stands.
  package enum Phase: Equatable, Sendable {
    /// Nothing has come.
    case fresh
    /// Frames flow.
    case open
    /// A goaway says why; the peer's end is awaited.
    case closing(CloseReason)
    /// Nothing happens any more.
    case closed(CloseReason)

    /// What may be done in it.
    struct Standing: OptionSet {
      let rawValue: UInt8

      /// Frames may be sent that are not part of closing.
      static let open = Standing(rawValue: 1)
      /// Exchanges may still go on.
      static let live = Standing(rawValue: 2)
      /// Frames of the peer are taken.
      static let receiving = Standing(rawValue: 4)
    }

    /// Whether another phase may follow.
    func canBecome(_ next: Phase) -> Bool {
      switch (self, next) {
      case (.fresh, .open), (.fresh, .closing), (.fresh, .closed): true
      case (.open, .closing), (.open, .closed): true
      case (.closing, .closed): true
      case (_, .fresh), (.open, .open), (.closing, _), (.closed, _): false
      }
    }

    var standing: Standing {
      switch self {
      case .fresh: [.live, .receiving]
      case .open: [.open, .live, .receiving]
      case .closing, .closed: []
      }
    }
  }

  /// What the peer said of itself, or the defaults.
  package struct Agreement: Equatable, Sendable {
    package var features: Features = []
    /// The largest body that the peer accepts, in bytes.
    package var maxBody = Int(Wire.defaultBody)
    /// The most requests of this side that the peer runs at once.
    package var maxInFlight = Int(Wire.defaultInFlight)
    package var heartbeatInterval: Int64
    package var heartbeatTimeout: Int64
    /// What the peer calls itself, cut to as many bytes as a configuration may give.
    package var name = ""
  }

  package let settings: ConnectionSettings
  let framing: Framing
  package private(set) var phase = Phase.fresh
  /// What follows from the phase and is asked for with every message.
  private var standing = Phase.fresh.standing
  package internal(set) var agreement: Agreement
  package var counters = ConnectionCounters()
  /// What was read and not yet taken; the driver appends here.
  package var input = ByteQueue()
  /// What waits to be written; the driver takes its chunks and tells `wrote`.
  package var outbox: Outbox
  var timers = ConnectionTimers()
  private let anchor = Anchor()
  var effects = Queue<Effect>()
  var now: LinkInstant

  // Receiving
  var frameBegan: LinkInstant?
  /// When reading last went on after this side had kept itself from it.
  var readingResumed: LinkInstant
  /// How many bytes of input the frame takes that has begun; 0 where that is not known.
  var frameLength = 0
  /// How many the last frame took that was large; 0 where none was.
  var largeFrame = 0
  /// From how many bytes on a frame is one.
  static let largeBody = 16_384
  var peerRequests: PeerRequests
  /// Whether handlers are to have a turn before more is taken.
  package internal(set) var waitsForHandlers = false
  /// Whether they have just had one.
  var handlersHadTurn = false
  /// How many bytes the peer may leave unread before its requests wait, where memory is scarce that
  /// this connection shares with others.
  package var mostUnread = Int.max
  var assemblies: Assemblies
  /// The joined fragments of the message that was told of last.
  var assembled: [UInt8] = []
  /// The metadata that was asked about last; nil where it was too long to remember.
  var lastMetadata: [UInt8]? = []
  /// The peer's requests in the order of their first frames, up to this side's goaway.
  package internal(set) var requestsAccepted: UInt64 = 0
  var heardHello = false

  // Sending
  /// This side's requests that have begun to leave.
  package internal(set) var requestsBegun: UInt64 = 0
  package internal(set) var saidGoAway = false
  package internal(set) var peerGoAway: GoAway?
  var hasShutDown = false
  /// Whether so much waits that requests and pushes of this side have to wait.
  package internal(set) var isAboveMark = false
  /// Whether so much waits in fragments that other large ones have to.
  package internal(set) var isAboveLargeMark = false
  var withdrawn = WithdrawnOrdinals()

  var liveness: Liveness

  package init(settings: ConnectionSettings, at now: LinkInstant) {
    self.settings = settings
    self.now = now
    peerRequests = PeerRequests(serialMix: settings.serialMix)
    assemblies = Assemblies(serialMix: settings.serialMix)
    liveness = Liveness(settings, at: now)
    readingResumed = now
    framing = Framing(settings.dialect, serialMix: settings.serialMix, at: now)
    outbox = Outbox(
      dialect: settings.dialect, encodeLimit: settings.encodeLimit, serialMix: settings.serialMix)
    agreement = Agreement(
      heartbeatInterval: settings.heartbeatInterval, heartbeatTimeout: settings.heartbeatTimeout)
    timers[.handshake] = now + settings.handshakeTimeout
    if let limit = framing.maximumBody { agreement.maxBody = limit }
  }

  /// Goes on to another phase; the only place that does.
  mutating func become(_ next: Phase) {
    precondition(phase.canBecome(next), "a connection that is \(phase) cannot become \(next)")
    phase = next
    standing = next.standing
  }

  /// When `elapsed(to:)` wants to be called.
  package var deadline: LinkInstant { timers.deadline }

  /// Whether frames may be sent that are not part of closing.
  package var isOpen: Bool { standing.contains(.open) }

  /// Whether exchanges may still go on.
  package var isLive: Bool { standing.contains(.live) }

  /// Whether frames of the peer are taken.
  var isReceiving: Bool { standing.contains(.receiving) }

  /// Whether anything is still to happen.
  package var isClosed: Bool {
    if case .closed = phase { return true }
    return false
  }

  /// Whether the peer's bytes should wait, since it does not take the answers.
  package var holdsReading: Bool {
    // A large answer alone is no reason, unless memory is scarce: it must not hold up the requests
    // and cancels behind it.
    settings.role == .server && isOpen
      && (outbox.isCongested
        || outbox.totalBytes > min(mostUnread, settings.maxUnread / 2))
  }
}

extension Connection {
  /// Tells of the passing of time: everything that is due happens.
  ///
  /// The driver reads what waits in the socket first, so that a late call judges nobody wrongly.
  /// `unacknowledged` of the bytes that were written have not reached the peer's system yet.
  package mutating func elapsed(to now: LinkInstant, unacknowledged: Int = 0) {
    self.now = max(self.now, now)
    if liveness.stoodStill(since: deadline, at: self.now), !isClosed { counters.pauses += 1 }
    while let (timer, due) = timers.nextDue(at: self.now) {
      switch timer {
      case .handshake: if !isExcused(timer, due) { handshakeElapsed() }
      case .frame: if !isExcused(timer, due) { frameElapsed() }
      case .message: if !isExcused(timer, due) { messageElapsed() }
      case .heartbeat: heartbeatElapsed(due: due, unacknowledged: unacknowledged)
      case .writing:
        if isExcused(timer, due) {
          liveness.writingExcused(acknowledged: acknowledgedBytes(unacknowledged))
        } else {
          writingElapsed(unacknowledged: unacknowledged)
        }
      case .linger: lingerElapsed()
      }
    }
  }

  /// Gives the peer more time where this side could not have heard it in what has passed.
  private mutating func isExcused(_ timer: ConnectionTimer, _ due: LinkInstant) -> Bool {
    guard liveness.stoodStill(since: due, at: now) else { return false }
    timers[timer] = now + agreement.heartbeatTimeout
    return true
  }

  private mutating func handshakeElapsed() {
    switch (phase, settings.role) {
    case (.fresh, .server):
      violate(Violation(.firstFrameTimeout))
    case (.fresh, .client):
      close(.handshakeTimeout)
    case (.open, _), (.closing, _), (.closed, _):
      break
    }
  }

  private mutating func frameElapsed() {
    guard !holdsReading else { return }
    if let step = framing.dialect?.decoder.abandonFrame() {
      if case .damaged(_, let violation) = step { drop(violation) }
    } else {
      violate(Violation(.frameTimeout))
    }
  }
}
