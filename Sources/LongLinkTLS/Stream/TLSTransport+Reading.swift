// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  /// The least room below: for one record.
  private static let smallestRead = 16_384 + 512
  /// The room for a record's header and for what encryption adds, for each read.
  private static let overhead = 1_024

  /// An alert of TLS 1.2, fatal, protocol_version: a native client recognises it.
  private static let alertToPlainPeer: [UInt8] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46]

  // MARK: The handshake

  /// Goes on with the handshake, after one read: a client begins without. The handler is told when
  /// the handshake is over, or has failed.
  func shakeHands(reads: Bool = true) {
    do throws(SocketError) {
      try advanceHandshake(reads: reads)
    } catch {
      fail(error)
    }
    switch phase {
    case .open:
      owner.transportOpened(self)
      tell(.write)
    case .failed: tell([.read, .write])
    default: return
    }
  }

  private func advanceHandshake(reads: Bool) throws(SocketError) {
    var queue = ByteQueue()
    borrow(&queue)
    defer { giveBack(&queue) }
    if reads {
      switch try readBelow(into: &queue, Self.smallestRead) {
      case .bytes: break
      case .wouldBlock: return
      case .end: throw fail(TLSFailure.cutOff(place), "secure")
      }
    }
    switch step(&queue) {
    case .wantsInput, .ended: return
    case .done: phase = .open
    case .failed: throw failHandshake()
    }
  }

  /// One step of the handshake over what has come.
  private func step(_ queue: inout ByteQueue) -> TLSEngine.Status {
    let step = queue.withWaiting { engine?.handshake($0) }
    guard let step else { return .failed }
    queue.removeFirst(step.consumed)
    engine?.moveLate(to: &output)
    return step.status
  }

  /// The failure of the engine, with its alert on its way.
  private func failHandshake() -> SocketError {
    let reason = engineFailure
    if side.isServer, reason.code == .plainPeer {
      output = ByteQueue()
      unsafe output.append(Self.alertToPlainPeer.span.bytes)
    }
    let error = fail(reason, "secure")
    endAfterFailure()
    return error
  }

  // MARK: Bytes

  func read(into buffer: inout OutputRawSpan) throws(SocketError) -> ReadOutcome {
    requireOpen()
    precondition(!buffer.isFull, "a read needs room for at least one byte")
    if let failure { throw failure }
    guard phase == .open else { return .wouldBlock }
    guard !hasEnded else { return .end }
    defer { settleAfterRead() }
    hasReadPart = false
    if hasRecord || hasVerdict {
      // A failure drops what waits, which may not be in use then.
      var waiting = ByteQueue()
      swap(&waiting, &input)
      let outcome = try decrypt(&waiting, into: &buffer)
      if !waiting.isEmpty { swap(&waiting, &input) }
      if let outcome { return outcome }
    }
    var queue = ByteQueue()
    borrow(&queue)
    defer { giveBack(&queue) }
    if !hasEndedBelow {
      switch try readBelowOrFail(
        into: &queue, max(buffer.freeCapacity, Self.smallestRead) + Self.overhead)
      {
      case .bytes: break
      case .wouldBlock: return .wouldBlock
      case .end: hasEndedBelow = true
      }
    }
    if let outcome = try decrypt(&queue, into: &buffer) { return outcome }
    guard hasEndedBelow else {
      hasReadPart = true
      return .wouldBlock
    }
    noteCutOff()
    return .end
  }

  /// Decrypts what fits; nil if there is no byte of the application.
  private func decrypt(
    _ queue: inout ByteQueue, into buffer: inout OutputRawSpan
  ) throws(SocketError) -> ReadOutcome? {
    let step = queue.withWaiting { engine?.read($0, into: &buffer) }
    guard let step else { return nil }
    queue.removeFirst(step.consumed)
    // What failed or ended behind these bytes is found again.
    if step.count > 0 { return .bytes(step.count) }
    switch step.status {
    case .done, .wantsInput: return nil
    case .ended:
      hasEnded = true
      queue.removeAll()
      return .end
    case .failed:
      queue.removeAll()
      throw failAsEngine("read")
    }
  }

  /// Fails as the engine has, with its alert on its way.
  func failAsEngine(_ operation: String) -> SocketError {
    let error = fail(engineFailure, operation)
    endAfterFailure()
    return error
  }

  private var engineFailure: SecurityFailure {
    engine?.failure.explained(place, engine?.offender ?? nil)
      ?? SecurityFailure(.damaged, "OpenSSL has no memory for a connection")
  }

  /// Passes on what came with the bytes: tickets, and answers of this side.
  private func settleAfterRead() {
    guard phase == .open || phase == .failed else { return }
    if !side.isServer {
      while let session = engine?.takeSession() { owner.transport(self, received: session) }
    }
    engine?.moveLate(to: &output)
    endIfFlooded()
    scheduleTurnEnd()
  }

  /// Reads from the transport below. A failure of it is noted, unless an alert has come before it.
  private func readBelowOrFail(
    into queue: inout ByteQueue, _ capacity: Int
  ) throws(SocketError) -> ReadOutcome {
    do throws(SocketError) {
      return try readBelow(into: &queue, capacity)
    } catch {
      fail(error)
      throw error
    }
  }

  private func readBelow(
    into queue: inout ByteQueue, _ capacity: Int
  ) throws(SocketError) -> ReadOutcome {
    try queue.append(capacity: capacity) { (span) throws(SocketError) in
      try below.read(into: &span)
    }
  }

  // MARK: The loop's buffer

  /// Takes the buffer of the loop, with what waits here at its front.
  private func borrow(_ queue: inout ByteQueue) {
    loop.swapTransformQueue(with: &queue)
    input.move(to: &queue)
  }

  /// Returns the buffer, and keeps what is left in it.
  private func giveBack(_ queue: inout ByteQueue) {
    if !queue.isEmpty, phase == .open || phase == .handshaking { input = queue.detachRest() }
    queue.removeAll()
    loop.swapTransformQueue(with: &queue)
  }

  /// Learns of an alert that has come before the transport below failed to write. It reads once for
  /// each 16 KiB of the bound at most, so that a peer cannot keep the loop with bytes before it.
  func lookForAlert() {
    guard phase == .open, !hasEnded else { return }
    var bytes = ByteQueue()
    do throws(SocketError) {
      for _ in 0..<Self.mostDiscarded / 16_384 {
        let outcome = try bytes.append(capacity: 16_384) { (span) throws(SocketError) in
          try read(into: &span)
        }
        guard case .bytes = outcome else { return }
        bytes.removeAll()
      }
    } catch {
      return
    }
  }
}

extension ByteQueue {
  /// Passes all bytes that wait to a function.
  func withWaiting<Result>(_ body: (RawSpan) -> Result) -> Result {
    withBytes(position..<position + count, body)
  }

  /// Appends what waits to another queue, and frees the memory.
  mutating func move(to other: inout ByteQueue) {
    guard !isEmpty else { return }
    withWaiting { other.append($0) }
    self = ByteQueue()
  }
}
