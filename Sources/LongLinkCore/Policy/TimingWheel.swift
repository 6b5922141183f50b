// SPDX-License-Identifier: Apache-2.0

/// A hierarchical timing wheel for many timers at constant cost (Varghese & Lauck, 1987).
///
/// Ticks are milliseconds of the instants' clock. The level of an entry is the highest group of six
/// bits in which its tick differs from the current one. So each level's occupied slots lie ahead of
/// the current time, and all entries of one level are due before those of the next.
@usableFromInline package struct TimingWheel: ~Copyable {
  /// Identifies an entry. It becomes stale when the entry is popped or removed; using it is
  /// harmless.
  @usableFromInline package struct Handle: Hashable, Sendable {
    @usableFromInline var index: UInt32
    @usableFromInline var generation: UInt32

    @inlinable init(index: UInt32, generation: UInt32) {
      self.index = index
      self.generation = generation
    }

    /// The handle of no entry.
    @inlinable package static var none: Handle { Handle(index: .max, generation: 0) }
  }

  private var elapsed: UInt64
  private var nodes = TimerNodes()
  private var levels = TimerLevels()
  /// The number of entries that were neither popped nor removed.
  package private(set) var count = 0

  /// Makes an empty wheel, which does not allocate before the first insert.
  package init(now: LinkInstant) {
    elapsed = Self.tick(notAfter: now)
  }

  /// Whether no entry is left, including due ones.
  package var isEmpty: Bool { count == 0 }

  /// When to call `advance` next; nil for an empty wheel. No entry is due before it, and after a
  /// removal perhaps none at it either.
  package var nextDeadline: LinkInstant? {
    guard count > 0 else { return nil }
    if !nodes.isEmpty(.due) || !nodes.isEmpty(.overdue) { return Self.instant(of: elapsed) }
    // All entries of the first slot are due before those of the next.
    return nextSlot().map { Self.instant(of: nodes[$0.list].tick) }
  }

  /// Adds an entry that is due at the first tick not before `deadline`: never early, and less than
  /// a millisecond late. An entry in the past is due at the next `advance`. O(1).
  package mutating func insert(_ key: UInt64, at deadline: LinkInstant) -> Handle {
    let tick = Self.tick(notBefore: deadline)
    let index = nodes.allocate(key: key, tick: tick)
    count += 1
    if tick <= elapsed {
      nodes.append(index, to: .overdue)
    } else {
      place(index, tick: tick)
    }
    return Handle(index: index, generation: nodes[index].generation)
  }

  /// Removes an entry, even if it is due but not yet popped; false for a stale handle. O(1).
  @discardableResult
  package mutating func remove(_ handle: Handle) -> Bool {
    guard handle.index < nodes.count, nodes[handle.index].generation == handle.generation else {
      return false
    }
    let isLast = nodes.unlink(handle.index)
    if isLast { retire(nodes[handle.index].next) }
    nodes.release(handle.index)
    count -= 1
    return true
  }

  /// Advances the current time, and makes all entries at or before it due. An instant earlier than
  /// the last one has no effect. Amortised O(1) for each entry and level, however far the time
  /// moves.
  package mutating func advance(to now: LinkInstant) {
    advance(toTick: Self.tick(notAfter: now))
  }

  /// Makes all entries due, even those in the distant future.
  package mutating func expireAll() {
    advance(toTick: Self.tick(notBefore: .distantFuture))
  }

  private mutating func advance(toTick target: UInt64) {
    if count > 0 {
      redistribute(.overdue)
      while let next = nextSlot(), next.tick <= target {
        elapsed = max(elapsed, next.tick)
        levels.vacate(next.level, next.slot)
        redistribute(next.list)
        nodes.release(next.list)
      }
    }
    elapsed = max(elapsed, target)
  }

  /// Removes the next due entry, by tick, then by order of insertion; nil if there is none.
  package mutating func popExpired() -> UInt64? {
    guard count > 0, !nodes.isEmpty(.due) else { return nil }
    let first = nodes[.due].next
    let key = nodes[first].key
    _ = nodes.unlink(first)
    nodes.release(first)
    count -= 1
    return key
  }

  /// Moves the entries of a list to where they now belong, in order. Entries of one tick are always
  /// in one list, so that moves keep the order of insertion.
  private mutating func redistribute(_ list: UInt32) {
    var index = nodes[list].next
    nodes.empty(list)
    while index != list {
      let next = nodes[index].next
      let tick = nodes[index].tick
      if tick <= elapsed {
        nodes.append(index, to: .due)
      } else {
        place(index, tick: tick)
      }
      index = next
    }
  }

  private mutating func place(_ index: UInt32, tick: UInt64) {
    let (level, slot) = Self.position(of: tick, from: elapsed)
    if let list = levels.list(level, slot) {
      nodes.append(index, to: list)
      if tick < nodes[list].tick { nodes[list].tick = tick }
    } else {
      // No entry of a list is due before the list's tick.
      let list = nodes.allocate(key: UInt64(level << 6 | slot), tick: tick)
      nodes.empty(list)
      levels.occupy(level, slot, with: list)
      nodes.append(index, to: list)
    }
  }

  /// Frees a list that has become empty, unless it is one of the permanent lists.
  private mutating func retire(_ list: UInt32) {
    guard list > .due else { return }
    let place = Int(nodes[list].key)
    levels.vacate(place >> 6, place & 63)
    nodes.release(list)
  }

  private func nextSlot() -> (tick: UInt64, level: Int, slot: Int, list: UInt32)? {
    guard let (level, slot, list) = levels.first else { return nil }
    let shift = level * 6
    let above = (elapsed >> (shift + 6)) << (shift + 6)
    return (above | (UInt64(slot) << shift), level, slot, list)
  }

  private static func position(of tick: UInt64, from elapsed: UInt64) -> (level: Int, slot: Int) {
    let level = (63 - (tick ^ elapsed).leadingZeroBitCount) / 6
    return (level, Int((tick >> (level * 6)) & 63))
  }

  // Ticks are biased so that they are positive for every instant; they fit into 45 bits.
  private static let bias: Int64 = 1 << 44
  private static let nanosecondsPerTick: Int64 = 1_000_000

  private static func tick(notAfter instant: LinkInstant) -> UInt64 {
    let (quotient, remainder) = instant.nanoseconds.quotientAndRemainder(
      dividingBy: nanosecondsPerTick
    )
    return UInt64(quotient + bias - (remainder < 0 ? 1 : 0))
  }

  private static func tick(notBefore instant: LinkInstant) -> UInt64 {
    let (quotient, remainder) = instant.nanoseconds.quotientAndRemainder(
      dividingBy: nanosecondsPerTick
    )
    return UInt64(quotient + bias + (remainder > 0 ? 1 : 0))
  }

  private static func instant(of tick: UInt64) -> LinkInstant {
    let ticks = Int64(tick) - bias
    let (nanoseconds, overflow) = ticks.multipliedReportingOverflow(by: nanosecondsPerTick)
    guard overflow else { return LinkInstant(nanoseconds: nanoseconds) }
    return LinkInstant(nanoseconds: ticks < 0 ? .min : .max)
  }
}

extension UInt32 {
  /// The list of entries that were in the past when they were inserted.
  fileprivate static var overdue: UInt32 { 0 }
  /// The list of entries that are due.
  fileprivate static var due: UInt32 { 1 }
  /// The index of no node.
  fileprivate static var nothing: UInt32 { .max }
}
