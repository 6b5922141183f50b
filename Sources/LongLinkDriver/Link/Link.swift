// SPDX-License-Identifier: Apache-2.0

package import Logging
@_spi(Containers) package import LongLinkCore
package import LongLinkTransport

/// Hears, on the loop, what happens on its links. It may give a link any command meanwhile.
package protocol LinkOwner: AnyObject {
  /// A message of the peer; its bytes and the link's metadata are good during the call.
  func link(_ link: Link, received message: Arrival)
  /// Anything else that has happened.
  func link(_ link: Link, tells news: LinkNews)
  /// The link has ended; it says nothing more.
  func link(_ link: Link, endedWith reason: CloseReason)
  /// Everything that was to be sent has been written.
  func linkWroteAll(_ link: Link)
}

/// One connection: a stream, the protocol's core, and the moving of bytes between them.
///
/// Everything is called on its loop. The loop drives the link by readiness, timers and the ends of
/// turns. Owners, requests, handlers and pushes give it the commands of `Link+Commands` and ask
/// what is in `Link+State`; nobody else touches the core. Each command settles the link by itself:
/// the owner is told what it set off, its bytes leave by the end of the turn, and the timer is set.
///
/// The owner is told before the command returns or, where the caller has to note the outcome first,
/// as with `request` and `cancel`, at the end of the turn. It may give commands while it is told
/// something: they return at once, and what they set off it hears next.
///
/// The core changes in place and hands nothing out that leads back to it while it does, so that the
/// run-time checks of exclusive access are left out where every frame would pay for them.
package final class Link {
  package let id: UInt32
  package let loop: EventLoop
  @safe @exclusivity(unchecked) var core: Connection
  package private(set) var peer: SocketAddress?
  private let peerLog: PeerLog
  /// What the owner calls the connection in logs, where it does.
  private let label: (key: String, number: UInt64)?
  /// The metadata that was decoded last.
  @safe @exclusivity(unchecked) var lastMetadata = ReceivedMetadata() {
    didSet { isPlain = lastMetadata.isPlain }
  }
  /// Whether it says nothing of a request but the time that remains.
  @safe @exclusivity(unchecked) var isPlain = true
  /// Whether that is the metadata of the message that the owner is being told of.
  @safe @exclusivity(unchecked) var hasMetadata = false
  /// The stream is the link's to the end; nothing is asked of it any more once the link has ended.
  let stream: any ByteStream
  /// Whether anything may still come of the link.
  @safe @exclusivity(unchecked) package private(set) var isAlive = true
  @safe @exclusivity(unchecked) var owner: (any LinkOwner)?
  var isConnected: Bool
  /// Whether the stream was asked to tell of bytes, and of room for them.
  var awaitsBytes = false
  var awaitsRoom = false
  private var timer: LoopTimer?
  private var armedFor = LinkInstant.distantFuture
  var endsTurn = false
  @safe @exclusivity(unchecked) var earlyWriting = EarlyWriting()
  /// Why writing early failed in this turn, which is acted on at its end.
  var earlyFailure: Int32?
  /// How often the loop's thread had lost the processor when writing early was last tried.
  var preemptions: Int?
  /// Whether the owner is being told.
  @safe @exclusivity(unchecked) var isDraining = false
  /// Whether pushes are the next to use room that there is again.
  var pushesGoFirst = false
  /// Whether the connection's input is the loop's read queue for now.
  var borrowsQueue = false
  /// What the server's connections may hold; nil for a client.
  let share: MemoryShare?
  @safe @exclusivity(unchecked) var account = MemoryAccount()
  /// Whether frames may have been left since the peer does not take its answers.
  var isHeld = false
  /// Whether bytes were left in the stream for want of memory or time.
  var leavesBytes = false
  /// Turns in a row in which nothing was read, to wait for handlers that were cancelled.
  var postponements: UInt8 = 0
  /// Whether little is read at once since memory is short.
  var isSparing = false
  /// What the link counts into once it has ended.
  @safe @exclusivity(unchecked) var totals: ConnectionTotals?

  /// Spreads the serials of peers in tables, so that they cannot pick ones that collide.
  static let serialMix = UInt32.random(in: 1...(.max))

  package init(
    id: UInt32, stream: any ByteStream, isConnected: Bool, settings: ConnectionSettings,
    on loop: EventLoop, log: PeerLog,
    label: (key: String, number: UInt64)? = nil, share: MemoryShare? = nil
  ) {
    self.id = id
    self.loop = loop
    self.stream = stream
    self.share = share
    self.isConnected = isConnected
    peerLog = log
    self.label = label
    peer = stream.peerAddress
    var settings = settings
    settings.serialMix = Link.serialMix
    core = Connection(settings: settings, at: loop.driver.now)
  }

  /// Logs a line that the peer can cause, with the connection: only a few a minute of each message
  /// pass.
  package func log(
    _ level: Logger.Level, _ message: StaticString,
    _ metadata: @autoclosure () -> Logger.Metadata = [:]
  ) {
    peerLog.log(level, message, at: loop.now) {
      metadata().merging(identity) { told, _ in told }
    }
  }

  /// What tells the connection from others in logs.
  private var identity: Logger.Metadata {
    var identity: Logger.Metadata = [
      "peer": "\(peer.map(String.init(describing:)) ?? "unknown")"
    ]
    if let label { identity[label.key] = "\(label.number)" }
    return identity
  }

  /// Starts to listen for readiness; `owner` hears of everything.
  package func start(for owner: any LinkOwner) {
    self.owner = owner
    stream.attach(self, token: UInt64(id))
    watch(bytes: isConnected, room: !isConnected)
    if isConnected {
      core.connected(at: loop.now)
      drain()
    }
    arm()
  }

  /// Asks the stream to tell of these things alone.
  @inline(__always)
  func watch(bytes: Bool, room: Bool) {
    if bytes != awaitsBytes || room != awaitsRoom { setInterest(bytes: bytes, room: room) }
  }

  private func setInterest(bytes: Bool, room: Bool) {
    awaitsBytes = bytes
    awaitsRoom = room
    guard isAlive else { return }
    stream.setInterest((bytes ? Readiness.read : .none).union(room ? .write : .none))
  }
}

