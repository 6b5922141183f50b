// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

/// One connection: moves bytes between a transport and the protocol's core.
///
/// Everything is called on its loop. The loop drives the link by readiness, timers and the ends of
/// turns. Owners, requests, handlers and pushes use the commands of `Link+Commands`, and channels a
/// `StreamPort`; all may read its `connection`, but only the link touches the core itself. Each
/// command delivers its effects to the owner, schedules a write at the end of the turn, and sets
/// the timer.
///
/// The owner is called before the command returns or, for commands such as `request` and `cancel`
/// whose caller must first record the result, at the end of the turn. Commands that the owner gives
/// in a callback return at once; their effects are delivered after that callback.
///
/// Changing the core calls nothing that leads back to the core, so exclusivity checks at run time
/// are off where every frame would pay for them.
@safe package final class Link {
  package let id: UInt32
  #if Operations
  /// The number by which the loop's recorder knows the link; 0 if it is not recorded.
  let recordedAs: UInt32
  /// The recorder of the loop, which the loop retains; nil if the link is not recorded.
  let recorder: Unmanaged<Recorder>?
  #endif
  package let loop: EventLoop
  @safe @exclusivity(unchecked) var core: Connection
  /// The core as other types see it, for reading: only the link's commands change it, as `core`.
  @inline(__always)
  package var connection: Connection { _read { yield core } }
  /// The log for lines that the peer can cause, which is rate-limited. Its lines identify the
  /// connection.
  package let log: LinkLog
  /// The transport, which the link owns. It is not used once the link has ended.
  let transport: any Transport
  /// The transport's layer; nil for a plain one.
  let layer: (any TransportLayer)?
  /// The record of this link for observers; nil if there are none.
  package private(set) var record: LinkRecord?
  /// Whether the link has not ended.
  @safe @exclusivity(unchecked) package private(set) var isAlive = true
  @safe @exclusivity(unchecked) var owner: (any LinkOwner)?
  /// Whether the transport is connected and secured.
  package internal(set) var isConnected: Bool
  /// Whether the link ended before its transport was secured.
  private(set) var endedInHandshake = false
  /// The readiness for which the transport is watched.
  private var interest = Readiness.none
  var awaitsRoom: Bool { interest.contains(.write) }
  @safe @exclusivity(unchecked) private var timer = LinkTimer()
  var endsTurn = false
  @safe @exclusivity(unchecked) var earlyWriting = EarlyWriting()
  /// Whether `deliver` is running.
  @safe @exclusivity(unchecked) var isDelivering = false
  /// Whether pushes are the next to use new room.
  private var pushesGoFirst = false
  package let memory: LinkMemory
  @safe @exclusivity(unchecked) var account = MemoryAccount()
  @safe @exclusivity(unchecked) var gate = ReadGate()
  @safe @exclusivity(unchecked) var buffer = ReadBuffer()
  /// The brake on a peer that sends faster than it may; nil if it may send at any rate.
  let brake: ReadBrake?
  /// The totals in which the link counts once it has ended.
  @safe @exclusivity(unchecked) var totals: ConnectionTotals?

  /// Randomizes the hashing of serials in tables, so that peers cannot pick colliding ones.
  static let serialMix = UInt32.random(in: 1...(.max))

  package init(
    id: UInt32, transport: any Transport, isConnected: Bool, settings: ConnectionSettings,
    on loop: EventLoop, log: PeerLog,
    label: (key: String, number: UInt64)? = nil, share: MemoryShare? = nil, way: String? = nil,
    peer address: SocketAddress? = nil, group: SocketAddress.Group? = nil,
    readLimits: ReadLimits = ReadLimits(), observers: Observers? = nil
  ) {
    self.id = id
    #if Operations
    recordedAs = loop.recorder?.number(for: id) ?? 0
    unsafe recorder = loop.recorder.map { unsafe .passUnretained($0) }
    #endif
    self.loop = loop
    self.transport = transport
    layer = transport.layer
    memory = LinkMemory(in: share)
    self.isConnected = isConnected
    self.log = LinkLog(
      log: log, loop: loop, peer: address ?? transport.peerAddress, group: group, label: label,
      way: way)
    brake = readLimits.isUnlimited ? nil : ReadBrake(readLimits, at: loop.driver.now)
    var settings = settings
    settings.serialMix = Link.serialMix
    let now = loop.driver.now
    core = Connection(settings: settings, at: now)
    recordBeginning(settings, at: now)
    record = observers.map { LinkRecord(self, $0) }
  }

  package var peer: SocketAddress? { log.peer }
  /// The name of a short link's way, for errors and logs; nil on a long link.
  package var way: String? { log.way }

  /// Starts the link; its events go to `owner`.
  package func start(for owner: any LinkOwner) {
    self.owner = owner
    transport.attach(self, token: UInt64(id))
    watch(bytes: isConnected, room: !isConnected)
    if isConnected {
      recorded(.connected, at: loop.now)
      core.connected(at: loop.now)
      deliver()
    }
    arm()
  }

  /// Watches the transport for exactly these kinds of readiness.
  @inline(__always)
  func watch(bytes: Bool, room: Bool) {
    let interest = (bytes ? Readiness.read : .none).union(room ? .write : .none)
    guard interest != self.interest else { return }
    self.interest = interest
    if isAlive { transport.setInterest(interest) }
  }

  // MARK: Delivering to the owner

  /// Delivers the core's messages and effects to the owner until there are none left.
  ///
  /// Nothing else takes messages and effects from the core.
  func deliver() {
    // A command that the owner gives may re-enter; the outer call continues with the rest.
    guard !isDelivering else { return }
    isDelivering = true
    repeat {
      // Once the owner is released, the core has no more messages.
      if let owner {
        while let message = takeMessage() { owner.link(self, received: message) }
      }
    } while performEffect()
    isDelivering = false
    if core.holdsReading {
      gate.hold()
    } else if gate.isHeld {
      awaitEndOfTurn()
    }
    if !core.isLive { releaseMemory() }
    if core.readHold.waitsForHandlers { awaitEndOfTurn() }
    if core.wantsToWrite { writeAtEndOfTurn() }
  }

  @inline(__always)
  private func takeMessage() -> Arrival? {
    recordedTake()
    return core.nextMessage()
  }

  /// Performs the next effect; returns false if there is none.
  private func performEffect() -> Bool {
    recordedTake()
    let effect = core.nextEffect()
    if let effect { recorded(effect) }
    switch effect {
    case .message(let message): owner?.link(self, received: message)
    case .report(let news):
      news.tell(owner, of: self)
      if case .life(.established) = news { rescheduleTimer() }
    case .shutDownWriting:
      if isAlive { transport.shutDownWriting() }
    case .close(let reason): end(reason)
    case nil: return false
    }
    return true
  }

  /// Sends waiting requests and pushes when there is room again. They take turns at going first.
  package func shareRoom(_ requests: Requests?, _ pushes: PushQueue?) {
    pushesGoFirst.toggle()
    if pushesGoFirst { pushes?.pump(over: self) }
    requests?.pump()
    pushes?.pump(over: self)
  }

  private func end(_ reason: CloseReason) {
    guard isAlive else { return }
    record?.end(self, reason)
    isAlive = false
    timer.stop(on: loop)
    brake?.stop(on: loop)
    endedInHandshake = layer?.isHandshaking == true
    if reason == .heartbeatLost || core.breaksOff { transport.reset() } else { transport.close() }
    let owner = owner
    self.owner = nil
    owner?.link(self, endedWith: reason)
    reportMemory()
  }
}

