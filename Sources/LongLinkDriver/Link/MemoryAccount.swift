// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The memory that one connection holds, as reported to its server's budget.
package struct MemoryAccount {
  /// Changes below this many bytes are not reported; most of what a connection holds for one turn
  /// stays below it.
  private static let grain = 4096

  private(set) var told = HeldMemory()
  /// When the connection began to hold memory, after it held little.
  private var heldSince = LinkInstant(nanoseconds: 0)
  /// When the peer last made progress: since then, less than an eighth of what is held has moved.
  private var movedAt = LinkInstant(nanoseconds: 0)
  /// The bytes that had been read and written at `movedAt`.
  private var movedUntilThen: UInt64 = 0

  /// How much a connection counts when the server picks one to evict.
  package struct Weight {
    /// Bytes times milliseconds.
    package var amount: Int
    /// Whether the connection's peer has made no progress for 0.1 s.
    package var isStalled: Bool
  }

  /// Returns the connection's weight: bytes times time.
  ///
  /// For the `unfinished` bytes, which wait for the peer, the time is that since its last progress,
  /// from 0.1 s to `longest`. So small messages that never end come to weigh more than a large one
  /// that moves. For the other bytes, including the `decoded` ones, which wait for handlers, it is
  /// the time since the connection began to hold any, from 0.1 s to 1 s.
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

  /// The change to report to the budget, for a connection that now holds `held` and has read and
  /// written `moved` bytes; nil if the change is too small.
  mutating func change(
    to held: HeldMemory, at now: @autoclosure () -> LinkInstant,
    moved: @autoclosure () -> UInt64 = 0
  ) -> HeldMemory? {
    // While a connection holds little, its progress does not matter.
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
