// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  /// The most bytes of the application in one write to the transport below, and the most that wait
  /// here.
  private static let largestPiece = 65_536
  /// The most other bytes that wait: what records add, tickets, and answers to key updates.
  private static let mostAnswers = 16_384

  func write(_ bytes: RawSpan) throws(SocketError) -> Int {
    requireOpen()
    if let failure { throw failure }
    guard phase == .open, !isBlocked else { return 0 }
    guard !hasShutDown else {
      throw SocketError(operation: "write", errno: EPIPE, address: peerAddress)
    }
    // The last read found the failure after the bytes that it returned.
    if engine?.hasFailed == true { throw failAsEngine("write") }
    if side.isServer, !hasSentTickets {
      hasSentTickets = true
      engine?.sendTickets(engine?.isResumed == true ? min(1, side.tickets) : side.tickets)
    }
    var taken = 0
    while taken < bytes.byteCount, !isBlocked {
      let count = min(bytes.byteCount - taken, Self.largestPiece)
      try writePiece(bytes.extracting(taken..<taken + count))
      taken += count
    }
    return taken
  }

  /// Encrypts bytes after the records that wait, and writes all of them.
  private func writePiece(_ bytes: RawSpan) throws(SocketError) {
    var queue = ByteQueue()
    loop.swapTransformQueue(with: &queue)
    defer {
      queue.removeAll()
      loop.swapTransformQueue(with: &queue)
    }
    output.move(to: &queue)
    guard engine?.write(bytes, to: &queue).status == .done else {
      throw fail(
        SecurityFailure(.damaged, "OpenSSL could not encrypt bytes for the \(place.peer)"), "write")
    }
    written += bytes.byteCount
    let count = try writeBelow(queue.position..<queue.position + queue.count, of: &queue)
    queue.removeFirst(count)
    if !queue.isEmpty { output = queue.detachRest() }
  }

  /// Writes to the transport below, and records whether it takes everything.
  private func writeBelow(
    _ positions: Range<Int>, of queue: inout ByteQueue
  ) throws(SocketError) -> Int {
    do throws(SocketError) {
      let count = try queue.withBytes(positions) { (bytes) throws(SocketError) in
        try below.write(bytes)
      }
      isBlocked = count < positions.count
      if isBlocked { updateInterest() }
      return count
    } catch {
      // The peer may have sent an alert that says why it reads no more.
      lookForAlert()
      fail(error)
      throw failure ?? error
    }
  }

  /// Fails if a peer keeps asking for new keys and does not read the answers.
  func endIfFlooded() {
    guard phase == .open, isBlocked, output.count > Self.largestPiece + Self.mostAnswers else {
      return
    }
    _ = fail(TLSFailure.unreadAnswers(place), "read")
    // Nothing more can be written to a peer that does not read.
    output = ByteQueue()
    isBlocked = false
    hasShutDown = true
  }

  /// Writes the records that wait.
  func flush() throws(SocketError) {
    guard !output.isEmpty else { return isBlocked = false }
    // `lookForAlert` after a failure may put an answer into the output.
    var waiting = ByteQueue()
    swap(&waiting, &output)
    let count = try writeBelow(waiting.position..<waiting.position + waiting.count, of: &waiting)
    waiting.removeFirst(count)
    guard waiting.isEmpty else { return swap(&waiting, &output) }
    if hasShutDown { shutDownBelow() }
  }

  private func shutDownBelow() {
    guard !hasShutDownBelow else { return }
    hasShutDownBelow = true
    below.shutDownWriting()
  }

  /// Writes the records that wait; the next read or write reports a failure.
  func flushOrFail() {
    do throws(SocketError) {
      try flush()
    } catch {
      output = ByteQueue()
      isBlocked = false
    }
  }

  /// Writes the alert after a failure, and ends the sending side of the transport below.
  func endAfterFailure() {
    engine?.moveLate(to: &output)
    hasShutDown = true
    flushOrFail()
    if output.isEmpty { shutDownBelow() }
  }

  func shutDownWriting() {
    requireOpen()
    guard !hasShutDown, phase == .open || phase == .handshaking else { return }
    hasShutDown = true
    engine?.close()
    engine?.moveLate(to: &output)
    guard !isBlocked else { return }
    if output.isEmpty { shutDownBelow() } else { flushOrFail() }
  }
}
