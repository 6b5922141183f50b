// SPDX-License-Identifier: Apache-2.0

/// One connection's protocol, for either role: bytes and instants in, messages and effects out.
///
/// It uses no socket, thread or clock. One driver calls it, never two calls at a time, in this
/// order:
///
/// 1. **Connected.** `connected(at:)`, once the stream is connected and secured. The time for the
///    handshake runs from `init`; until then only the calls about time and ends make sense.
/// 2. **Bytes.** To read: nothing while `holdsReading`, `readHold.waitsForHandlers` or
///    `carriage.peerHasEnded` is true. Else `readSize(upTo:)` and `makeRoom(for:with:)` of the
///    inbox say how much; append that to its `input`, and call `received(_:at:)`.
///    `receivedPart(at:)` is for bytes of the security that are no whole record, and
///    `ended(at:isCutOff:)` for the peer's end of stream. To write, while `wantsToWrite`: write the
///    outbox's `chunk`, and call `wrote(_:at:)`, also with 0, from which the time for writing runs.
///    `failed` if either fails.
/// 3. **Time.** `elapsed(to:unacknowledged:)` at `deadline`, after what waits in the socket was
///    read. Every other call can move the deadline.
/// 4. **After each of these**, deliver: `nextMessage()` until it returns nil, then `nextEffect()`
///    once, and both again until neither returns anything. (A message is no effect, because that
///    would cost a copy of each.) A message's body and metadata, in the inbox, are valid until the
///    next call of `nextMessage` or `close`. `.abandon` ends all exchanges, and `.close` is the
///    last effect. If `waitsForHandlers` is then true, call `handlersHadTurn()` of the read hold at
///    the end of the turn, deliver, and call its `handlersTurnEnds()`.
/// 5. **Commands**, at any time, also while a message or effect is delivered. They deliver nothing:
///    `hasEffects` tells whether there is anything to deliver.
///    - Own exchanges: `request`, `push` (only while `isOpen`), `cancel`, `deadlineMissed`;
///      `abandonResponse` after `.collect`, and `rejectStray` after `.stray`, as `LinkNews` says.
///    - The peer's requests: `inbound.setPayload` if the handler runs in a task; `respond` when it
///      returns, or before that with `isInterrupting`. In place of `respond`, for a request that
///      was cancelled, interrupted or abandoned, `inbound.handlerReturned`.
///    - Items: `sendItem` (not while one of its stream waits), `endItems`, `tookItems`.
///    - Heartbeat: `ping`, `probe`, `setPace`. Rates: `slowed`, `unslowed`.
///    - After `.identify`: `takeCredential` of the `greeting`, then `admit` or `turnAway`. A
///      client: `renew`.
///    - Ends: `goAway`, `shutDown`, `evict`, `close`. Memory: `releaseStorage` and the like.
///
/// All but `request` and `push` may come too late, when the connection is closing or closed, and
/// then do nothing.
///
/// **Who owes `resumedReading(at:)`: the driver**, whenever it reads again after `holdsReading` was
/// true, whatever ended that: `wrote`, `admit`, `tookItems` or `unslowed`. It then delivers, since
/// frames may wait in the input. It also owes it before `elapsed`, if it has left bytes in the
/// socket. Otherwise the time in which this side did not read would count as silence of the peer.
package struct Connection: ~Copyable {
  package let settings: ConnectionSettings
  package let framing: Framing
  package internal(set) var carriage: Carriage
  package private(set) var phase = ConnectionPhase.fresh
  /// The phase's `standing`, cached because every message needs it.
  private var standing = ConnectionPhase.fresh.standing
  package internal(set) var agreement: Agreement
  package var counters = ConnectionCounters()
  /// What has arrived; the driver appends to its input.
  package var inbox = Inbox()
  /// Bytes and messages that wait to be written; the driver writes its chunks and calls `wrote`.
  package var outbox: Outbox
  var timers = ConnectionTimers()
  private let anchor = Anchor()
  var effects = Queue<Effect>()
  var now: LinkInstant

  // Receiving
  package var readHold: ReadHold
  package var inbound: InboundTable
  package internal(set) var streams: StreamTable
  /// The cancels that the peer can still send.
  var cancels: TokenBucket
  var assemblies: Assemblies
  var heardHello = false
  /// The client's hello or renewal, until the server has decided about it. The owner may take it
  /// once the connection is open.
  package var greeting: Greeting?

  // Sending
  package internal(set) var ordinals = RequestOrdinals()
  package internal(set) var goodbyes: Goodbyes
  package internal(set) var marks = SendMarks()

  package internal(set) var liveness: Liveness
  /// How long waiting bytes can make no progress, in nanoseconds: not longer than the agreed
  /// heartbeat lets a dead peer stay.
  var writingTimeout: Int64

  package init(settings: ConnectionSettings, at now: LinkInstant) {
    self.settings = settings
    self.now = now
    carriage = Carriage(settings.role, isShort: settings.isShort)
    goodbyes = Goodbyes(settings.role)
    inbound = InboundTable(serialMix: settings.serialMix)
    streams = StreamTable(settings)
    assemblies = Assemblies(serialMix: settings.serialMix)
    liveness = Liveness(settings, at: now)
    writingTimeout = settings.writingTimeout
    readHold = ReadHold(at: now)
    cancels = TokenBucket(at: now)
    framing = Framing(settings.dialect, serialMix: settings.serialMix, at: now)
    outbox = Outbox(
      dialect: settings.dialect, encodeLimit: settings.encodeLimit, serialMix: settings.serialMix)
    agreement = Agreement(settings)
    timers[.handshake] = now + settings.handshakeTimeout
    if let limit = framing.maximumBody { agreement.maxBody = limit }
  }

  /// Enters another phase. Nothing else changes the phase.
  mutating func become(_ next: ConnectionPhase) {
    precondition(phase.canBecome(next), "a connection that is \(phase) cannot become \(next)")
    phase = next
    standing = next.standing
  }

  /// When `elapsed(to:)` should be called.
  package var deadline: LinkInstant { timers.deadline }

  /// Whether frames can be sent that are not part of closing.
  package var isOpen: Bool { standing.contains(.open) }

  /// Whether exchanges can still complete.
  package var isLive: Bool { standing.contains(.live) }

  /// Whether frames of the peer are processed.
  var isReceiving: Bool { standing.contains(.receiving) }

  /// Whether the connection has ended.
  package var isClosed: Bool { phase.isClosed }

  /// Whether reading is suspended: the peer does not read its responses, or sends faster than it
  /// may, or, on a short link, the application does not take the items.
  @inline(__always)
  package var holdsReading: Bool {
    if carriage.isShort, carriage.serial.map({ streams.isFull($0) }) ?? false { return true }
    // A single large response is no reason, unless memory is scarce: it must not delay the requests
    // and cancels behind it.
    guard settings.role == .server else { return false }
    guard isOpen else { return phase == .identifying }
    return outbox.isCongested
      || readHold.holds(unread: outbox.totalBytes, of: settings.maxUnread)
  }
}

