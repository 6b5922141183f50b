// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  /// How long a closed transport waits for the transport below to take its last bytes, in
  /// nanoseconds.
  private static let longestFlush: Int64 = 5_000_000_000
  /// How long in nanoseconds, and how many bytes, a failed transport reads on: so that its alert
  /// arrives, or to find the peer's alert.
  private static let longestDiscard: Int64 = 2_000_000_000
  static let mostDiscarded = 1_048_576

  func close() {
    switch phase {
    case .flushing, .discarding, .closed: return
    case .connecting: return end { $0.close() }
    case .handshaking, .open: shutDownWriting()
    case .failed: break
    }
    let hasFailed = phase == .failed
    guard hasFailed ? securityFailure != nil && !hasEndedBelow : isBlocked, owner.mayLinger()
    else {
      return end { $0.close() }
    }
    lingers = true
    relay.lingering = self
    release()
    discarded = 0
    isFailedClose = hasFailed
    phase = isBlocked ? .flushing : .discarding
    timer = loop.schedule(
      at: loop.driver.now + (isBlocked ? Self.longestFlush : Self.longestDiscard), relay, token: 0)
    attachBelow()
    updateInterest()
  }

  func reset() {
    switch phase {
    case .flushing, .discarding, .closed: return
    case .connecting, .handshaking, .open, .failed: end { $0.reset() }
    }
  }

  /// Frees everything that a closed transport does not need.
  private func release() {
    handler = nil
    input = ByteQueue()
    engine = nil
  }

  private func end(_ close: (any Transport) -> Void) {
    release()
    output = ByteQueue()
    phase = .closed
    close(below)
    loop.cancel(timer)
    if lingers { owner.lingeringEnded() }
    lingers = false
    relay.lingering = nil
  }

  /// Continues the closing: writes the last bytes, and after a failure reads until the peer ends.
  func linger() {
    if phase == .flushing {
      flushOrFail()
      guard !isBlocked else { return }
      guard isFailedClose, failure == nil || securityFailure != nil else {
        return end { $0.close() }
      }
      phase = .discarding
      updateInterest()
    }
    var queue = ByteQueue()
    loop.swapTransformQueue(with: &queue)
    let isOver = discard(&queue)
    queue.removeAll()
    loop.swapTransformQueue(with: &queue)
    if isOver { end { $0.close() } }
  }

  /// Reads and drops bytes once; returns whether reading is over.
  private func discard(_ queue: inout ByteQueue) -> Bool {
    do throws(SocketError) {
      let outcome = try queue.append(capacity: 65_536) { (span) throws(SocketError) in
        try below.read(into: &span)
      }
      switch outcome {
      case .bytes(let count):
        discarded += count
        return discarded > Self.mostDiscarded
      case .wouldBlock: return false
      case .end: return true
      }
    } catch {
      return true
    }
  }

  func lingeredTooLong() {
    guard phase == .flushing || phase == .discarding else { return }
    end { $0.reset() }
  }
}
