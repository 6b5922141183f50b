// SPDX-License-Identifier: Apache-2.0

/// The entries of a timing wheel, in linked lists.
///
/// A list is a ring with a sentinel node, so that an entry can be removed without access to the
/// list's slot. The first two nodes are permanent lists. Free nodes form a chain.
@safe struct TimerNodes: ~Copyable {
  struct Node {
    /// The caller's key, for an entry; the wheel's data, for a list.
    var key: UInt64
    var tick: UInt64
    var next: UInt32
    var previous: UInt32
    /// How often the node was released.
    var generation: UInt32
  }

  // The nodes below `count` are initialized.
  private var storage: UnsafeMutablePointer<Node>?
  private var capacity = 0
  private(set) var count: UInt32 = 0
  private var firstFree = UInt32.max

  /// Makes a pool without lists, without allocating.
  init() { unsafe storage = nil }

  deinit { unsafe storage?.deallocate() }

  subscript(index: UInt32) -> Node {
    @inline(__always) unsafeAddress {
      precondition(index < count)
      return unsafe UnsafePointer(storage! + Int(index))
    }
    @inline(__always) unsafeMutableAddress {
      precondition(index < count)
      return unsafe storage! + Int(index)
    }
  }

  /// Whether a list is empty.
  func isEmpty(_ list: UInt32) -> Bool { self[list].next == list }

  /// Returns a node for an entry or a list.
  mutating func allocate(key: UInt64, tick: UInt64) -> UInt32 {
    guard firstFree != .max else { return append(key: key, tick: tick) }
    let index = firstFree
    firstFree = self[index].next
    self[index].key = key
    self[index].tick = tick
    return index
  }

  /// Frees a node that is in no list; its handles are now stale.
  mutating func release(_ index: UInt32) {
    self[index].generation &+= 1
    self[index].next = firstFree
    firstFree = index
  }

  /// Makes a node the sentinel of an empty list.
  mutating func empty(_ list: UInt32) {
    self[list].next = list
    self[list].previous = list
  }

  /// Adds a node at the end of a list.
  mutating func append(_ index: UInt32, to list: UInt32) {
    guard let storage = unsafe storage, max(index, list) < count else { preconditionFailure() }
    // The links of a list's nodes are valid indices.
    let last = unsafe storage[Int(list)].previous
    unsafe storage[Int(index)].next = list
    unsafe storage[Int(index)].previous = last
    unsafe storage[Int(last)].next = index
    unsafe storage[Int(list)].previous = index
  }

  /// Removes a node from its list. Returns true if it was the only one; its `next` is then the
  /// list.
  mutating func unlink(_ index: UInt32) -> Bool {
    guard let storage = unsafe storage, index < count else { preconditionFailure() }
    // The links of a list's nodes are valid indices.
    let (next, previous) = unsafe (storage[Int(index)].next, storage[Int(index)].previous)
    unsafe storage[Int(previous)].next = next
    unsafe storage[Int(next)].previous = previous
    return next == previous
  }

  private mutating func append(key: UInt64, tick: UInt64) -> UInt32 {
    if Int(count) + 2 >= capacity { grow() }
    // The first allocation also makes the two permanent lists.
    while count < 2 {
      add(Node(key: 0, tick: 0, next: count, previous: count, generation: 0))
    }
    let index = count
    add(Node(key: key, tick: tick, next: index, previous: index, generation: 0))
    return index
  }

  private mutating func add(_ node: Node) {
    unsafe (storage! + Int(count)).initialize(to: node)
    count += 1
  }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<Node>.allocate(capacity: max(8, capacity * 2))
    if let storage = unsafe storage {
      unsafe larger.moveInitialize(from: storage, count: Int(count))
      unsafe storage.deallocate()
    }
    unsafe storage = larger
    capacity = max(8, capacity * 2)
  }
}

/// The levels of a timing wheel: which slots are occupied, and by which lists.
///
/// A level has 64 slots, of which only the occupied ones take memory, so that a wheel with few
/// timers is tiny.
@safe struct TimerLevels: ~Copyable {
  @safe private struct Level {
    var occupied: UInt64 = 0
    // The lists of the occupied slots, in order, with room for `capacity`.
    var lists: UnsafeMutablePointer<UInt32>?
    var capacity = 0

    init() { unsafe lists = nil }
  }

  private var levels: UnsafeMutablePointer<Level>?
  private var count = 0

  /// Makes levels without slots, without allocating.
  init() { unsafe levels = nil }

  deinit {
    for level in 0..<count { unsafe levels![level].lists?.deallocate() }
    unsafe levels?.deallocate()
  }

  /// The first occupied slot of the first occupied level, whose entries are due first.
  var first: (level: Int, slot: Int, list: UInt32)? {
    for level in 0..<count {
      // The list of the first occupied slot is the first in the array.
      let occupied = unsafe levels![level].occupied
      if occupied != 0 {
        return (level, occupied.trailingZeroBitCount, unsafe levels![level].lists![0])
      }
    }
    return nil
  }

  /// The list of a slot; nil if the slot is not occupied.
  @inline(__always)
  func list(_ level: Int, _ slot: Int) -> UInt32? {
    guard level < count else { return nil }
    let occupied = unsafe levels![level].occupied
    let bit = UInt64(1) << slot
    guard occupied & bit != 0 else { return nil }
    // Its index is the number of occupied slots below it.
    return unsafe levels![level].lists![(occupied & (bit - 1)).nonzeroBitCount]
  }

  /// Gives a list to a slot that has none.
  mutating func occupy(_ level: Int, _ slot: Int, with list: UInt32) {
    if level >= count { addLevels(level + 1) }
    let occupied = unsafe levels![level].occupied
    let size = occupied.nonzeroBitCount
    if unsafe size == levels![level].capacity { addRoom(level) }
    let rank = (occupied & ((UInt64(1) << slot) - 1)).nonzeroBitCount
    // There is room for one more; both ranges lie within it.
    let place = unsafe levels![level].lists! + rank
    unsafe (place + 1).update(from: place, count: size - rank)
    unsafe place.pointee = list
    unsafe levels![level].occupied = occupied | UInt64(1) << slot
  }

  /// Removes the list of an occupied slot.
  mutating func vacate(_ level: Int, _ slot: Int) {
    let occupied = unsafe levels![level].occupied
    let rank = (occupied & ((UInt64(1) << slot) - 1)).nonzeroBitCount
    let place = unsafe levels![level].lists! + rank
    unsafe place.update(from: place + 1, count: occupied.nonzeroBitCount - rank - 1)
    unsafe levels![level].occupied = occupied & ~(UInt64(1) << slot)
  }

  private mutating func addLevels(_ needed: Int) {
    let larger = UnsafeMutablePointer<Level>.allocate(capacity: needed)
    if let levels = unsafe levels {
      unsafe larger.moveInitialize(from: levels, count: count)
      unsafe levels.deallocate()
    }
    for level in count..<needed { unsafe (larger + level).initialize(to: Level()) }
    unsafe levels = larger
    count = needed
  }

  private mutating func addRoom(_ level: Int) {
    let former = unsafe levels![level].capacity
    let capacity = max(4, former * 2)
    let larger = UnsafeMutablePointer<UInt32>.allocate(capacity: capacity)
    unsafe larger.initialize(repeating: 0, count: capacity)
    if let lists = unsafe levels![level].lists {
      unsafe larger.update(from: lists, count: former)
      unsafe lists.deallocate()
    }
    unsafe levels![level].lists = larger
    unsafe levels![level].capacity = capacity
  }
}