// MARK: - Telling the owner

extension Link {
  /// Tells the owner what the core has for it until there is nothing, and sees to the stream.
  ///
  /// Nothing else asks the core for messages and effects.
  func drain() {
    // An owner that gives a command may come back here; the outer call goes on with the rest.
    guard !isDraining else { return }
    isDraining = true
    repeat {
      // Once the owner is let go of there are no messages any more.
      if let owner { handMessages(to: owner) }
    } while performEffect()
    isDraining = false
    if core.holdsReading {
      isHeld = true
    } else if isHeld {
      awaitEndOfTurn()
    }
    if core.forgetsMetadata() { lastMetadata = ReceivedMetadata() }
    if !core.isLive { releaseMemory() }
    if core.waitsForHandlers { awaitEndOfTurn() }
    if core.wantsToWrite { writeAtEndOfTurn() }
  }

  private func handMessages(to owner: any LinkOwner) {
    while let message = core.nextMessage() { hand(message, to: owner) }
  }

  @inline(__always)
  private func hand(_ message: Arrival, to owner: any LinkOwner) {
    if judgeMetadata(of: message) {
      owner.link(self, received: message)
    } else if message.kind == .request {
      // The connection has ended over it, and there is no handler to return.
      core.handlerReturned(bytes: message.byteCount)
    }
  }

  /// Carries out the next effect; false when there is none.
  private func performEffect() -> Bool {
    switch core.nextEffect() {
    case .message(let message):
      if let owner { hand(message, to: owner) }
    case .tell(let news):
      tell(news)
    case .shutDownWriting:
      if isAlive { stream.shutDownWriting() }
    case .close(let reason):
      end(reason)
    case nil:
      return false
    }
    return true
  }

  private func tell(_ news: LinkNews) {
    if case .damaged(let violation) = news {
      log(
        .warning, "Dropped a damaged packet",
        ["reason": "\(violation.rule.rawValue)", "detail": "\(violation)"])
    }
    owner?.link(self, tells: news)
    if case .established = news { followDeadline() }
  }

  private func end(_ reason: CloseReason) {
    guard isAlive else { return }
    isAlive = false
    if let timer { loop.cancel(timer) }
    timer = nil
    armedFor = .distantFuture
    if case .heartbeatLost = reason { stream.reset() } else { stream.close() }
    let owner = owner
    self.owner = nil
    owner?.link(self, endedWith: reason)
    followMemory()
  }
}

// MARK: - Time

extension Link: TimerHandler {
  /// Sets the loop's timer when the connection wants to be called earlier than it is set for.
  @inline(__always)
  func arm() {
    if core.deadline < armedFor { setTimer() }
  }

  /// Sets the timer anew also where the connection wants to be called later: an idle link is not to
  /// be woken for nothing.
  func followDeadline() {
    if core.deadline != armedFor { setTimer() }
  }

  private func setTimer() {
    guard isAlive else { return }
    if let timer { loop.cancel(timer) }
    timer = nil
    armedFor = core.deadline
    // A dialect may have nothing to wait for.
    guard armedFor != .distantFuture else { return }
    timer = loop.schedule(at: armedFor, self, token: UInt64(id))
  }

  package func timerFired(token: UInt64) {
    guard isAlive else { return }
    timer = nil
    armedFor = .distantFuture
    // After a pause of the process the peer's bytes may wait in the socket: they count first.
    if isConnected, awaitsBytes { read() }
    guard isAlive else { return }
    // What this side has left unread is not the peer's silence.
    if leavesBytes { core.resumedReading(at: loop.driver.now) }
    core.elapsed(to: loop.driver.now, unacknowledged: unacknowledgedBytes)
    drain()
    followMemory()
    if core.isIdle {
      core.releaseStorage()
      // Both forget the last metadata, or one would take a later block for what the other knows.
      lastMetadata = ReceivedMetadata()
    }
    arm()
  }

  var unacknowledgedBytes: Int {
    isConnected && isAlive ? stream.unacknowledgedBytes : 0
  }
}
