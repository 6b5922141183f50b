// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
package import LongLinkTransport

extension Link: StreamHandler {
  /// The most that one read takes from the stream: what the processor's nearer caches hold while it
  /// is taken apart. Twice or half as much is slower by a tenth and more with bodies of 64 KiB.
  private static let readSize = 2 * largeFrame
  /// The same while the server's memory is scarce.
  private static let sparingRead = largeFrame
  /// A frame with a body of 64 KiB and a little metadata.
  private static let largeFrame = 65_536 + 64
  /// The same in a turn that has lasted for long.
  private static let littleRead = 4_096
  /// The largest memory that a loop keeps for streams of which a frame has come in part.
  static let largestSpare = 524_288
  /// Reads of one stream in one turn, so that the others get theirs.
  private static let readsPerTurn = 4

  package func streamReady(_ readiness: Readiness, token: UInt64) {
    guard isConnected || finishConnecting() else { return }
    if readiness.contains(.read) {
      leavesBytes = postponesReading()
      if !leavesBytes { read() }
    }
    if readiness.contains(.write), isAlive {
      flush()
      followMemory()
    }
    followReading()
    arm()
  }

  private func finishConnecting() -> Bool {
    guard isAlive else { return false }
    do {
      guard try stream.finishConnecting() else { return false }
    } catch {
      core.failed(errno: error.errno)
      drain()
      return false
    }
    isConnected = true
    watch(bytes: true, room: false)
    core.connected(at: loop.driver.now)
    drain()
    return isAlive
  }

  func read() {
    guard isAlive, !core.holdsReading else { return }
    defer { followMemory() }
    followScarcity()
    let limit =
      loop.readsLittle() || isSparing
      ? Link.littleRead : core.mostUnread < .max ? Link.sparingRead : Link.readSize
    leavesBytes = false
    for _ in 0..<min(Link.readsPerTurn, limit / Link.littleRead) {
      guard isAlive, !core.holdsReading, !core.waitsForHandlers else { return }
      let size = core.readSize(upTo: limit)
      // While nothing is left over, the bytes go into the loop's memory, which is warm.
      borrowsQueue = core.input.isEmpty
      if borrowsQueue {
        loop.swapReadQueue(with: &core.input)
      } else {
        core.makeRoom(for: size, with: &loop.spareQueue)
      }
      var isFull = false
      do throws(SocketError) {
        let outcome = try core.input.append(capacity: size) {
          (span) throws(SocketError) in
          try stream.read(into: &span)
        }
        isFull = accept(outcome, of: size)
      } catch {
        core.failed(errno: error.errno)
        drain()
      }
      if borrowsQueue { returnMemory() } else { releaseInput() }
      guard isFull else { return }
    }
    leavesBytes = true
  }

  /// Takes the outcome of a read; true when more is likely to be there.
  private func accept(_ outcome: ReadOutcome, of size: Int) -> Bool {
    switch outcome {
    case .bytes(let count):
      let wasSuspecting = core.isSuspecting
      core.received(count, at: loop.now)
      drain()
      if wasSuspecting { followDeadline() }
      return count == size
    case .wouldBlock:
      return false
    case .end:
      core.ended(at: loop.now)
      flush()
      drain()
      return false
    }
  }

  /// Stops to be told of bytes that are not read for the time being. The end of a turn does that
  /// itself, after a write that may be all that they wait for.
  func followReading() {
    guard isAlive, isConnected, !endsTurn else { return }
    if core.holdsReading { isHeld = true }
    watch(bytes: !isHeld, room: awaitsRoom)
  }
}
