// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Watches which of the bytes that an end wrote precede the ping whose pong it awaits.
///
/// After a silence of the interval, an end queues one ping, and each acknowledgement of the bytes
/// before it begins the timeout again. The network shows when a ping is written. Over a slow path,
/// that can be long after it was queued: meanwhile bytes may have arrived, and the next silence has
/// a ping of its own behind more bytes. So this also watches since when bytes may have waited to be
/// written, which bounds when a ping can have been queued.
struct PingWatch {
  /// The peer's silence that made the end send a ping.
  struct Silence {
    /// When the silence began.
    var start: LinkInstant
    /// By when a ping had to be queued because of the silence.
    var due: LinkInstant
  }

  /// The length of a ping on the wire, in bytes.
  static let pingLength = 24

  private struct Ping {
    /// The number of written bytes whose arrival restarts the timeout.
    var before: Int
    /// The earliest time at which the ping can have been queued.
    var queued: LinkInstant
  }

  /// The last ping that counts: written since bytes last arrived, and perhaps queued in time.
  private var ping: Ping?
  /// Since when bytes may have waited to be written; nil if none do.
  private var waitsSince: LinkInstant?
  /// When a write last left room. Bytes written at that very time may have waited until then.
  private var roomSince: LinkInstant?

  /// The earliest time at which the bytes that are written now can have been queued.
  private mutating func earliestQueued(at now: LinkInstant) -> LinkInstant {
    if let roomSince, roomSince < now { waitsSince = nil }
    return waitsSince ?? now
  }

  /// Records that bytes were written that contain a ping.
  ///
  /// `end` is the count of written bytes up to the ping's end, and `isAlone` whether no other bytes
  /// are on their way: then the ping's own arrival does not restart the timeout. Returns whether
  /// this is the ping that counts.
  mutating func wrotePing(
    to end: Int, isAlone: Bool, length: Int, in silence: Silence, at now: LinkInstant
  ) -> Bool {
    let queued = earliestQueued(at: now)
    // An end that sends ping after ping must not gain time by it.
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

  /// Records that bytes from the peer have arrived, which ends its silence.
  mutating func heard() { ping = nil }

  /// Whether bytes after the first `position` written ones may precede the ping.
  func isAhead(_ position: Int, in silence: Silence) -> Bool {
    if let ping, position < ping.before { return true }
    // The ping may still be queued behind all written bytes. But if the written ping was queued
    // during this silence, it is the only one.
    guard roomSince == nil, let waitsSince else { return false }
    guard let ping else { return true }
    return ping.queued <= silence.start && waitsSince <= silence.due
  }
}
