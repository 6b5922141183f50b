/// Timers by the thousand at constant cost: a hierarchical timing wheel (Varghese & Lauck, 1987).
///
/// Ticks are milliseconds of the clock that the instants come from. An entry stands on the level of
/// the highest six bits in which its tick differs from the present one, so each level's occupied
/// slots lie ahead of the present, and all entries of one level are due before those of the next.
package struct TimingWheel: Equatable, Sendable {
  /// Names one entry. It goes stale when the entry is popped or removed; a stale one is harmless.
  package struct Handle: Hashable, Sendable {
    fileprivate var index: UInt32
    fileprivate var generation: UInt32

    /// The handle of no entry.
    package static let none = Handle(index: .nothing, generation: 0)
  }

  private var elapsed: UInt64
  private var levels: [Level] = []
  private var nodes = Slab()
  // Lists are rings of nodes, held by their last one.
  private var overdue: UInt32 = .nothing
  private var due: UInt32 = .nothing
  /// Entries that were inserted and neither popped nor removed.
  package private(set) var count = 0

  /// Makes an empty wheel, which allocates nothing until the first insert.
  package init(now: LinkInstant) {
    elapsed = Self.tick(notAfter: now)
  }

  /// True when no entry is left, due ones included.
  package var isEmpty: Bool { count == 0 }

  /// When to call `advance` next: no entry is due before it. There may be none due at it either,
  /// where the one that was has been removed. Nil for an empty wheel.
  package var nextDeadline: LinkInstant? {
    if due != .nothing || overdue != .nothing { return Self.instant(of: elapsed) }
    // All entries of the first slot come before those of the next.
    return nextSlot().map { Self.instant(of: levels[$0.level].earliest(in: $0.slot)) }
  }

  /// Adds an entry that is due at the first tick not before `deadline`: never early, and less than
  /// a millisecond late. One that lies in the past is due at the next `advance`. O(1).
  package mutating func insert(_ key: UInt64, at deadline: LinkInstant) -> Handle {
    let tick = Self.tick(notBefore: deadline)
    let index = nodes.allocate(key: key, tick: tick)
    count += 1
    if tick <= elapsed {
      nodes[index].place = .overdue
      overdue = nodes.append(index, to: overdue)
    } else {
      place(index, tick: tick)
    }
    return Handle(index: index, generation: nodes[index].generation)
  }

  /// Removes an entry, also one that is due and not yet popped; false for a stale handle. O(1).
  @discardableResult
  package mutating func remove(_ handle: Handle) -> Bool {
    guard handle.index < nodes.count, nodes[handle.index].generation == handle.generation else {
      return false
    }
    switch nodes[handle.index].place {
    case .free:
      return false
    case .overdue:
      overdue = nodes.unlink(handle.index, from: overdue)
    case .due:
      due = nodes.unlink(handle.index, from: due)
    case .wheel:
      let (level, slot) = Self.position(of: nodes[handle.index].tick, from: elapsed)
      levels[level].update(slot) { nodes.unlink(handle.index, from: $0) }
    }
    release(handle.index)
    return true
  }

  /// Moves the present forward and makes what lies at or before it due. An earlier instant than
  /// that of the last call moves nothing. Amortised O(1) for each entry and level, whatever the
  /// length of the jump.
  package mutating func advance(to now: LinkInstant) {
    drain(overdue)
    overdue = .nothing
    let target = Self.tick(notAfter: now)
    guard target > elapsed else { return }
    while let next = nextSlot(), next.tick <= target {
      elapsed = next.tick
      var list = UInt32.nothing
      levels[next.level].update(next.slot) { tail in
        list = tail
        return .nothing
      }
      drain(list)
    }
    elapsed = target
  }

  /// Takes the next entry that is due: by tick, then by order of insertion. Nil when none is left.
  package mutating func popExpired() -> UInt64? {
    guard due != .nothing else { return nil }
    let first = nodes[due].next
    let key = nodes[first].key
    due = nodes.unlink(first, from: due)
    release(first)
    return key
  }

  /// Puts the entries of a detached list where they belong now, in their order: entries of one tick
  /// are always in one list, so that the order of insertion outlives every move.
  private mutating func drain(_ tail: UInt32) {
    guard tail != .nothing else { return }
    var index = nodes[tail].next
    while true {
      let next = nodes[index].next
      let tick = nodes[index].tick
      if tick <= elapsed {
        nodes[index].place = .due
        due = nodes.append(index, to: due)
      } else {
        place(index, tick: tick)
      }
      if index == tail { return }
      index = next
    }
  }

  private mutating func place(_ index: UInt32, tick: UInt64) {
    nodes[index].place = .wheel
    let (level, slot) = Self.position(of: tick, from: elapsed)
    while levels.count <= level { levels.append(Level()) }
    levels[level].update(slot, adding: tick) { nodes.append(index, to: $0) }
  }

  private mutating func release(_ index: UInt32) {
    nodes.release(index)
    count -= 1
  }

  private func nextSlot() -> (tick: UInt64, level: Int, slot: Int)? {
    guard let level = levels.firstIndex(where: { $0.occupied != 0 }) else { return nil }
    let slot = levels[level].occupied.trailingZeroBitCount
    let shift = level * 6
    let above = (elapsed >> (shift + 6)) << (shift + 6)
    return (above | (UInt64(slot) << shift), level, slot)
  }

  private static func position(of tick: UInt64, from elapsed: UInt64) -> (level: Int, slot: Int) {
    let level = (63 - (tick ^ elapsed).leadingZeroBitCount) / 6
    return (level, Int((tick >> (level * 6)) & 63))
  }

  // Ticks are biased so that they are positive for every instant; 45 bits hold the last of them.
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

extension TimingWheel {
  /// 64 slots, of which only the occupied ones take memory: a wheel of few timers is tiny.
  private struct Level: Equatable {
    /// The list of an occupied slot, and a tick before which none of it is due: the earliest one
    /// that was put there.
    struct Slot: Equatable {
      var tail: UInt32
      var earliest: UInt64
    }

    var occupied: UInt64 = 0
    /// The occupied slots, in their order.
    var slots: [Slot] = []

    func earliest(in slot: Int) -> UInt64 {
      slots[(occupied & ((UInt64(1) << slot) - 1)).nonzeroBitCount].earliest
    }

    /// Replaces the list of a slot by what `change` makes of it.
    mutating func update(
      _ slot: Int, adding tick: UInt64 = .max, _ change: (UInt32) -> UInt32
    ) {
      let bit = UInt64(1) << slot
      let rank = (occupied & (bit - 1)).nonzeroBitCount
      let wasOccupied = occupied & bit != 0
      let tail = change(wasOccupied ? slots[rank].tail : .nothing)
      switch (wasOccupied, tail != .nothing) {
      case (true, true):
        slots[rank].tail = tail
        slots[rank].earliest = min(slots[rank].earliest, tick)
      case (true, false):
        slots.remove(at: rank)
        occupied &= ~bit
      case (false, true):
        slots.insert(Slot(tail: tail, earliest: tick), at: rank)
        occupied |= bit
      case (false, false):
        break
      }
    }
  }

  private enum Place: UInt8 {
    case free, wheel, overdue, due
  }

  private struct Node: Equatable {
    var key: UInt64
    var tick: UInt64
    var next: UInt32
    var previous: UInt32
    var generation: UInt32
    var place: Place
  }

  /// The nodes of all lists in one array; free ones form a list of their own.
  private struct Slab: Equatable {
    private var storage: [Node] = []
    private var firstFree: UInt32 = .nothing

    var count: Int { storage.count }

    subscript(index: UInt32) -> Node {
      get { storage[Int(index)] }
      _modify { yield &storage[Int(index)] }
    }

    mutating func allocate(key: UInt64, tick: UInt64) -> UInt32 {
      guard firstFree != .nothing else {
        let index = UInt32(storage.count)
        storage.append(
          Node(key: key, tick: tick, next: index, previous: index, generation: 0, place: .wheel)
        )
        return index
      }
      let index = firstFree
      firstFree = self[index].next
      self[index].key = key
      self[index].tick = tick
      return index
    }

    mutating func release(_ index: UInt32) {
      self[index].place = .free
      self[index].generation &+= 1
      self[index].next = firstFree
      firstFree = index
    }

    /// Adds a node at the end of the ring that `tail` ends and returns the ring's new end.
    mutating func append(_ index: UInt32, to tail: UInt32) -> UInt32 {
      guard tail != .nothing else {
        self[index].next = index
        self[index].previous = index
        return index
      }
      let head = self[tail].next
      self[index].next = head
      self[index].previous = tail
      self[tail].next = index
      self[head].previous = index
      return index
    }

    /// Takes a node out of the ring that `tail` ends and returns the ring's new end.
    mutating func unlink(_ index: UInt32, from tail: UInt32) -> UInt32 {
      let (next, previous) = (self[index].next, self[index].previous)
      guard next != index else { return .nothing }
      self[previous].next = next
      self[next].previous = previous
      return index == tail ? previous : tail
    }
  }
}

extension UInt32 {
  /// The index of no node.
  fileprivate static var nothing: UInt32 { .max }
}
