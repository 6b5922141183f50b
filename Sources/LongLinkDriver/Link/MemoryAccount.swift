// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// What one connection holds, as its server's budget was told.
struct MemoryAccount {
  /// Changes below this many bytes are not reported; most of what a connection holds for one turn
  /// stays below it.
  private static let grain = 4096

  private(set) var told = HeldMemory()
  /// When the connection last began to hold anything.
  private var heldSince = LinkInstant(nanoseconds: 0)

  /// The eviction rank: the connection's bytes in the budget, times how long it has held any,
  /// clamped to 0.1 to 1 s. Smaller messages that never end rank above a large one that just came.
  func weight(at now: LinkInstant) -> Int {
    let time = min(max(now - heldSince, 100_000_000), 1_000_000_000)
    return told.open * Int(time / 1_000_000)
  }

  /// What is to be told, for a connection that holds so much by now; nil where it is too little.
  mutating func change(
    to held: HeldMemory, at now: @autoclosure () -> LinkInstant
  ) -> HeldMemory? {
    let more = HeldMemory(
      open: held.open - told.open, room: held.room - told.room,
      outlived: held.outlived - told.outlived)
    guard
      abs(more.open) >= Self.grain || abs(more.room) >= Self.grain
        || more.outlived != 0 || held.open == 0 && more.open != 0
    else { return nil }
    if told.open < Self.grain { heldSince = now() }
    told = held
    return more
  }
}
