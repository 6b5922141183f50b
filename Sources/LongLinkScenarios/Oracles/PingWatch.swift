// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Watches which of an end's written bytes stand before the ping that it waits for.
///
/// After a silence of the interval, an end queues one ping, and each acknowledgement of the bytes
/// before it begins the timeout again. The network shows when a ping is written. Over a slow path,
/// that can be long after it was queued: meanwhile bytes may have arrived, and the next silence has
/// a ping of its own behind more bytes. So this also watches since when bytes may have waited to be
/// written, which bounds when a ping can have been queued.
struct PingWatch {
  /// The silence of the peer that is judged.
  struct Silence {
    /// When the silence began.
    var start: LinkInstant
    /// By when a ping had to be queued because of the silence.
    var due: LinkInstant
  }

  /// The length of a ping in the stream.
  static let pingLength = 24

  private struct Ping {
    /// The count of written bytes whose arrival begins the timeout again.
    var before: Int
    /// The earliest time at which it can have been queued.
    var queued: LinkInstant
  }

  /// The last ping that was written since bytes last arrived and can have been queued in time.
  private var ping: Ping?
  /// Since when bytes may have waited to be written; nil if none do.
  private var waitsSince: LinkInstant?
  /// When a write last left room. What is written at the same time may have waited until then.
  private var roomSince: LinkInstant?

  /// The earliest time at which bytes can have been queued that are written now.
  private mutating func earliestQueued(at now: LinkInstant) -> LinkInstant {
    if let roomSince, roomSince < now { waitsSince = nil }
    return waitsSince ?? now
  }

  /// Records that bytes were written that contain a ping.
  ///
  /// `end` is the count of written bytes up to its end, and `isAlone` whether there are no other
  /// bytes on the way. Then its own acknowledgement does not begin the timeout again. Returns
  /// whether it is the ping that counts.
  mutating func wrotePing(
    to end: Int, isAlone: Bool, length: Int, in silence: Silence, at now: LinkInstant
  ) -> Bool {
    let queued = earliestQueued(at: now)
    // An end that pings again and again must not gain time by that.
    guard ping == nil || queued <= silence.due else { return false }
    let isAlone = isAlone && waitsSince == nil
    ping = Ping(before: isAlone ? end - length : end, queued: queued)
    return true
  }

  /// Records that more of the encrypted bytes that contain the last ping were written.
  mutating func pingEnds(at end: Int) { ping?.before = end }

  /// Records that bytes were written, and whether the stream takes no more for now.
  mutating func wrote(isFull: Bool, at now: LinkInstant) {
    let queued = earliestQueued(at: now)
    if isFull {
      (waitsSince, roomSince) = (queued, nil)
    } else {
      roomSince = now
    }
  }

  /// Bytes have arrived from the peer. They end its silence.
  mutating func heard() { ping = nil }

  /// Whether the bytes from this count of written bytes on begin before the ping.
  func isAhead(_ position: Int, in silence: Silence) -> Bool {
    if let ping, position < ping.before { return true }
    // The ping may still wait to be written, behind all written bytes. One that was queued in this
    // silence is the only one of it.
    guard roomSince == nil, let waitsSince else { return false }
    guard let ping else { return true }
    return ping.queued <= silence.start && waitsSince <= silence.due
  }
}
