// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
package import LongLinkCore
internal import Synchronization

/// A transport on a loop whose bytes a `TransportCarrier` moves.
///
/// The carrier calls the loop at most once per turn, however many pieces it delivers. A failure is
/// reported as read readiness once even where none is of interest.
package final class BridgedTransport: Transport, TransportLayer, TurnHandler {
  private let loop: EventLoop
  private let bridge: TransportBridge
  private let carrier: any TransportCarrier
  package let localAddress: SocketAddress?
  package let peerAddress: SocketAddress?
  private var handler: (any TransportHandler)?
  private var token: UInt64 = 0
  private var interest: Readiness = .none
  private var isOpen = true
  /// Whether the end of this turn, or of the next, delivers readiness.
  private var awaitsTurnEnd = false
  /// Whether the handler was told of the failure.
  private var hasToldFailure = false
  /// Bytes that were taken from the bridge, and the number of those that were read.
  private var input: [UInt8] = []
  private var inputRead = 0

  /// Makes the transport of `bridge`, on its loop. The carrier is kept until the transport is
  /// closed.
  package init(
    _ bridge: TransportBridge, carrier: any TransportCarrier, on loop: EventLoop,
    localAddress: SocketAddress? = nil, peerAddress: SocketAddress? = nil
  ) {
    loop.preconditionCurrent()
    self.loop = loop
    self.bridge = bridge
    self.carrier = carrier
    self.localAddress = localAddress
    self.peerAddress = peerAddress
    let reference = LoopBound(Reference(transport: self), on: loop)
    bridge.state.withLock(of: bridge) { state in
      state.wake = { reference.loop.execute { reference.value.transport?.woken() } }
    }
  }

  deinit {
    guard isOpen else { return }
    BridgedTransport.close(bridge, carrier, isReset: false)
  }

  /// Keeps the bridge from retaining the transport.
  private final class Reference {
    weak let transport: BridgedTransport?

    init(transport: BridgedTransport) {
      self.transport = transport
    }
  }

  // MARK: Readiness

  package func attach(_ handler: any TransportHandler, token: UInt64) {
    requireOpen()
    self.handler = handler
    self.token = token
    deliverAtTurnEnd()
  }

  package func setInterest(_ interest: Readiness) {
    requireOpen()
    guard interest != self.interest else { return }
    self.interest = interest
    deliverAtTurnEnd()
  }

  /// The operations of interest that the transport is ready for.
  private var readiness: Readiness {
    let hasInput = inputRead < input.count
    let (ready, isBroken) = bridge.state.withLock(of: bridge) { state in
      let isBroken = state.failure != nil
      let reads =
        state.isConnected && (hasInput || !state.input.isEmpty || state.hasInputEnded) || isBroken
      let writes = state.isConnected && state.output.count < TransportBridge.capacity || isBroken
      return ((reads ? Readiness.read : .none).union(writes ? .write : .none), isBroken)
    }
    let wanted = ready.intersection(interest)
    return isBroken && !hasToldFailure && wanted == .none ? .read : wanted
  }

  /// Called on the loop after the bridge has changed.
  private func woken() {
    bridge.state.withLock(of: bridge) { $0.isWaking = false }
    deliverReadiness()
  }

  private func deliverReadiness() {
    guard isOpen, let handler else { return }
    let readiness = readiness
    guard readiness != .none else { return }
    // With an interest, the failure is reported until it is read. So this counts only without one.
    hasToldFailure = interest == .none
    handler.transportReady(readiness, token: token)
    deliverAtTurnEnd()
  }

  /// Schedules another delivery for the end of the turn, if the transport is still ready.
  private func deliverAtTurnEnd() {
    guard isOpen, !awaitsTurnEnd, handler != nil, readiness != .none else { return }
    awaitsTurnEnd = true
    loop.atEndOfTurn(self, token: 0)
  }

  package func turnEnds(token: UInt64) {
    awaitsTurnEnd = false
    deliverReadiness()
  }

  // MARK: Bytes

  package func finishConnecting() throws(SocketError) -> Bool {
    requireOpen()
    let (isConnected, failure) = bridge.state.withLock(of: bridge) { ($0.isConnected, $0.failure) }
    if !isConnected, let failure { throw failure }
    return isConnected
  }

  package func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    requireOpen()
    precondition(!buffer.isFull, "a read needs room for a byte at least")
    if inputRead == input.count {
      (input, inputRead) = ([], 0)
      let (hasEnded, failure, resumesCarrier) = takeInput()
      if resumesCarrier { carrier.inputHasRoom() }
      guard !input.isEmpty else {
        if let failure { throw failure }
        return hasEnded ? .end : .wouldBlock
      }
    }
    let count = min(input.count - inputRead, buffer.freeCapacity)
    unsafe input.withUnsafeBytes { bytes in
      unsafe buffer.appendBytes(
        UnsafeRawBufferPointer(rebasing: bytes[inputRead..<inputRead + count]))
    }
    inputRead += count
    return .bytes(count)
  }

  /// Takes the delivered bytes. Returns how the input ended after them, if it has, and whether the
  /// carrier waits for room.
  private func takeInput() -> (hasEnded: Bool, failure: SocketError?, resumesCarrier: Bool) {
    var taken: [UInt8] = []
    let end = bridge.state.withLock(of: bridge) { state in
      swap(&taken, &state.input)
      defer { state.isCarrierPaused = false }
      return (state.hasInputEnded, state.failure, state.isCarrierPaused)
    }
    input = taken
    return end
  }

  package func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    requireOpen()
    let result = bridge.state.withLock(of: bridge) { state -> Result<(Int, Bool), SocketError> in
      if let failure = state.failure { return .failure(failure) }
      guard state.isConnected else { return .success((0, false)) }
      guard !state.hasOutputEnded else {
        return .failure(SocketError(operation: "write", errno: EPIPE, address: nil))
      }
      let count = min(bytes.byteCount, TransportBridge.capacity - state.output.count)
      state.isOutputFull = count < bytes.byteCount
      guard count > 0 else { return .success((0, false)) }
      unsafe bytes.extracting(0..<count).withUnsafeBytes {
        unsafe state.output.append(contentsOf: $0)
      }
      defer { state.isOutputAnnounced = true }
      return .success((count, !state.isOutputAnnounced))
    }
    let (count, announces) = try result.get()
    if announces { carrier.outputWaits() }
    return count
  }

  package func shutDownWriting() {
    requireOpen()
    let announces = bridge.state.withLock(of: bridge) { state in
      guard !state.hasOutputEnded, state.failure == nil else { return false }
      state.hasOutputEnded = true
      defer { state.isOutputAnnounced = true }
      return !state.isOutputAnnounced
    }
    if announces { carrier.outputWaits() }
  }

  package var layer: (any TransportLayer)? { self }

  package var failureText: String? { bridge.state.withLock(of: bridge) { $0.failureText } }

  package var retryAfter: Int64? { bridge.state.withLock(of: bridge) { $0.retryAfter } }

  package var securityFailure: SecurityFailure? {
    bridge.state.withLock(of: bridge) { $0.securityFailure }
  }

  /// Always 0, because it is not known: what the carrier took may not have left.
  package var unacknowledgedBytes: Int { 0 }

  /// The bytes of input, and those of output once a write found no room: before that, output is
  /// about to leave, and the loop does not learn when it has left.
  package var heldBytes: Int {
    let waiting = bridge.state.withLock(of: bridge) { state in
      state.input.count + (state.isOutputFull ? state.output.count : 0)
    }
    return input.count + waiting
  }

  package var hasUnreadBytes: Bool {
    requireOpen()
    return inputRead < input.count || bridge.state.withLock(of: bridge) { !$0.input.isEmpty }
  }

  // MARK: Closing

  package func close() {
    close(isReset: false)
  }

  package func reset() {
    close(isReset: true)
  }

  private func close(isReset: Bool) {
    guard isOpen else { return }
    isOpen = false
    handler = nil
    (input, inputRead) = ([], 0)
    BridgedTransport.close(bridge, carrier, isReset: isReset)
  }

  private static func close(
    _ bridge: TransportBridge, _ carrier: any TransportCarrier, isReset: Bool
  ) {
    bridge.state.withLock(of: bridge) { state in
      state.isClosed = true
      state.wake = nil
      state.input = []
      if isReset { state.dropOutput() }
    }
    carrier.transportClosed(isReset: isReset)
  }

  private func requireOpen() {
    precondition(isOpen, "a closed transport was used")
  }
}
