// SPDX-License-Identifier: Apache-2.0

/// The scheduler for the messages of one outbox that are not yet encoded, or not completely.
///
/// The most urgent message is first. Among equal priorities, whole messages precede fragmented
/// ones, and otherwise the earlier message is first. Fragmented messages of equal priority take
/// turns, fragment by fragment. All pushes share a serial, so a push that has begun is finished
/// before another begins; meanwhile it inherits the priority of the most urgent push behind it.
///
/// Nothing starves: a piece of the oldest message is encoded at the latest after `patience` bytes
/// of other messages, whatever its priority. Adding, taking and removing cost O(log n).
struct Backlog: ~Copyable {
  /// A waiting message.
  struct Message: Equatable, Sendable {
    let head: FrameHead
    let body: [UInt8]
    let priority: UInt32
    /// Whether the message is sent in fragments.
    let isLarge: Bool
    /// The index in the body of the next byte to encode.
    var sent = 0
    /// The index in the body behind the last byte to encode.
    let end: Int
    fileprivate var turn: UInt64
    /// The message's handle in its heap; nil for the push that has begun.
    fileprivate var position: UInt32?
    fileprivate var age: UInt32

    /// The number of bytes still waiting, including the header.
    func waiting(headerLength: Int) -> Int { headerLength + end - sent }
  }

  /// The message whose next piece should be encoded.
  struct Next: Equatable, Sendable {
    let slot: Int
    /// Whether the message is sent in fragments.
    let isLarge: Bool
    /// Whether the message is due because `patience` bytes of others have passed it.
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

  /// The number of bytes that can pass the oldest message: seven fragments.
  static let patience = 7 * Wire.fragmentLimit

  /// What a message costs beside its bytes: its entry, its places in two heaps and a table, which
  /// grow by half more, and the array of its body. Of small messages that is most of it.
  static let overhead = 256

  private let headerLength: Int
  private var messages: [Message?] = []
  private var free: [Int] = []
  /// The slots of requests and responses; their serials differ in the role's bit.
  private var slots: SerialTable<Int>
  private var small = IndexedHeap<Position>()
  private var large = IndexedHeap<Position>()
  private var pushes = IndexedHeap<Position>()
  private var begunPush: Int?
  private var ages = IndexedHeap<Age>()
  private var nextTurn: UInt64 = 0
  /// The number of bytes of others that were encoded since the oldest message last had its turn.
  private var passed = 0
  /// The number of messages.
  private(set) var count = 0
  /// The number of waiting bytes, including headers. Without items: they are the application's,
  /// which waits with each of them.
  private(set) var bytes = 0
  /// The waiting bytes of fragmented messages.
  private(set) var largeBytes = 0

  /// The number of items in `small`.
  private var smallItems = 0

  private let serialMix: UInt32

  init(headerLength: Int, serialMix: UInt32) {
    self.headerLength = headerLength
    self.serialMix = serialMix
    slots = SerialTable(mix: serialMix)
  }

  var isEmpty: Bool { count == 0 }
  /// Whether a message other than a push waits with this serial.
  func holds(_ serial: UInt32) -> Bool { slots.contains(serial) }
  /// Whether a message that is not fragmented waits, other than a push or an item.
  var holdsSmall: Bool { small.count > smallItems }

  /// Whether a new message that is not fragmented must wait behind one of these.
  func precedes(_ kind: FrameKind, _ priority: UInt32) -> Bool {
    if let first = small.first, first.priority >= priority { return true }
    if kind == .push, begunPush != nil { return true }
    guard begunPush == nil, let first = pushes.first, first.priority >= priority else {
      return false
    }
    return kind == .push || messages[first.slot]?.isLarge == false
  }

  /// Notes that a message was encoded ahead of all of these.
  @inline(__always)
  mutating func wasPassed(by count: Int) {
    if !isEmpty { passed += count }
  }
}

// MARK: - Adding and removing

extension Backlog {
  mutating func insert(
    _ head: FrameHead, _ body: [UInt8], from start: Int = 0, priority: UInt32, isLarge: Bool
  ) {
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
      if head.kind == .item, !isLarge { smallItems += 1 }
    }
    let message = Message(
      head: head, body: body, priority: priority, isLarge: isLarge, sent: start,
      end: start + head.length, turn: turn, position: handle,
      age: ages.insert(Age(arrival: turn, slot: slot)))
    messages[slot] = message
    count += 1
    add(message.waiting(headerLength: headerLength), of: message)
  }

  private mutating func add(_ count: Int, of message: Message) {
    guard message.head.kind != .item else { return }
    bytes += count
    if message.isLarge { largeBytes += count }
  }

  private mutating func takeTurn() -> UInt64 {
    defer { nextTurn += 1 }
    return nextTurn
  }

  /// Removes a request or response.
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
    add(-message.waiting(headerLength: headerLength), of: message)
    messages[slot] = nil
    free.append(slot)
    guard isEmpty else { return }
    // Frees the memory if there were very many.
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
      if message.head.kind == .item { smallItems -= 1 }
    }
  }

  mutating func removeAll() {
    self = Backlog(headerLength: headerLength, serialMix: serialMix)
  }

  /// Frees memory if nothing waits and there were many.
  mutating func releaseStorage() {
    if isEmpty, messages.capacity > 16 { removeAll() }
  }
}

// MARK: - Choosing the next message

extension Backlog {
  subscript(slot: Int) -> Message {
    guard let message = messages[slot] else { preconditionFailure("the message has left") }
    return message
  }

  /// Returns the message whose next piece should be encoded; nil if nothing waits.
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

  /// Notes that a fragment of a message has been encoded, and more follow.
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
    add(-count, of: message)
    if ages.first?.slot == slot { passed = 0 } else { passed += count }
  }

  /// Notes that a message has been encoded completely.
  mutating func finished(_ slot: Int) {
    let message = self[slot]
    // Unless it is the oldest, it has passed the oldest. `remove` resets the count otherwise.
    passed += message.waiting(headerLength: headerLength)
    remove(slot, message)
  }
}
