// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Link: TurnHandler {
  /// About the most bytes written to one transport in one turn, so that other transports get their
  /// turn and more urgent messages are noticed in time.
  private static let writtenPerTurn = 1_048_576

  /// Schedules a write of the connection's output at the end of this turn.
  @inline(__always)
  func writeAtEndOfTurn() {
    guard !endsTurn else {
      if earlyWriting.isDue(frames: core.outbox.frames, bytes: core.outbox.encodedBytes) {
        writeEarly()
      }
      return
    }
    guard isConnected else { return }
    guard !awaitsRoom else {
      // The transport has no room; readiness reports when it has.
      if !buffer.isLent { reportMemory() }
      arm()
      return
    }
    awaitEndOfTurn()
  }

  func awaitEndOfTurn() {
    guard !endsTurn else { return }
    endsTurn = true
    loop.atEndOfTurn(self, token: UInt64(id))
  }

  package func turnEnds(token: UInt64) {
    endsTurn = false
    let waits = core.readHold.waitsForHandlers
    if waits, !gate.awaitsHandlers(loopLeavesJobs: loop.leavesJobs) {
      recorded(.handlersHadTurn, at: loop.now)
      core.readHold.handlersHadTurn()
      deliver()
      recorded(.handlersTurnEnds, at: loop.now)
      core.readHold.handlersTurnEnds()
    } else {
      if waits { awaitEndOfTurn() }
      if core.hasEffects { deliver() }
    }
    if earlyWriting.ends() {
      earlyWriting.recordTrial(
        isAnswered: isAlive && transport.hasUnreadBytes, preemptions: loop.driver.preemptions)
    }
    flush()
    reportMemory()
    arm()
  }

  /// Writes the output so far, if that lets the peer work in parallel. The effects of this write
  /// are delivered at the end of the turn.
  private func writeEarly() {
    guard isAlive, core.isOpen, !awaitsRoom else { return }
    guard earlyWriting.begins(preemptions: loop.driver.preemptions) else { return }
    do throws(SocketError) {
      if try write() { earlyWriting.deferRest() }
    } catch {
      // During the call that sends, its caller does not expect the connection to end, and bytes
      // that were read are still to be parsed.
      earlyWriting.deferRest(after: error.errno)
    }
  }

  func flush() {
    guard isAlive, isConnected else { return }
    updateScarcity()
    var isBlocked = false
    if let errno = earlyWriting.takeFailure() {
      failed(errno: errno)
    } else {
      do throws(SocketError) {
        isBlocked = try write()
      } catch {
        failed(errno: error.errno)
      }
    }
    let holds = core.holdsReading
    // If reading resumes, parse the frames that waited while the peer did not read.
    let resumes = gate.resumes(isHeld: holds)
    watch(bytes: !holds && !core.carriage.peerHasEnded, room: isBlocked)
    if resumes {
      recorded(.resumedReading, at: loop.now)
      core.resumedReading(at: loop.now)
    }
    if core.outbox.isEmpty { owner?.linkWroteAll(self) }
    guard resumes || core.hasEffects || core.wantsToWrite else { return }
    deliver()
    buffer.releaseRoom(of: &core.inbox, to: loop)
    updateReadInterest()
  }

  /// Writes encoded output; returns true if the rest must wait until the transport is ready again.
  private func write() throws(SocketError) -> Bool {
    var isBlocked = false
    var budget = Link.writtenPerTurn
    repeat {
      let chunk = core.outbox.chunk
      var count = 0
      if !chunk.isEmpty {
        count = try core.outbox.bytes.withBytes(chunk) { (bytes) throws(SocketError) in
          try transport.write(bytes)
        }
      }
      recordedOutput(count, of: chunk)
      core.wrote(count, at: loop.now)
      budget -= count
      isBlocked = count < chunk.count || budget <= 0
    } while !isBlocked && core.outbox.encodedBytes > 0
    return isBlocked
  }
}
