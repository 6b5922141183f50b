/// Values by serial: open addressing with linear probing, at most half full.
///
/// Serials that follow one another fall into slots that follow one another, so that a look-up in
/// the usual case is one comparison. What stands together is in the order of its home slots (Robin
/// Hood hashing: Celis, 1986), so that taking one out moves only those that it had pushed on, be
/// the row behind it ever so long. A peer that picks its serials to collide costs at most a walk
/// over the requests that it may have at once. Serial 0 is reserved on the wire and marks a free
/// slot.
///
/// Public for other modules of the package alone, since only what is public and inlinable is
/// specialised across modules.
@_spi(Containers)
@frozen
public struct SerialTable<Value> {
  @usableFromInline var serials: [UInt32] = []
  @usableFromInline var values: [Value?] = []
  @usableFromInline var size = 0

  /// How many values there are.
  @inlinable public var count: Int { size }

  /// Makes an empty table, which allocates nothing.
  @inlinable public init() {}

  /// Whether there is no value.
  @inlinable public var isEmpty: Bool { count == 0 }
  /// Slots, free ones included.
  @inlinable public var capacity: Int { serials.count }

  @inlinable
  func slot(of serial: UInt32) -> Int? {
    guard count > 0, serial != 0 else { return nil }
    let mask = serials.count - 1
    var index = Int(serial) & mask
    while true {
      let found = serials[index]
      if found == serial { return index }
      if found == 0 { return nil }
      index = (index + 1) & mask
    }
  }

  /// Whether there is a value for `serial`.
  @inlinable
  public func contains(_ serial: UInt32) -> Bool {
    slot(of: serial) != nil
  }

  /// The value for `serial`; setting it where there is one replaces it.
  @inlinable
  public subscript(serial: UInt32) -> Value? {
    get {
      guard let slot = slot(of: serial) else { return nil }
      return values[slot]
    }
    set {
      guard let newValue else {
        remove(serial)
        return
      }
      if let slot = slot(of: serial) {
        values[slot] = newValue
      } else {
        insert(newValue, for: serial)
      }
    }
  }

  /// Adds a value for a serial that has none.
  @inlinable
  public mutating func insert(_ value: consuming Value, for serial: UInt32) {
    precondition(serial != 0, "serial 0 is reserved")
    if (count + 1) * 2 > serials.count { grow() }
    let mask = serials.count - 1
    var index = Int(serial) & mask
    guard serials[index] != 0 else {
      serials[index] = serial
      values[index] = value
      size += 1
      return
    }
    var (serial, distance) = (serial, 0)
    var moved = Optional(value)
    while serials[index] != 0 {
      // Who is nearer to its home makes room.
      let other = (index &- Int(serials[index])) & mask
      if other < distance {
        swap(&serial, &serials[index])
        swap(&moved, &values[index])
        distance = other
      }
      index = (index + 1) & mask
      distance += 1
    }
    serials[index] = serial
    values[index] = moved
    size += 1
  }

  /// Changes the value for `serial` in place; nil when there is none.
  @inlinable
  public mutating func update<Result>(
    _ serial: UInt32, _ change: (inout Value) -> Result
  ) -> Result? {
    guard let slot = slot(of: serial) else { return nil }
    return change(&values[slot]!)
  }

  /// Takes the value for `serial` out.
  @inlinable
  @discardableResult
  public mutating func remove(_ serial: UInt32) -> Value? {
    guard var hole = slot(of: serial) else { return nil }
    let removed = values[hole].take()
    let mask = serials.count - 1
    // Those that stand away from home move up, until a gap or one that is at home.
    var next = (hole + 1) & mask
    while serials[next] != 0, (next &- Int(serials[next])) & mask != 0 {
      serials[hole] = serials[next]
      values[hole] = values[next].take()
      hole = next
      next = (next + 1) & mask
    }
    serials[hole] = 0
    size -= 1
    return removed
  }

  /// The serials that have values, in no order that may reach an effect unsorted.
  @inlinable public var keys: [UInt32] { serials.filter { $0 != 0 } }

  /// Gives memory back when nothing is left in a table that had grown.
  @inlinable
  public mutating func releaseStorage(over slots: Int) {
    if isEmpty, serials.count > slots {
      serials = []
      values = []
    }
  }

  @inlinable
  mutating func grow() {
    let slots = max(16, serials.count * 2)
    var old = self
    serials = Array(repeating: 0, count: slots)
    values = Array(repeating: nil, count: slots)
    size = 0
    for index in old.serials.indices where old.serials[index] != 0 {
      insert(old.values[index].take()!, for: old.serials[index])
    }
  }
}

@_spi(Containers)
extension SerialTable: Equatable where Value: Equatable {
  /// Whether both have equal values for the same serials.
  @inlinable
  public static func == (lhs: SerialTable, rhs: SerialTable) -> Bool {
    lhs.count == rhs.count && lhs.keys.allSatisfy { lhs[$0] == rhs[$0] }
  }
}

@_spi(Containers)
extension SerialTable: Sendable where Value: Sendable {}
