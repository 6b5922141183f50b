// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// A transport that encrypts its bytes for a transport below it.
///
/// Records are read from the transport below into a buffer of the loop; only a rest of them waits
/// here. The application's bytes are encrypted into the same buffer and written at once; only what
/// the transport below does not take waits here, and is written first.
final class TLSTransport: Transport, TransportLayer {
  enum Phase: Equatable {
    /// The transport below is connecting.
    case connecting
    case handshaking
    case open
    /// The connection has failed: nothing can be read or written any more.
    case failed
    /// The transport is closed, and waits for the transport below to take the last bytes.
    case flushing
    /// The transport is closed, and reads what the peer sends until it ends, so that the last bytes
    /// arrive.
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
  /// Whether the transport below took only a part of `output`.
  var isBlocked = false
  /// Whether the end of the transport below was read.
  var hasEndedBelow = false
  /// Whether the peer's end was read, in good order or not.
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

  /// The number of the application's bytes that were written, and of those known to be
  /// acknowledged.
  var written = 0
  var acknowledged = 0
  /// The timer after which a closed transport gives up.
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

  /// Reacts to readiness of the transport below.
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

  /// Reports readiness to the handler, as far as it waits for it.
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

  /// Whether the engine found the peer's end, or a failure, after bytes that were read. The next
  /// read reports it, without the transport below.
  var hasVerdict: Bool {
    !hasEnded && (engine?.hasEnded == true || engine?.hasFailed == true)
  }

  /// Schedules work for the end of the turn if there is any: to write records that wait, or to tell
  /// the handler that it can read.
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

  /// Attaches to the transport below, so that a closed transport hears of it even if no handler was
  /// attached.
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

  /// Records that the transport below has ended without the peer's end.
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

  /// The side and phase of this transport, for error texts.
  var place: TLSFailure.Place {
    TLSFailure.Place(
      isServer: side.isServer, name: side.name, isHandshake: phase == .handshaking)
  }
}
