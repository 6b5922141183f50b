// SPDX-License-Identifier: Apache-2.0

// The items that this side receives, and the credit that it grants for them.

extension StreamTable {
  /// What a frame of an item was.
  enum Part: Equatable {
    /// The whole item, which cost this much credit.
    case whole(cost: Int)
    /// A fragment that others follow: `append` keeps it.
    case fragment
    /// The last fragment: `takePartial` joins the item, which cost this much.
    case last(cost: Int)
  }

  /// The credit that the peer gets for a stream.
  enum Grant: Equatable {
    case nothing
    case credit(Int)
    /// The rest of an item does not fit into the limit of all windows: the exchange has to end.
    case overLimit
  }

  /// Accounts for a frame of an item. Throws if the exchange does not allow it.
  mutating func arrived(
    _ head: FrameHead, in slot: Int, at now: LinkInstant
  ) throws(Violation) -> Part {
    let cost = Wire.itemOverhead + head.length
    let isLast = !head.flags.contains(.more)
    let size = partialCount(head.serial) + head.length
    table[slot: slot].hasHeardPeer = true
    let part = try changeIncoming(slot) { [usesCredit, maxBody] inflow throws(Violation) -> Part in
      guard !inflow.hasEnded else { throw Violation(.itemAfterEnd, head) }
      guard !usesCredit || cost <= inflow.credit else {
        throw Violation(.creditExceeded, head, value: UInt64(cost))
      }
      let isFirst = inflow.partial == 0
      guard isFirst && isLast || size <= maxBody else {
        throw Violation(.lengthOverLimit, head, value: UInt64(size))
      }
      if usesCredit { inflow.arrived(cost, at: now) }
      inflow.partial += cost
      guard isLast else { return .fragment }
      let whole = inflow.partial
      inflow.partial = 0
      inflow.completed(whole)
      return isFirst ? .whole(cost: whole) : .last(cost: whole)
    }
    guard let part else { throw Violation(.itemNotExpected, head) }
    return part
  }

  /// Throws if the response to a request with a stream is impossible: a refusal after items, or
  /// success within an item.
  func answered(_ serial: UInt32, tag: UInt32, in slot: Int) throws(Violation) {
    let stream = self[slot]
    let kind = FrameKind.response.rawValue
    guard tag & Wire.refusedBit == 0 || !stream.hasHeardPeer else {
      throw Violation(.refusedAfterItems, kind: kind, serial: serial)
    }
    guard tag & Wire.codeMask != ResponseCode.ok.rawValue || stream.incoming?.partial ?? 0 == 0
    else { throw Violation(.itemCutOff, kind: kind, serial: serial) }
  }

  /// Notes that the peer's items have ended. Throws if the exchange does not allow it.
  mutating func ended(_ head: FrameHead, in slot: Int) throws(Violation) {
    guard var inflow = self[slot].incoming else { throw Violation(.itemNotExpected, head) }
    guard !inflow.hasEnded else { throw Violation(.itemAfterEnd, head) }
    guard inflow.partial == 0 else { throw Violation(.itemCutOff, head) }
    inflow.hasEnded = true
    setIncoming(slot, inflow)
  }

  /// Notes that the application has taken items, with what they cost in all. Returns what the peer
  /// gets; nil if there is no such stream.
  mutating func took(_ cost: Int, of serial: UInt32, at now: LinkInstant) -> Grant? {
    guard let slot = slot(of: serial), var inflow = self[slot].incoming else { return nil }
    inflow.untaken -= cost
    precondition(inflow.untaken >= 0, "more items were taken than came")
    // Half of the limit is left to the first credit of other streams.
    if usesCredit { inflow.growIfTooSmall(room: limit / 2 - ceiling) }
    setIncoming(slot, inflow)
    return grant(slot, at: now)
  }

  /// Notes that the application holds all whole items of a stream. Returns what the peer gets: it
  /// must be able to end the item that it has begun.
  mutating func lent(_ serial: UInt32, at now: LinkInstant) -> Grant {
    guard let slot = slot(of: serial), var inflow = self[slot].incoming else { return .nothing }
    inflow.isLent = true
    setIncoming(slot, inflow)
    return grant(slot, at: now)
  }

  /// Whether the peer cannot go on within an item until the application has taken others: true once
  /// for each item.
  mutating func becomesStuck(_ slot: Int) -> Bool {
    guard usesCredit, var inflow = self[slot].incoming, inflow.isStuck else { return false }
    inflow.wasReported = true
    setIncoming(slot, inflow)
    return true
  }

  /// Grants credit if it is time for it, and returns what the peer gets.
  mutating func grant(_ slot: Int, at now: LinkInstant) -> Grant {
    guard usesCredit, var inflow = self[slot].incoming else { return .nothing }
    let isWithinItem = inflow.partial > 0 && inflow.hasNoneWaiting
    var lump = min(inflow.lump, Wire.mostCredit - inflow.credit)
    // One item may exceed the limit, with the headers of its fragments.
    let extra =
      isWithinItem ? maxBody + (maxBody / Wire.fragmentLimit + 1) * Wire.itemOverhead : 0
    func fits(_ lump: Int) -> Bool {
      var granted = inflow
      granted.granted(lump, at: now)
      let growth = granted.reserved - inflow.reserved
      // Memory that is reserved for this stream is there, whatever the items of others take.
      return growth <= 0 || hasRoom(for: growth, extra: extra)
    }
    if lump > 0, !fits(lump) {
      // Less will do for now: the window grows back when there is room.
      lump = inflow.hasNoneWaiting ? min(lump, max(0, Wire.leastCredit - inflow.credit)) : 0
      guard lump == 0 || fits(lump) else { return .overLimit }
    }
    guard lump > 0 else { return .nothing }
    inflow.granted(lump, at: now)
    setIncoming(slot, inflow)
    table[slot: slot].hasSpoken = true
    return .credit(lump)
  }
}
