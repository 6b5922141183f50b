// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
package import LongLinkTransport

extension Link: TransportHandler {
  package func transportReady(_ readiness: Readiness, token: UInt64) {
    guard isConnected || finishConnecting() else { return }
    if readiness.contains(.read) {
      if core.carriage.peerHasEnded { readFailure() } else if mayRead() { read() }
    }
    if readiness.contains(.write), isAlive {
      flush()
      reportMemory()
    }
    updateReadInterest()
    arm()
  }

  private func finishConnecting() -> Bool {
    guard isAlive else { return false }
    do {
      guard try transport.finishConnecting() else { return false }
    } catch {
      fail(errno: error.errno)
      return false
    }
    isConnected = true
    watch(bytes: true, room: false)
    let now = loop.driver.now
    recorded(.connected, at: now)
    core.connected(at: now)
    deliver()
    return isAlive
  }

  /// Ends the connection because its transport has failed, in its security or with an errno.
  func failed(errno: Int32) {
    let reason: CloseReason =
      layer?.securityFailure.map { .securityFailed($0.code) } ?? .transport(errno)
    recorded(
      .failed, at: loop.now, RecordedReason.encode(reason).kind,
      RecordedReason.encode(reason).value)
    core.failed(reason)
  }

  private func fail(errno: Int32) {
    failed(errno: errno)
    deliver()
  }

  /// Reads the error of a transport that is ready although the peer has ended its side. This
  /// happens even while reading is suspended, because the transport would stay ready.
  private func readFailure() {
    guard isAlive else { return }
    do throws(SocketError) {
      _ = try core.inbox.input.append(capacity: 1) { (span) throws(SocketError) in
        try transport.read(into: &span)
      }
    } catch {
      fail(errno: error.errno)
    }
    buffer.releaseRoom(of: &core.inbox, to: loop)
  }

  func read() {
    guard isAlive, !core.holdsReading else { return }
    defer { reportMemory() }
    updateScarcity()
    // Before the connection is open, the peer must not make this side hold much memory.
    let isFresh = core.isFresh
    let allowance = gate.begin(
      isLate: loop.readsLittle(), isFresh: isFresh, isScarce: core.readHold.mostUnread < .max,
      brake: brake?.largestRead)
    for _ in 0..<allowance.reads {
      guard isAlive, !core.holdsReading, !core.readHold.waitsForHandlers else { return }
      let size = core.inbox.readSize(upTo: allowance.size)
      buffer.begin(size, into: &core.inbox, isFresh: isFresh, on: loop)
      var isFull = false
      do throws(SocketError) {
        let outcome = try core.inbox.input.append(capacity: size) {
          (span) throws(SocketError) in
          try transport.read(into: &span)
        }
        isFull = accept(outcome, of: size)
      } catch {
        failed(errno: error.errno)
        deliver()
      }
      if buffer.takeBack(from: &core.inbox, on: loop) {
        // Only now, because until here the input was the loop's queue.
        if !core.isLive { releaseMemory() }
      } else {
        buffer.releaseRoom(of: &core.inbox, to: loop)
      }
      guard isFull else { return }
    }
    gate.leaveBytes()
  }

  /// Handles the outcome of a read; returns true if more bytes are likely to wait.
  private func accept(_ outcome: ReadOutcome, of size: Int) -> Bool {
    switch outcome {
    case .bytes(let count):
      recordedInput(count)
      heard { core, now in core.received(count, at: now) }
      brake?.charge(count, of: self)
      return count == size
    case .wouldBlock:
      // Part of a TLS record may have arrived, which is a sign of life.
      if layer?.hasReadPart == true {
        recorded(.receivedPart, at: loop.now)
        heard { core, now in core.receivedPart(at: now) }
      }
      return false
    case .end:
      let isCutOff = layer?.isCutOff == true
      recorded(.ended, at: loop.now, isCutOff ? 1 : 0)
      core.ended(at: loop.now, isCutOff: isCutOff)
      flush()
      deliver()
      return false
    }
  }

  /// Tells the core that bytes have arrived. If the peer was suspected to be dead, it is not any
  /// more.
  @inline(__always)
  private func heard(_ bytes: (inout Connection, LinkInstant) -> Void) {
    let wasSuspecting = core.liveness.isSuspecting
    bytes(&core, loop.now)
    deliver()
    if wasSuspecting { rescheduleTimer() }
  }

  /// Stops reading because the peer sends too fast, or resumes after `held` nanoseconds.
  func slow(_ slows: Bool, after held: Int64 = 0) {
    if slows {
      recorded(.slowed, at: loop.now)
      core.slowed(at: loop.now)
      gate.hold()
    } else {
      recorded(.unslowed, at: loop.now, UInt64(bitPattern: held))
      core.unslowed(after: held)
      guard isAlive, gate.isHeld, !core.holdsReading else { return }
    }
    // At the end of the turn the interest in bytes changes, and a ping may have to be written.
    awaitEndOfTurn()
  }

  /// Stops watching for bytes while reading is on hold. If the end of a turn is scheduled, this is
  /// done there, because the turn's write may end the hold.
  func updateReadInterest() {
    guard isAlive, isConnected, !endsTurn else { return }
    if core.holdsReading { gate.hold() }
    watch(bytes: !gate.isHeld && !core.carriage.peerHasEnded, room: awaitsRoom)
  }
}
