// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Link: TurnHandler {
  /// About how many bytes are written to one stream in one turn, so that the others get theirs and
  /// what is more urgent is heard of.
  private static let writtenPerTurn = 1_048_576

  /// Sees to it that what the connection has to send leaves by the end of this turn.
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
      // The peer takes nothing now: readiness will tell when it does.
      if !borrowsQueue { followMemory() }
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
    if core.waitsForHandlers {
      core.handlersHaveHadTurn()
      drain()
      core.handlersTurnEnds()
    } else if core.hasEffects {
      drain()
    }
    if earlyWriting.ends() { judgeEarlyWriting() }
    flush()
    followMemory()
    arm()
  }

  /// Writes what the connection has so far, where that lets the peer work at the same time. All
  /// that follows from a write is seen to when the turn ends.
  private func writeEarly() {
    guard isAlive, core.isOpen, !awaitsRoom else { return }
    let (writes, isTrial) = earlyWriting.begins()
    guard writes else { return }
    if isTrial { preemptions = loop.driver.preemptions }
    do throws(SocketError) {
      if try write() { earlyWriting.leaveRest() }
    } catch {
      // Whoever sends something does not expect the connection to end meanwhile, and what has been
      // read is still to be taken.
      earlyFailure = error.errno
      earlyWriting.leaveRest()
    }
  }

  /// Looks, after a trial, whether the peer has worked at the same time: it has answered, and not
  /// since it was given this side's processor.
  private func judgeEarlyWriting() {
    let isAnswered = isAlive && stream.hasUnreadBytes
    earlyWriting.judge(
      hasHelped: isAnswered && preemptions != nil && preemptions == loop.driver.preemptions)
  }

  func flush() {
    guard isAlive, isConnected else { return }
    followScarcity()
    var isBlocked = false
    if let errno = earlyFailure {
      earlyFailure = nil
      core.failed(errno: errno)
    } else {
      do throws(SocketError) {
        isBlocked = try write()
      } catch {
        core.failed(errno: error.errno)
      }
    }
    let holds = core.holdsReading
    // Frames that were left while the peer did not read are taken up again.
    let resumes = isHeld && !holds
    isHeld = holds
    watch(bytes: !holds, room: isBlocked)
    if resumes { core.resumedReading(at: loop.now) }
    if core.outbox.isEmpty { owner?.linkWroteAll(self) }
    guard resumes || core.hasEffects || core.wantsToWrite else { return }
    drain()
    releaseInput()
    followReading()
  }

  /// Writes what is encoded; true where more is to wait until the stream has room.
  private func write() throws(SocketError) -> Bool {
    var isBlocked = false
    var budget = Link.writtenPerTurn
    repeat {
      let chunk = core.outbox.chunk
      var count = 0
      if !chunk.isEmpty {
        count = try core.outbox.bytes.withBytes(chunk) { (bytes) throws(SocketError) in
          try stream.write(bytes)
        }
      }
      core.wrote(count, at: loop.now)
      budget -= count
      isBlocked = count < chunk.count || budget <= 0
    } while !isBlocked && core.outbox.encodedBytes > 0
    return isBlocked
  }
}
