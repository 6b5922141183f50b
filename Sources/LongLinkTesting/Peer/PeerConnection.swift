// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// Receives the events of a scripted peer's connection, on its loop.
protocol PeerConnectionOwner: AnyObject {
  /// Called when connecting has succeeded or failed; not for accepted connections.
  func connected(_ connection: PeerConnection, _ error: SocketError?)
  func received(_ reading: FrameReader.Reading, on connection: PeerConnection)
  /// The connection's security has been set up. Called once, before anything is received.
  func secured(_ connection: PeerConnection, _ security: ConnectionSecurity)
  /// In a dialect, bytes arrived that are not a valid frame.
  func received(_ violation: Violation, on connection: PeerConnection)
  /// The connection has ended. Called once. If only the peer has ended its side, writing continues.
  func ended(_ connection: PeerConnection, _ reason: ConnectionEnding.Reason)
}

/// A scripted peer's stream, and the stream below its security; nil without security.
struct PeerStream {
  let stream: any Transport
  var below: FaultyTransport?
}

/// One connection of a scripted peer, which receives frames and sends any bytes. Used on its loop.
final class PeerConnection: TransportHandler, TimerHandler, TurnHandler {
  /// A step of the output, performed in order.
  enum Output {
    case bytes([UInt8])
    /// Bytes that are sent one at a time, with a pause in nanoseconds after each.
    case dribble([UInt8], every: Int64)
    case end
    case close
    case reset
  }

  private static let readSize = 65_536

  let number: Int
  /// The messages of which only some fragments have arrived.
  var joiner = MessageJoiner()
  /// The number of requests of which at least the first frame arrived. Goaways contain it.
  var requestsBegun: UInt64 = 0
  var lastSerial: UInt32 = 0
  private(set) var wire: PeerWire
  private(set) var reader: FrameReader
  private var incoming = ByteQueue()
  private(set) var isOpen = true
  private let loop: EventLoop
  private let stream: any Transport
  /// The stream below the security; nil without security.
  private let below: FaultyTransport?
  private var hasToldSecurity = false
  private weak var owner: (any PeerConnectionOwner)?
  private var isConnecting: Bool
  private var hasEnded = false
  private var isReading = true
  private var isFrozen = false
  private var isBlocked = false
  private var flushIsAsked = false
  private var queue: [Output] = []
  private var dribbleTimer: LoopTimer?

  init(
    _ stream: PeerStream,
    number: Int,
    isConnecting: Bool,
    speaking dialect: (any DialectFraming)? = nil,
    on loop: EventLoop,
    owner: any PeerConnectionOwner
  ) {
    wire = PeerWire(dialect)
    reader = FrameReader(dialect)
    self.stream = stream.stream
    below = stream.below
    self.number = number
    self.isConnecting = isConnecting
    self.loop = loop
    self.owner = owner
    self.stream.attach(self, token: 0)
    updateInterest()
  }

  /// Why the connection could not be secured, or is no longer secure.
  var securityFailure: SecurityFailure? { stream.layer?.securityFailure }
  /// Whether the peer ended the stream without the end of its security (TLS's close_notify).
  var isCutOff: Bool { isOpen && stream.layer?.isCutOff == true }

  // MARK: Orders

  func send(_ frame: WireFrame, about: MessageType? = nil) {
    wire.note(frame)
    send(.bytes(wire.bytes(of: frame, about: about)))
  }

  func send(_ output: Output) {
    guard isOpen else { return }
    queue.append(output)
    scheduleFlush()
  }

  /// Sends bytes unchanged below the security.
  func sendBelow(_ bytes: [UInt8]) {
    guard isOpen else { return }
    // Output that was queued before goes first.
    flush()
    if let below { below.send(bytes) } else { send(.bytes(bytes)) }
  }

  /// Ends this side below the security, without the end of the security (TLS's close_notify).
  func endBelow() {
    guard isOpen else { return }
    flush()
    if let below { below.end() } else { send(.end) }
  }

  func setReading(_ isReading: Bool) {
    self.isReading = isReading
    updateInterest()
  }

  /// Freezes or thaws the connection. A frozen connection neither reads nor writes.
  func setFrozen(_ isFrozen: Bool) {
    self.isFrozen = isFrozen
    if isOpen { below?.setFrozen(isFrozen) }
    updateInterest()
    if !isFrozen { scheduleFlush() }
  }

  func close() {
    finish(.closedHere) { $0.close() }
  }

  func reset() {
    finish(.closedHere) { $0.reset() }
  }

  // MARK: Events

