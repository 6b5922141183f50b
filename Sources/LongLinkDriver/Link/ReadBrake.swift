// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Logging

/// The most that is read from a peer per second. The rest waits in the peer's system.
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

/// Limits how fast one link reads from its peer.
///
/// Each read is charged as a whole, after its frames have been processed. So a peer can be ahead by
/// one second's worth and one read, and is then not read until that time has passed.
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

  /// The most bytes of one read: about an eighth of a second's worth. A frame counts as 256 bytes.
  var largestRead: Int {
    let frames = limits.framesPerSecond.map { min($0, 1 << 24) * 256 } ?? .max
    return min(limits.bytesPerSecond ?? .max, frames) / 8
  }

  /// Charges a read, and the frames since the last one. Returns how long to wait, in nanoseconds.
  private func charge(bytes count: Int, frames total: UInt64, at now: LinkInstant) -> Int64 {
    var wait: Int64 = 0
    if let rate = limits.bytesPerSecond { wait = bytes.spend(count, perSecond: rate, at: now) }
    if let rate = limits.framesPerSecond, total > framesCharged {
      let count = Int(clamping: total - framesCharged)
      wait = max(wait, frames.spend(count, perSecond: rate, at: now))
      framesCharged = total
    }
    return wait
  }

  /// Charges a read of the peer's bytes, and stops reading if the peer sends too fast.
  func charge(_ count: Int, of link: Link) {
    let now = link.loop.now
    let wait = charge(bytes: count, frames: link.counters.framesReceived, at: now)
    guard wait > 0, link.isAlive, link.isOpen else { return }
    link.slow(true)
    link.log(.notice, "Slowed a peer down that sends too much", ["ms": .milliseconds(wait)])
    guard timer == nil else { return }
    self.link = link
    heldSince = now
    timer = link.loop.schedule(at: now + wait, self, token: 0)
  }

  func timerFired(token: UInt64) {
    timer = nil
    guard let link else { return }
    link.slow(false, after: link.loop.now - heldSince)
  }

  func stop(on loop: EventLoop) {
    if let timer { loop.cancel(timer) }
    timer = nil
  }
}
