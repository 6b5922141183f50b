// SPDX-License-Identifier: Apache-2.0

/// The messages of one outbox that are not encoded yet, or not to their end, and whose turn it is.
///
/// The most urgent goes first; among equally urgent ones those that go in one piece before those
/// that go in fragments, and otherwise the earlier one. What goes in fragments takes turns with its
/// equals, fragment by fragment. Pushes share a serial, so that one which has begun is finished
/// before another begins; meanwhile it is as urgent as the most urgent one behind it.
///
/// Nothing starves: the message that waits longest has a piece encoded at the latest when
/// `patience` bytes of others have passed it, whatever its priority. Adding, taking and removing
/// cost O(log n).
struct Backlog: ~Copyable {
  /// A message with what is left of it.
  struct Message: Equatable, Sendable {
    let head: FrameHead
    let body: [UInt8]
    let priority: UInt32
    /// Whether it goes in fragments.
    let isLarge: Bool
    /// Bytes of the body that have been encoded.
    var sent = 0
    fileprivate var turn: UInt64
    /// Its handle in its lane; nil for the push that has begun.
    fileprivate var position: UInt32?
    fileprivate var age: UInt32

    /// Bytes that still wait, the header's included.
    func waiting(headerLength: Int) -> Int { headerLength + body.count - sent }
  }

  /// Whose piece is to be encoded next.
  struct Next: Equatable, Sendable {
    let slot: Int
    /// Whether it goes in fragments.
    let isLarge: Bool
    /// Whether so much has passed it that it must not wait any longer.
    let isOverdue: Bool
  }

  private struct Position: Comparable, Sendable {
    var priority: UInt32
    var turn: UInt64
    var slot: Int

    static func < (lhs: Position, rhs: Position) -> Bool {
      lhs.priority == rhs.priority ? lhs.turn < rhs.turn : lhs.priority > rhs.priority
    }
  }

  private struct Age: Comparable, Sendable {
    var arrival: UInt64
    var slot: Int

    static func < (lhs: Age, rhs: Age) -> Bool { lhs.arrival < rhs.arrival }
  }

  /// How many bytes may pass the message that waits longest: seven fragments.
  static let patience = 7 * Wire.fragmentLimit

  private let headerLength: Int
  private var messages: [Message?] = []
  private var free: [Int] = []
  /// Where requests and responses are; their serials differ in the bit of the role.
  private var slots: SerialTable<Int>
  private var small = IndexedHeap<Position>()
  private var large = IndexedHeap<Position>()
  private var pushes = IndexedHeap<Position>()
  private var begunPush: Int?
  private var ages = IndexedHeap<Age>()
  private var nextTurn: UInt64 = 0
  /// Bytes of others that were encoded since the message that waits longest last had its turn.
  private var passed = 0
  /// How many messages there are.
  private(set) var count = 0
  /// Bytes that wait, headers included.
  private(set) var bytes = 0
  /// Those of them that go in fragments.
  private(set) var largeBytes = 0

  private let serialMix: UInt32

  init(headerLength: Int, serialMix: UInt32) {
    self.headerLength = headerLength
    self.serialMix = serialMix
    slots = SerialTable(mix: serialMix)
  }

  var isEmpty: Bool { count == 0 }
  /// Whether a message that goes in one piece waits, pushes aside.
  var holdsSmall: Bool { !small.isEmpty }

  /// Whether a message that goes in one piece has to stand behind one of these.
  func precedes(_ kind: FrameKind, _ priority: UInt32) -> Bool {
    if let first = small.first, first.priority >= priority { return true }
    if kind == .push, begunPush != nil { return true }
    guard begunPush == nil, let first = pushes.first, first.priority >= priority else {
      return false
    }
    return kind == .push || messages[first.slot]?.isLarge == false
  }

  /// Notes that a message was encoded past all of these.
  @inline(__always)
  mutating func wasPassed(by count: Int) {
    if !isEmpty { passed += count }
  }
}

// MARK: - In and out

extension Backlog {
  mutating func insert(_ head: FrameHead, _ body: [UInt8], priority: UInt32, isLarge: Bool) {
    let slot = free.popLast() ?? messages.count
    if slot == messages.count { messages.append(nil) }
    let turn = takeTurn()
    let position = Position(priority: priority, turn: turn, slot: slot)
    let handle: UInt32
    if head.kind == .push {
      handle = pushes.insert(position)
    } else {
      precondition(!slots.contains(head.serial), "the serial is in use")
      slots.insert(slot, for: head.serial)
      handle = isLarge ? large.insert(position) : small.insert(position)
    }
    let message = Message(
      head: head, body: body, priority: priority, isLarge: isLarge, turn: turn, position: handle,
      age: ages.insert(Age(arrival: turn, slot: slot)))
    messages[slot] = message
    count += 1
    add(message.waiting(headerLength: headerLength), isLarge: isLarge)
  }

