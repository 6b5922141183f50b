// SPDX-License-Identifier: Apache-2.0

/// A hash table of values by serial, with open addressing and linear probing, at most half full.
///
/// Consecutive serials fall into consecutive slots, so that a look-up is usually one comparison.
/// Entries of a cluster are in the order of their home slots (Robin Hood hashing: Celis, 1986), so
/// that a removal moves only displaced entries, however long the cluster is. Serial 0 is reserved
/// on the wire and marks a free slot.
///
/// A table of serials that a peer picks needs a secret `mix`: home slots are then the high bits of
/// a product (multiply-shift hashing: Dietzfelbinger and others, 1997), so that a peer cannot pick
/// serials that collide.
///
/// It is public only for other modules of the package, because only public inlinable code is
/// specialised across modules.
@safe
@usableFromInline package struct SerialTable<Value>: ~Copyable {
  // The table owns the memory: `slots` serials and `slots` values. A value is initialized if its
  // serial is not 0. The mask keeps every index below `slots`, a power of two.
  @usableFromInline var serials: UnsafeMutablePointer<UInt32>?
  @usableFromInline var values: UnsafeMutablePointer<Value>?
  @usableFromInline var slots = 0
  @usableFromInline var size = 0
  /// 1 without a secret: then `shift` is 0, and a serial's low bits are its home slot.
  @usableFromInline let multiplier: UInt32
  @usableFromInline var shift: UInt32 = 0

  /// The number of values.
  @inlinable package var count: Int { size }

  /// Makes an empty table without allocating.
  ///
  /// A `mix` other than 0 spreads serials by multiplication.
  @inlinable package init(mix: UInt32 = 0) {
    unsafe serials = nil
    unsafe values = nil
    multiplier = mix == 0 ? 1 : mix | 1
  }

  /// The home slot of a serial.
  @inlinable @inline(__always)
  func home(of serial: UInt32) -> Int {
    Int((serial &* multiplier) &>> shift) & (slots &- 1)
  }

  @inlinable deinit { free() }

  /// Whether there is no value.
  @inlinable package var isEmpty: Bool { size == 0 }
  /// The number of slots, including free ones.
  @inlinable package var capacity: Int { slots }

  /// Returns the slot of the value for `serial`, valid until the next insertion or removal.
  @inlinable @inline(__always)
  package func slot(of serial: UInt32) -> Int? {
    guard size > 0, serial != 0, let serials = unsafe serials else { return nil }
    let mask = slots &- 1
    var index = home(of: serial)
    while true {
      let found = unsafe serials[index]
      if found == serial { return index }
      if found == 0 { return nil }
      index = (index &+ 1) & mask
    }
  }

  /// The value in a slot returned by `slot(of:)`.
  @inlinable package subscript(slot slot: Int) -> Value {
    @inline(__always) unsafeAddress {
      precondition(slot < slots)
      return unsafe UnsafePointer(values! + slot)
    }
    @inline(__always) unsafeMutableAddress {
      precondition(slot < slots)
      return unsafe values! + slot
    }
  }

  /// Whether there is a value for `serial`.
  @inlinable
  package func contains(_ serial: UInt32) -> Bool {
    slot(of: serial) != nil
  }

  /// The value for `serial`. Setting it adds or replaces the value.
  @inlinable
  package subscript(serial: UInt32) -> Value? {
    get {
      guard let slot = slot(of: serial) else { return nil }
      return self[slot: slot]
    }
    set {
      guard let newValue else {
        remove(serial)
        return
      }
      if let slot = slot(of: serial) {
        self[slot: slot] = newValue
      } else {
        insert(newValue, for: serial)
      }
    }
  }

  /// Adds a value for a serial that has no value.
  @inlinable @inline(__always)
  package mutating func insert(_ value: consuming Value, for serial: UInt32) {
    precondition(serial != 0, "serial 0 is reserved")
    assert(slot(of: serial) == nil, "the serial has a value")
    if (size &+ 1) &* 2 > slots { grow() }
    let index = home(of: serial)
    size &+= 1
    // `grow` has allocated memory if there was none.
    guard unsafe serials![index] != 0 else {
      unsafe serials![index] = serial
      unsafe (values! + index).initialize(to: consume value)
      return
    }
    insertPushing(consume value, for: serial, from: index)
  }

  /// Adds a value whose home slot is taken: entries nearer to their home slots make room.
  @inlinable
  mutating func insertPushing(
    _ value: consuming Value, for newSerial: UInt32, from home: Int
  ) {
    guard let serials = unsafe serials, let values = unsafe values else { return }
    let mask = slots &- 1
    var serial = newSerial
    var moved = value
    var (index, distance) = (home, 0)
    while unsafe serials[index] != 0 {
      let other = unsafe (index &- self.home(of: serials[index])) & mask
      if other < distance {
        unsafe swap(&serial, &serials[index])
        unsafe swap(&moved, &values[index])
        distance = other
      }
      index = (index &+ 1) & mask
      distance += 1
    }
    unsafe serials[index] = serial
    unsafe (values + index).initialize(to: moved)
  }

  /// Changes the value for `serial` in place; returns nil if there is none.
  @inlinable
  package mutating func update<Result>(
    _ serial: UInt32, _ change: (inout Value) -> Result
  ) -> Result? {
    guard let slot = slot(of: serial) else { return nil }
    return change(&self[slot: slot])
  }

  /// Removes and returns the value for `serial`.
  @inlinable
  @discardableResult
  package mutating func remove(_ serial: UInt32) -> Value? {
    guard let slot = slot(of: serial) else { return nil }
    return remove(slot: slot)
  }

  /// Removes and returns the value in a slot returned by `slot(of:)`.
  @inlinable @inline(__always)
  @discardableResult
  package mutating func remove(slot: Int) -> Value {
    precondition(slot < slots)
    guard let serials = unsafe serials, let values = unsafe values, unsafe serials[slot] != 0
    else { preconditionFailure("there is nothing in the slot") }
    let removed = unsafe (values + slot).move()
    unsafe serials[slot] = 0
    size &-= 1
    let next = (slot &+ 1) & (slots &- 1)
    if unsafe serials[next] != 0, unsafe home(of: serials[next]) != next { fill(slot) }
    return removed
  }

  /// Moves displaced entries up into a hole, until a free slot or an entry in its home slot.
  @inlinable @inline(never)
  mutating func fill(_ slot: Int) {
    guard let serials = unsafe serials, let values = unsafe values else { return }
    let mask = slots &- 1
    var hole = slot
    var next = (hole &+ 1) & mask
    while unsafe serials[next] != 0, unsafe (next &- home(of: serials[next])) & mask != 0 {
      unsafe serials[hole] = serials[next]
      unsafe (values + hole).moveInitialize(from: values + next, count: 1)
      hole = next
      next = (next &+ 1) & mask
    }
    unsafe serials[hole] = 0
  }

  /// The serials that have values, in arbitrary order: sort them before they affect any output.
  @inlinable package var keys: [UInt32] {
    var keys: [UInt32] = []
    keys.reserveCapacity(size)
    for index in 0..<slots {
      let serial = unsafe serials![index]
      if serial != 0 { keys.append(serial) }
    }
    return keys
  }

  /// Returns a table with the same values.
  @inlinable package func copy() -> SerialTable {
    var other = SerialTable(mix: multiplier == 1 ? 0 : multiplier)
    for serial in keys { other[serial] = self[serial] }
    return other
  }

  /// Removes all values and frees the memory.
  @inlinable package mutating func removeAll() {
    free()
    unsafe serials = nil
    unsafe values = nil
    (slots, size) = (0, 0)
  }

  /// Frees the memory of an empty table that had grown beyond this number of slots.
  @inlinable
  package mutating func releaseStorage(over slots: Int) {
    if isEmpty, capacity > slots { removeAll() }
  }

  /// Deinitializes all values and frees the memory.
  @inlinable
  func free() {
    guard let serials = unsafe serials, let values = unsafe values else { return }
    if size > 0 {
      for index in 0..<slots where unsafe serials[index] != 0 {
        unsafe (values + index).deinitialize(count: 1)
      }
    }
    unsafe serials.deallocate()
    unsafe values.deallocate()
  }

  @inlinable @inline(never)
  mutating func grow() {
    let (oldSerials, oldValues, oldSlots) = unsafe (serials, values, slots)
    slots = max(16, oldSlots * 2)
    if multiplier != 1 { shift = UInt32(32 - slots.trailingZeroBitCount) }
    unsafe serials = .allocate(capacity: slots)
    unsafe serials!.initialize(repeating: 0, count: slots)
    unsafe values = .allocate(capacity: slots)
    size = 0
    guard let oldSerials = unsafe oldSerials, let oldValues = unsafe oldValues else { return }
    for index in 0..<oldSlots where unsafe oldSerials[index] != 0 {
      insert(unsafe (oldValues + index).move(), for: unsafe oldSerials[index])
    }
    unsafe oldSerials.deallocate()
    unsafe oldValues.deallocate()
  }
}

// The table is the only owner of its memory, and cannot be copied.
extension SerialTable: @unchecked Sendable where Value: Sendable {}
