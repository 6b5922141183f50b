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

  /// Charges a read of the peer's bytes, and holds reading if they came too fast.
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
