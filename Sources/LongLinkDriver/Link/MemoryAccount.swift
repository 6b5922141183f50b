// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// What one connection holds, as its server's budget was told.
package struct MemoryAccount {
  /// Changes below this many bytes are not reported; most of what a connection holds for one turn
  /// stays below it.
  private static let grain = 4096

  private(set) var told = HeldMemory()
  /// When the connection last began to hold anything.
  private var heldSince = LinkInstant(nanoseconds: 0)
  /// When the peer last made progress: it moved an eighth of what the connection holds.
  private var movedAt = LinkInstant(nanoseconds: 0)
  /// The bytes that were read and written until then.
  private var movedUntilThen: UInt64 = 0

  /// What a connection counts as when one is chosen to be evicted.
  package struct Weight {
    /// Bytes times milliseconds.
    package var amount: Int
    /// Whether its peer has made no progress for 0.1 s.
    package var isStalled: Bool
  }

  /// Returns the weight: bytes times time.
  ///
  /// For the `unfinished` bytes, which wait for the peer, that is the time since its last progress,
  /// from 0.1 s to `longest`: small messages that never end come to weigh more than a large one
  /// that moves. For the others, among them the `decoded`, which wait for handlers, it is how long
  /// the connection has held any, from 0.1 to 1 s.
  func weight(
    at now: LinkInstant, unfinished: Int = 0, decoded: Int = 0, longest: Int64 = 60_000_000_000
  ) -> Weight {
    let unfinished = min(unfinished, told.open)
    let still = max(now - movedAt, MemoryAccount.briefly)
    let held = min(max(now - heldSince, MemoryAccount.briefly), 1_000_000_000)
    return Weight(
      amount: unfinished * Int(min(still, longest) / 1_000_000)
        + (told.open - unfinished + decoded) * Int(held / 1_000_000),
      isStalled: unfinished > 0 && still > MemoryAccount.briefly)
  }

  /// The shortest time without progress that counts, in nanoseconds.
  private static let briefly: Int64 = 100_000_000

  /// What is to be told, for a connection that holds so much by now and has read and written so
  /// many bytes; nil where it is too little.
  mutating func change(
    to held: HeldMemory, at now: @autoclosure () -> LinkInstant,
    moved: @autoclosure () -> UInt64 = 0
  ) -> HeldMemory? {
    // Of what holds little, there is no progress to note.
    if told.open >= Self.grain {
      let moved = moved()
      if moved &- movedUntilThen >= UInt64(max(Self.grain, told.open / 8)) {
        (movedAt, movedUntilThen) = (now(), moved)
      }
    }
    let more = HeldMemory(
      open: held.open - told.open, room: held.room - told.room,
      outlived: held.outlived - told.outlived)
    guard
      abs(more.open) >= Self.grain || abs(more.room) >= Self.grain
        || more.outlived != 0 || held.open == 0 && more.open != 0
    else { return nil }
    if told.open < Self.grain {
      heldSince = now()
      (movedAt, movedUntilThen) = (heldSince, moved())
    }
    told = held
    return more
  }
}