extension Connection {
  /// Advances the time, and performs everything that is due.
  ///
  /// The driver first reads what waits in the socket, so that a late call does not blame the peer.
  /// `unacknowledged` is the number of written bytes that have not reached the peer's system yet.
  package mutating func elapsed(to now: LinkInstant, unacknowledged: Int = 0) {
    self.now = max(self.now, now)
    if liveness.stoodStill(since: deadline, at: self.now), !isClosed { counters.pauses += 1 }
    while let (timer, due) = timers.nextDue(at: self.now) {
      switch timer {
      case .handshake: if timesHandshake, !isExcused(timer, due) { handshakeElapsed() }
      case .frame: if !isExcused(timer, due) { frameElapsed() }
      case .message: if !isExcused(timer, due) { messageElapsed() }
      case .heartbeat: heartbeatElapsed(due: due, unacknowledged: unacknowledged)
      case .writing:
        if isExcused(timer, due) {
          liveness.writingExcused(acknowledged: counters.acknowledged(besides: unacknowledged))
        } else {
          writingElapsed(unacknowledged: unacknowledged)
        }
      case .linger: lingerElapsed()
      }
    }
  }

  /// Gives the peer more time if this side stood still and could not have received anything.
  private mutating func isExcused(_ timer: ConnectionTimer, _ due: LinkInstant) -> Bool {
    guard liveness.stoodStill(since: due, at: now) else { return false }
    timers[timer] = now + agreement.heartbeatTimeout
    return true
  }

  /// Whether the handshake timer limits the peer, and not the time between two renewals.
  private var timesHandshake: Bool { phase == .fresh || carriage.timesRequest }

  private mutating func handshakeElapsed() {
    switch (phase, settings.role) {
    case (.fresh, .client): close(.handshakeTimeout)
    case (.fresh, .server), (.open, .server): violate(Violation(.firstFrameTimeout))
    case (.identifying, _), (.open, .client), (.closing, _), (.closed, _): break
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
