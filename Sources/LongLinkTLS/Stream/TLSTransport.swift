// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// A transport that encrypts its bytes for a transport below it.
///
/// Records are read from the transport below into a buffer of the loop; only what is left of one
/// waits here. What the application writes is encrypted into the same buffer and written at once;
/// only what the transport below does not take waits here, and is written before anything else.
final class TLSTransport: Transport, TransportLayer {
  enum Phase: Equatable {
    /// The transport below connects.
    case connecting
    case handshaking
    case open
    /// Nothing can be read or written any more.
    case failed
    /// Closed, and waiting for the transport below to take the last bytes.
    case flushing
    /// Closed, and reading what the peer sends until it ends, so that the last bytes arrive.
    case discarding
    case closed
  }

  let loop: EventLoop
  let below: any Transport
  let side: TLSSide
  let owner: any TLSTransportOwner
  /// The TLS connection; nil once the transport is closed.
  var engine: TLSEngine?
  let relay = TLSRelay()
  var phase: Phase
  var handler: (any TransportHandler)?
  private var token: UInt64 = 0
  private var readiness = TLSReadiness()
  private var isAttached = false
  private var awaitsTurnEnd = false

  /// Records, or a part of one, that are not decrypted yet.
  var input = ByteQueue()
  /// Records that wait for the transport below.
  var output = ByteQueue()
  /// Whether the transport below did not take all of them.
  var isBlocked = false
  /// The end of the transport below was read.
  var hasEndedBelow = false
  /// The peer's end was read, in good order or not.
  var hasEnded = false
  private(set) var isCutOff = false
  var hasReadPart = false
  /// Whether this side's end was written, and whether the sending side of the transport below was
  /// ended.
  var hasShutDown = false
  var hasShutDownBelow = false
  /// Whether tickets were sent.
  var hasSentTickets = false
  var failure: SocketError?
  private(set) var securityFailure: SecurityFailure?

  /// The bytes of the application that were written, and those known to be acknowledged.
  var written = 0
  var acknowledged = 0
  /// The instant at which a closed transport gives up.
  var timer = LoopTimer.none
  var lingers = false
  /// Whether the transport was closed after a failure, and the bytes that it has read since.
  var isFailedClose = false
  var discarded = 0

  init(
    over below: any Transport, _ engine: consuming TLSEngine?, _ side: TLSSide,
    owner: any TLSTransportOwner, on loop: EventLoop
  ) {
    loop.preconditionCurrent()
    self.loop = loop
    self.below = below
    self.engine = engine
    self.side = side
    self.owner = owner
    phase = side.isServer ? .handshaking : .connecting
    relay.transport = self
  }

  // MARK: Readiness

  func attach(_ handler: any TransportHandler, token: UInt64) {
    requireOpen()
    self.handler = handler
    self.token = token
    attachBelow()
    updateInterest()
    scheduleTurnEnd()
  }

  func setInterest(_ interest: Readiness) {
    requireOpen()
    guard readiness.setInterest(interest) else { return }
    updateInterest()
    scheduleTurnEnd()
  }

  /// Sets the interest in the transport below to what this transport needs now.
  func updateInterest() {
    guard isAttached, let interest = readiness.interestBelow(state) else { return }
    below.setInterest(interest)
  }

  private var state: TLSReadiness.State {
    TLSReadiness.State(
      phase: phase, hasOutput: !output.isEmpty, isBlocked: isBlocked, hasEndedBelow: hasEndedBelow)
  }

  /// The transport below is ready.
  func belowReady(_ readiness: Readiness) {
    switch phase {
    case .connecting:
      connectBelow()
    case .handshaking:
      if readiness.contains(.write), isBlocked { flushOrFail() }
      if readiness.contains(.read), phase == .handshaking { shakeHands() }
    case .open:
      if readiness.contains(.write), isBlocked { flushOrFail() }
      tell(readiness)
    case .failed:
      if readiness.contains(.write) { flushOrFail() }
    case .flushing, .discarding: linger()
    case .closed: return
    }
    guard phase != .closed else { return }
    updateInterest()
    scheduleTurnEnd()
  }

  private func connectBelow() {
    do throws(SocketError) {
      guard try below.finishConnecting() else { return }
      phase = .handshaking
      shakeHands(reads: false)
    } catch {
      fail(error)
      tell(.write)
    }
  }

  /// Tells the handler what the transport is ready for, of what it waits for.
  func tell(_ ready: Readiness) {
    let told = readiness.told(ready, isReadable: isReadable, state)
    guard told != .none, let handler else { return }
    handler.transportReady(told, token: token)
  }

  /// Whether a read would return bytes, the end or a failure without the transport below.
  var isReadable: Bool {
    switch phase {
    case .open: hasEnded || hasEndedBelow || hasRecord || hasVerdict
    case .failed: true
    default: false
    }
  }

  /// Whether decrypted bytes or a whole record wait.
  var hasRecord: Bool {
    !input.isEmpty && input.withWaiting(TLSEngine.hasRecord) || engine?.hasPending ?? false
  }

  /// Whether the peer's end, or a failure, was found behind bytes that were read, and is told by
  /// the next read. The transport below has nothing more to say of it.
  var hasVerdict: Bool {
    !hasEnded && (engine?.hasEnded == true || engine?.hasFailed == true)
  }

  /// Sees to it that the end of the turn writes what waits, and tells the handler of what it can
  /// read.
  func scheduleTurnEnd() {
    guard !awaitsTurnEnd,
      readiness.hasWork(isReadable: isReadable, hasHandler: handler != nil, state)
    else { return }
    awaitsTurnEnd = true
    loop.atEndOfTurn(relay, token: 0)
  }

  func turnEnds() {
    awaitsTurnEnd = false
    if !output.isEmpty, !isBlocked { flushOrFail() }
    if isReadable { tell(.none) }
    guard phase != .closed else { return }
    updateInterest()
    scheduleTurnEnd()
  }

  /// Sees to it that a closed transport hears of the transport below, even if nobody was attached.
  func attachBelow() {
    guard !isAttached else { return }
    isAttached = true
    below.attach(relay, token: 0)
  }

  // MARK: Failing

  /// Records a failure of the transport below.
  func fail(_ error: SocketError) {
    guard failure == nil else { return }
    failure = error
    phase = .failed
    input = ByteQueue()
  }

  /// Fails the transport, because the connection is not secure. Alerts were written to the output.
  func fail(_ reason: SecurityFailure, _ operation: String) -> SocketError {
    let error = SocketError(operation: operation, errno: EPROTO, address: peerAddress)
    guard failure == nil else { return failure ?? error }
    securityFailure = reason
    fail(error)
    return error
  }

  /// The transport below has ended without the peer's end.
  func noteCutOff() {
    hasEnded = true
    isCutOff = true
  }

  func requireOpen() {
    switch phase {
    case .flushing, .discarding, .closed: preconditionFailure("a closed transport was used")
    case .connecting, .handshaking, .open, .failed: return
    }
  }

  /// What errors say of this transport.
  var place: TLSFailure.Place {
    TLSFailure.Place(
      isServer: side.isServer, name: side.name, isHandshake: phase == .handshaking)
  }
}
