// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Logging

/// How much a peer may send per second; the rest waits in its own system.
package struct ReadLimits: Equatable, Sendable {
  /// The most bytes per second; nil for any number.
  package var bytesPerSecond: Int?
  package var framesPerSecond: Int?

  package init(bytesPerSecond: Int? = nil, framesPerSecond: Int? = nil) {
    self.bytesPerSecond = bytesPerSecond
    self.framesPerSecond = framesPerSecond
  }

  var isUnlimited: Bool { bytesPerSecond == nil && framesPerSecond == nil }
}

/// The tokens of one link whose peer may send only so much per second.
///
/// Each read is judged as a whole, after its frames have been processed. So a peer can be ahead by
/// one second's worth and one read, for which it then waits.
final class ReadBrake: TimerHandler {
  private let limits: ReadLimits
  private var bytes: TokenBucket
  private var frames: TokenBucket
  private var framesCharged: UInt64 = 0
  private weak var link: Link?
  private var timer: LoopTimer?
  private var heldSince = LinkInstant(nanoseconds: 0)

  init(_ limits: ReadLimits, at now: LinkInstant) {
    self.limits = limits
    bytes = TokenBucket(at: now)
    frames = TokenBucket(at: now)
  }

  /// The most bytes of one read: about an eighth of what may come in a second, if the frames have
  /// 256 bytes.
  var largestRead: Int {
    let frames = limits.framesPerSecond.map { min($0, 1 << 24) * 256 } ?? .max
    return min(limits.bytesPerSecond ?? .max, frames) / 8
  }

  /// Charges a read and the frames so far, and returns the time to wait in nanoseconds; 0 for none.
  fileprivate func charge(bytes count: Int, frames total: UInt64, at now: LinkInstant) -> Int64 {
    var wait: Int64 = 0
    if let rate = limits.bytesPerSecond { wait = bytes.spend(count, perSecond: rate, at: now) }
    if let rate = limits.framesPerSecond, total > framesCharged {
      let count = Int(clamping: total - framesCharged)
      wait = max(wait, frames.spend(count, perSecond: rate, at: now))
      framesCharged = total
    }
    return wait
  }

  fileprivate func hold(_ link: Link, for time: Int64, at now: LinkInstant) {
    guard timer == nil else { return }
    self.link = link
    heldSince = now
    timer = link.loop.schedule(at: now + time, self, token: 0)
  }

  func timerFired(token: UInt64) {
    timer = nil
    guard let link else { return }
    link.endSlowing(after: link.loop.now - heldSince)
  }

  func stop(on loop: EventLoop) {
    if let timer { loop.cancel(timer) }
    timer = nil
  }
}

extension Link {
  /// Charges a read of the peer's bytes, and holds reading if they came too fast.
  func chargeRead(of count: Int) {
    guard let brake else { return }
    let now = loop.now
    let wait = brake.charge(bytes: count, frames: core.counters.framesReceived, at: now)
    guard wait > 0, isAlive, core.isOpen else { return }
    core.slowed(at: now)
    gate.hold()
    brake.hold(self, for: wait, at: now)
    log(.notice, "Slowed a peer down that sends too much", ["ms": .milliseconds(wait)])
    // Stop watching for bytes; a ping may have to be written.
    awaitEndOfTurn()
  }

  /// Reads again, now that the peer may send more.
  fileprivate func endSlowing(after time: Int64) {
    core.unslowed(after: time)
    guard isAlive, gate.isHeld, !core.holdsReading else { return }
    awaitEndOfTurn()
  }
}