extension Link: TimerHandler {
  /// Moves the timer if the core's deadline is earlier than the timer.
  @inline(__always)
  func arm() {
    if core.deadline < timer.due { setTimer() }
  }

  /// Moves the timer even if the deadline is later, so that an idle link is not woken needlessly.
  func rescheduleTimer() {
    if core.deadline != timer.due { setTimer() }
  }

  private func setTimer() {
    if isAlive { timer.set(to: core.deadline, for: self, UInt64(id), on: loop) }
  }

  package func timerFired(token: UInt64) {
    guard isAlive else { return }
    timer.hasFired()
    // After a pause of this process, the peer's bytes may wait in the socket: read them first.
    if isConnected, interest.contains(.read) { read() }
    guard isAlive else { return }
    // Bytes that this side left unread are not silence of the peer.
    let now = loop.driver.now
    if gate.leavesBytes {
      recorded(.resumedReading, at: now)
      core.resumedReading(at: now)
    }
    let unacknowledged = unacknowledgedBytes
    recorded(.elapsed, at: now, UInt64(max(0, unacknowledged)))
    core.elapsed(to: now, unacknowledged: unacknowledged)
    deliver()
    if core.isIdle {
      HeldMemory.releaseStorage(of: &core)
      if isAlive { layer?.releaseStorage() }
    }
    reportMemory()
    arm()
  }

  var unacknowledgedBytes: Int {
    isConnected && isAlive ? transport.unacknowledgedBytes : 0
  }
}
