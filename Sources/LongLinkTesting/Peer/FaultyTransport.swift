// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// The stream below the security of a scripted peer, with the faults of a test. Used on its loop.
final class FaultyTransport: Transport, TransportHandler {
  private let below: any Transport
  private let loop: EventLoop
  /// The faults that have not happened yet, in the order of their positions.
  private var faults: [SecurityFault]
  private var handler: (any TransportHandler)?
  private var token: UInt64 = 0
  private var interest = Readiness.none
  private var isFrozen = false
  private var isConnected: Bool
  /// The number of bytes that the security has written.
  private var written = 0
  /// The test's bytes that still wait to be written to the stream below.
  private var pending: [UInt8] = []
  /// Whether all further output of the security is dropped.
  private var isMute = false
  /// Whether the stream below is to be ended after the pending bytes.
  private var ends = false
  private var isReset = false

  init(over below: any Transport, _ faults: [SecurityFault], isConnected: Bool, on loop: EventLoop)
  {
    self.below = below
    self.loop = loop
    self.isConnected = isConnected
    self.faults = faults.enumerated().sorted {
      ($0.element.position, $0.offset) < ($1.element.position, $1.offset)
    }.map(\.element)
  }

  // MARK: Orders

  /// Sends bytes of the test, after the bytes that the security has already written.
  func send(_ bytes: [UInt8]) {
    guard !isMute else { return }
    pending += bytes
    flushLater()
  }

  /// Ends the stream below without the security's own end (TLS's close_notify).
  func end() {
    (ends, isMute) = (true, true)
    flushLater()
  }

  /// Freezes or thaws the stream. A frozen stream neither reads nor writes.
  func setFrozen(_ isFrozen: Bool) {
    self.isFrozen = isFrozen
    updateInterest()
  }

  // MARK: Faults

  /// Performs the faults whose position has been reached.
  private func advance() {
    while isConnected, !isMute, let fault = faults.first, fault.position <= written {
      faults.removeFirst()
      switch fault.step {
      case .silence: isMute = true
      case .end: (ends, isMute) = (true, true)
      case .insert(let bytes): pending += bytes
      case .reset:
        (isReset, isMute, pending) = (true, true, [])
        below.reset()
        // The stream above must learn of the reset, and only this tells it.
        loop.execute { [bound = LoopBound(self, on: loop)] in bound.value.tell(.read) }
      }
    }
    flushLater()
  }

  private func flushLater() {
    guard !isReset, !pending.isEmpty || ends else { return }
    loop.execute { [bound = LoopBound(self, on: loop)] in bound.value.flush() }
  }

  private func flush() {
    guard !isReset, isConnected, !isClosed else { return }
    do throws(SocketError) {
      while !pending.isEmpty {
        let count = try unsafe below.write(pending.span.bytes)
        guard count > 0 else { break }
        pending.removeFirst(count)
      }
    } catch {
      // The stream above gets the same error when it reads or writes.
      pending = []
    }
    if pending.isEmpty, ends {
      ends = false
      below.shutDownWriting()
    }
    updateInterest()
  }

  private var isClosed = false

  private var gone: SocketError {
    SocketError(operation: "read", errno: ECONNRESET, address: peerAddress)
  }

  // MARK: Readiness

  func attach(_ handler: any TransportHandler, token: UInt64) {
    (self.handler, self.token) = (handler, token)
    guard !isReset else { return }
    below.attach(self, token: 0)
    advance()
  }

  func setInterest(_ interest: Readiness) {
    self.interest = interest
    updateInterest()
  }

  private func updateInterest() {
    guard !isReset, !isClosed else { return }
    let flushes = pending.isEmpty ? Readiness.none : .write
    below.setInterest(isFrozen ? .none : interest.union(flushes))
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {
    if readiness.contains(.write), !pending.isEmpty { flush() }
    tell(readiness)
  }

  private func tell(_ readiness: Readiness) {
    guard !isClosed, let handler else { return }
    let wanted = readiness.intersection(interest)
    if wanted != .none { handler.transportReady(wanted, token: token) }
  }

  // MARK: Bytes

  var localAddress: SocketAddress? { isReset ? nil : below.localAddress }
  var peerAddress: SocketAddress? { isReset ? nil : below.peerAddress }
  var unacknowledgedBytes: Int { isReset ? 0 : below.unacknowledgedBytes }
  var hasUnreadBytes: Bool { !isReset && below.hasUnreadBytes }

  func finishConnecting() throws(SocketError) -> Bool {
    guard !isReset else { throw gone }
    guard try below.finishConnecting() else { return false }
    isConnected = true
    advance()
    return true
  }

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    guard !isReset else { throw gone }
    return try below.read(into: &buffer)
  }

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    advance()
    guard !isReset else { throw gone }
    if isMute { return bytes.byteCount }
    if !pending.isEmpty { flush() }
    guard pending.isEmpty else { return 0 }
    let most = faults.first.map { $0.position - written } ?? bytes.byteCount
    let count = try below.write(bytes.extracting(..<min(most, bytes.byteCount)))
    written += count
    advance()
    return count
  }

  func shutDownWriting() {
    guard !isReset, !isMute else { return }
    ends = true
    if pending.isEmpty { flush() }
  }

  func close() {
    isClosed = true
    handler = nil
    if !isReset { below.close() }
  }

  func reset() {
    isClosed = true
    handler = nil
    if !isReset { below.reset() }
  }
}