  func transportReady(_ readiness: Readiness, token: UInt64) {
    if isConnecting { return finishConnecting() }
    noteSecurity()
    if readiness.contains(.write) {
      isBlocked = false
      flush()
    }
    if readiness.contains(.read), isOpen { read() }
    updateInterest()
  }

  func timerFired(token: UInt64) {
    dribbleTimer = nil
    flush()
    updateInterest()
  }

  func turnEnds(token: UInt64) {
    flushIsAsked = false
    flush()
    updateInterest()
  }

  private func noteSecurity() {
    guard below != nil, !hasToldSecurity, isOpen, let security = stream.layer?.security else {
      return
    }
    hasToldSecurity = true
    owner?.secured(self, security)
  }

  private func finishConnecting() {
    do throws(SocketError) {
      guard try stream.finishConnecting() else { return }
      isConnecting = false
      noteSecurity()
      owner?.connected(self, nil)
      updateInterest()
    } catch {
      isOpen = false
      stream.close()
      owner?.connected(self, error)
    }
  }

  /// Reads once; returns whether bytes have arrived.
  @discardableResult private func read() -> Bool {
    do throws(SocketError) {
      let outcome = try incoming.append(capacity: Self.readSize) { (span) throws(SocketError) in
        try stream.read(into: &span)
      }
      switch outcome {
      case .wouldBlock: return false
      case .bytes: break
      case .end:
        hasEnded = true
        owner?.ended(self, .endedByPeer)
        return false
      }
      reader.append(unsafe incoming.withStorage { unsafe [UInt8]($0) })
      incoming.removeAll()
    } catch {
      fail(error)
      return false
    }
    while isOpen, let step = reader.next() {
      switch step {
      case .frame(let reading):
        wire.note(reading.frame)
        owner?.received(reading, on: self)
      case .damaged(let violation):
        owner?.received(violation, on: self)
      case .violation(let violation):
        owner?.received(violation, on: self)
        close()
      }
    }
    return true
  }

  // MARK: Writing

  private func scheduleFlush() {
    guard !flushIsAsked else { return }
    flushIsAsked = true
    loop.atEndOfTurn(self, token: 0)
  }

  /// Writes as much as possible, and joins adjacent bytes into one write.
  private func flush() {
    while isOpen, !isConnecting, !isFrozen, !isBlocked, dribbleTimer == nil, !queue.isEmpty {
      switch queue[0] {
      case .bytes(let bytes):
        var joined = bytes
        var count = 1
        while count < queue.count, case .bytes(let more) = queue[count] {
          joined += more
          count += 1
        }
        queue.removeFirst(count)
        write(joined)
      case .dribble(let bytes, let interval):
        queue.removeFirst()
        dribble(bytes, every: interval)
      case .end:
        queue.removeFirst()
        stream.shutDownWriting()
      case .close:
        close()
      case .reset:
        reset()
      }
    }
  }

  private func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    do throws(SocketError) {
      while !rest.isEmpty {
        // The elements are bytes: there is no padding between them.
        let count = try unsafe stream.write(rest.span.bytes)
        rest = rest.dropFirst(count)
        if count == 0 {
          isBlocked = true
          queue.insert(.bytes(Array(rest)), at: 0)
          return
        }
      }
    } catch {
      // Before it closed, the peer may have sent a reason, such as a goaway.
      while isOpen, isReading, !isFrozen, !hasEnded, read() {}
      fail(error)
    }
  }

  private func dribble(_ bytes: [UInt8], every interval: Int64) {
    guard let first = bytes.first else { return }
    if bytes.count > 1 { queue.insert(.dribble(Array(bytes.dropFirst()), every: interval), at: 0) }
    write([first])
    guard isOpen, !isBlocked, bytes.count > 1 else { return }
    dribbleTimer = loop.schedule(at: loop.driver.now + interval, self, token: 0)
  }

  // MARK: The end

  private func fail(_ error: SocketError) {
    finish(.failed(errno: error.errno)) { $0.close() }
  }

  private func finish(
    _ reason: ConnectionEnding.Reason,
    _ end: (any Transport) -> Void
  ) {
    guard isOpen else { return }
    isOpen = false
    queue = []
    if let dribbleTimer { loop.cancel(dribbleTimer) }
    end(stream)
    if !hasEnded { owner?.ended(self, reason) }
  }

  private func updateInterest() {
    guard isOpen else { return }
    if isConnecting { return stream.setInterest(.write) }
    var interest: Readiness = []
    if isReading, !isFrozen, !hasEnded { interest.insert(.read) }
    if isBlocked, !isFrozen { interest.insert(.write) }
    stream.setInterest(interest)
  }
}