  private mutating func add(_ count: Int, isLarge: Bool) {
    bytes += count
    if isLarge { largeBytes += count }
  }

  private mutating func takeTurn() -> UInt64 {
    defer { nextTurn += 1 }
    return nextTurn
  }

  /// Takes a request or response out.
  mutating func remove(_ kind: FrameKind, serial: UInt32) -> Message? {
    guard kind != .push, let slot = slots[serial], let message = messages[slot],
      message.head.kind == kind
    else { return nil }
    remove(slot, message)
    return message
  }

  private mutating func remove(_ slot: Int, _ message: Message) {
    leaveLane(message)
    if begunPush == slot { begunPush = nil }
    if message.head.kind != .push { slots.remove(message.head.serial) }
    if ages.first?.slot == slot { passed = 0 }
    ages.remove(message.age)
    count -= 1
    add(-message.waiting(headerLength: headerLength), isLarge: message.isLarge)
    messages[slot] = nil
    free.append(slot)
    guard isEmpty else { return }
    // What very many took is given back.
    let keepsMemory = messages.count <= 1024
    messages.removeAll(keepingCapacity: keepsMemory)
    free.removeAll(keepingCapacity: keepsMemory)
    nextTurn = 0
    passed = 0
  }

  private mutating func leaveLane(_ message: Message) {
    guard let position = message.position else { return }
    if message.head.kind == .push {
      pushes.remove(position)
    } else if message.isLarge {
      large.remove(position)
    } else {
      small.remove(position)
    }
  }

  mutating func removeAll() {
    self = Backlog(headerLength: headerLength, serialMix: serialMix)
  }

  /// Gives memory back when nothing is left of very many.
  mutating func releaseStorage() {
    if isEmpty, messages.capacity > 16 { removeAll() }
  }
}

// MARK: - Whose turn it is

extension Backlog {
  subscript(slot: Int) -> Message {
    guard let message = messages[slot] else { preconditionFailure("the message has left") }
    return message
  }

  /// Whose piece is to be encoded next; nil when nothing waits.
  func next() -> Next? {
    if passed >= Backlog.patience, let oldest = ages.first {
      let isPush = self[oldest.slot].head.kind == .push
      let slot = isPush ? begunPush ?? oldest.slot : oldest.slot
      return Next(slot: slot, isLarge: self[slot].isLarge, isOverdue: true)
    }
    var best: (position: Position, isLarge: Bool)?
    for candidate in [candidate(small.first), candidate(large.first), pushCandidate] {
      guard let candidate else { continue }
      if best.map({ goesBefore(candidate, $0) }) ?? true { best = candidate }
    }
    return best.map { Next(slot: $0.position.slot, isLarge: $0.isLarge, isOverdue: false) }
  }

  private func candidate(_ position: Position?) -> (position: Position, isLarge: Bool)? {
    position.map { ($0, self[$0.slot].isLarge) }
  }

  private var pushCandidate: (position: Position, isLarge: Bool)? {
    guard let begunPush else { return candidate(pushes.first) }
    let message = self[begunPush]
    let priority = max(message.priority, pushes.first?.priority ?? 0)
    return (Position(priority: priority, turn: message.turn, slot: begunPush), message.isLarge)
  }

  private func goesBefore(
    _ lhs: (position: Position, isLarge: Bool), _ rhs: (position: Position, isLarge: Bool)
  ) -> Bool {
    if lhs.position.priority == rhs.position.priority, lhs.isLarge != rhs.isLarge {
      return rhs.isLarge
    }
    return lhs.position < rhs.position
  }

  /// Tells that a fragment of a message has been encoded, and more is to follow.
  mutating func encoded(_ count: Int, of slot: Int) {
    var message = self[slot]
    leaveLane(message)
    message.sent += count
    message.turn = takeTurn()
    if message.head.kind == .push {
      message.position = nil
      begunPush = slot
    } else {
      let position = Position(priority: message.priority, turn: message.turn, slot: slot)
      message.position = large.insert(position)
    }
    messages[slot] = message
    add(-count, isLarge: true)
    if ages.first?.slot == slot { passed = 0 } else { passed += count }
  }

  /// Tells that a message has been encoded to its end.
  mutating func finished(_ slot: Int) {
    let message = self[slot]
    // Where it is not the oldest, it has passed the one that is.
    passed += message.waiting(headerLength: headerLength)
    remove(slot, message)
  }
}
