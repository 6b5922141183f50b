// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  /// The least room for a read from the transport below, in bytes: one record.
  private static let smallestRead = 16_384 + 512
  /// The additional room of each read, in bytes, for a record's header and what encryption adds.
  private static let overhead = 1_024

  /// A fatal alert of TLS 1.2, protocol_version, for a peer without TLS: a native client recognises
  /// it.
  private static let alertToPlainPeer: [UInt8] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46]

  // MARK: The handshake

  /// Continues the handshake, after one read; a client begins without a read. The handler is
  /// notified when the handshake is complete or has failed.
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

  /// Runs one step of the handshake with the bytes that have come.
  private func step(_ queue: inout ByteQueue) -> TLSEngine.Status {
    let step = queue.withWaiting { engine?.handshake($0) }
    guard let step else { return .failed }
    queue.removeFirst(step.consumed)
    engine?.moveLate(to: &output)
    return step.status
  }

  /// Fails the handshake as the engine has, and sends an alert.
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
      // A failure drops `input`, which must not be in use then.
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

  /// Decrypts as much as fits into `buffer`; nil if that yields no byte of the application.
  private func decrypt(
    _ queue: inout ByteQueue, into buffer: inout OutputRawSpan
  ) throws(SocketError) -> ReadOutcome? {
    let step = queue.withWaiting { engine?.read($0, into: &buffer) }
    guard let step else { return nil }
    queue.removeFirst(step.consumed)
    // If the engine failed or ended after these bytes, the next read finds it.
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

  /// Fails the transport as the engine has, and sends an alert.
  func failAsEngine(_ operation: String) -> SocketError {
    let error = fail(engineFailure, operation)
    endAfterFailure()
    return error
  }

  private var engineFailure: SecurityFailure {
    engine?.failure.explained(place, engine?.offender ?? nil)
      ?? SecurityFailure(.damaged, "OpenSSL has no memory for a connection")
  }

  /// Handles what came with the bytes: tickets, and requests that this side answers.
  private func settleAfterRead() {
    guard phase == .open || phase == .failed else { return }
    if !side.isServer {
      while let session = engine?.takeSession() { owner.transport(self, received: session) }
    }
    engine?.moveLate(to: &output)
    endIfFlooded()
    scheduleTurnEnd()
  }

  /// Reads from the transport below, and fails if that has failed.
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

  /// Borrows the loop's buffer, and moves the bytes that wait to be decrypted to its front.
  private func borrow(_ queue: inout ByteQueue) {
    loop.swapTransformQueue(with: &queue)
    input.move(to: &queue)
  }

  /// Returns the loop's buffer, and keeps the bytes that are left in it.
  private func giveBack(_ queue: inout ByteQueue) {
    if !queue.isEmpty, phase == .open || phase == .handshaking { input = queue.detachRest() }
    queue.removeAll()
    loop.swapTransformQueue(with: &queue)
  }

  /// Looks for an alert that arrived before the transport below failed to write. The number of
  /// reads is limited, so that a peer cannot hold up the loop with other bytes.
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
  /// Passes the bytes in the queue to a function.
  func withWaiting<Result>(_ body: (RawSpan) -> Result) -> Result {
    withBytes(position..<position + count, body)
  }

  /// Moves the bytes in the queue to the end of another queue, and frees the memory.
  mutating func move(to other: inout ByteQueue) {
    guard !isEmpty else { return }
    withWaiting { other.append($0) }
    self = ByteQueue()
  }
}
