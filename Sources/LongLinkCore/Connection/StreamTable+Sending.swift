// SPDX-License-Identifier: Apache-2.0

// The items that this side sends, as far as the credit of the peer goes.

extension StreamTable {
  /// The part of a stream that is to be encoded next.
  enum Piece: Equatable {
    case nothing
    /// The end of the items.
    case end
    /// A fragment of an item, from this index on; others follow it if `isPart`.
    case fragment(of: [UInt8], from: Int, count: Int, isPart: Bool, priority: UInt32)
  }

  /// What follows once a fragment has been encoded.
  enum Progress: Equatable {
    /// Other fragments of the same item follow.
    case within
    /// The item is whole; its sender waits to learn that if `isAwaited`.
    case whole(isAwaited: Bool)
  }

  /// Whether a stream takes an item now; one that waits must have been sent before.
  func takesItem(_ slot: Int) -> Bool {
    guard let outflow = self[slot].outgoing, !outflow.hasEnded, !outflow.endsNext else {
      return false
    }
    precondition(!outflow.isPending, "an item of this stream waits")
    return true
  }

  /// Whether an item of this size can be encoded at once, in one frame.
  @inline(__always)
  func affords(_ count: Int, _ slot: Int) -> Bool {
    self[slot].isRequestWhole && count <= Wire.fragmentLimit
      && Wire.itemOverhead + count <= self[slot].outgoing?.credit ?? 0
  }

  /// The priority of the items that this side sends.
  func priority(_ slot: Int) -> UInt32 { self[slot].outgoing?.priority ?? 0 }

  /// Notes that an item of this size was encoded at once.
  mutating func sent(_ count: Int, _ slot: Int) {
    table[slot: slot].outgoing?.credit -= Wire.itemOverhead + count
    table[slot: slot].hasSpoken = true
  }

  /// Keeps an item until there are credit and room.
  mutating func enqueue(_ item: [UInt8], of serial: UInt32, _ slot: Int) {
    table[slot: slot].outgoing?.isPending = true
    table[slot: slot].hasSpoken = true
    setPending(PendingItem(body: item), serial)
  }

  /// Returns whether a kept item is still not sent, and notes that its sender waits for `itemSent`.
  mutating func awaitsPending(_ serial: UInt32) -> Bool {
    pendings.update(serial) { $0.isAwaited = true } != nil
  }

  /// Notes that no item follows the one that waits. Returns false if that is known, or there is no
  /// such stream.
  mutating func endItems(_ serial: UInt32) -> Bool {
    guard let slot = slot(of: serial), self[slot].outgoing?.endsNext == false else { return false }
    table[slot: slot].outgoing?.endsNext = true
    return true
  }

  /// Takes what is to be encoded next of a stream, as far as the credit goes.
  mutating func nextPiece(of serial: UInt32) -> Piece {
    guard let slot = slot(of: serial), self[slot].isRequestWhole,
      let outflow = self[slot].outgoing, !outflow.hasEnded
    else { return .nothing }
    guard outflow.isPending else {
      guard outflow.endsNext else { return .nothing }
      table[slot: slot].outgoing?.hasEnded = true
      return .end
    }
    guard var item = pending(serial), item.queued == nil else { return .nothing }
    let rest = item.body.count - item.sent
    let affordable = min(outflow.credit - Wire.itemOverhead, Wire.fragmentLimit)
    guard affordable >= rest || outflow.credit >= Wire.leastCredit else { return .nothing }
    let size = min(rest, affordable)
    item.queued = size
    setPending(item, serial)
    table[slot: slot].outgoing?.credit -= Wire.itemOverhead + size
    return .fragment(
      of: item.body, from: item.sent, count: size, isPart: size < rest, priority: outflow.priority)
  }

  /// Notes that the fragment of an item has been encoded; nil if its exchange has ended.
  mutating func fragmentSent(_ serial: UInt32) -> Progress? {
    guard var item = pending(serial), let size = item.queued, let slot = slot(of: serial)
    else { return nil }
    item.sent += size
    item.queued = nil
    guard item.sent == item.body.count else {
      setPending(item, serial)
      return .within
    }
    removePending(serial)
    table[slot: slot].outgoing?.isPending = false
    return .whole(isAwaited: item.isAwaited)
  }

  /// Adds credit of the peer; false if the items of this side have ended. Throws if the exchange
  /// does not allow it.
  mutating func credited(
    _ credit: Int, by head: FrameHead, in slot: Int
  ) throws(Violation) -> Bool {
    guard let outflow = self[slot].outgoing else {
      throw Violation(.creditNotAllowed, head, value: UInt64(credit))
    }
    table[slot: slot].hasHeardPeer = true
    guard !outflow.hasEnded else { return false }
    guard outflow.credit + credit <= Wire.mostCredit else {
      throw Violation(.creditOverflow, head, value: UInt64(outflow.credit + credit))
    }
    table[slot: slot].outgoing?.credit += credit
    return true
  }
}
