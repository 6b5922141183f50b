// SPDX-License-Identifier: Apache-2.0

/// Names one request of this side for as long as the process runs.
package struct RequestID: Hashable, Comparable, Sendable {
  /// The serial on the wire.
  package let serial: UInt32
  /// Counts the requests from 1 on: it tells serials apart after a wrap.
  package let number: UInt64

  package init(serial: UInt32, number: UInt64) {
    self.serial = serial
    self.number = number
  }

  /// Names no request, nor ever will.
  package static let none = RequestID(serial: 0, number: 0)

  /// Orders requests by their creation.
  package static func < (lhs: RequestID, rhs: RequestID) -> Bool { lhs.number < rhs.number }
}

/// The requests of one side that have not ended: serials, deadlines, on which link each one is, and
/// which of those that wait goes next.
///
/// A request is registered when it is created, so that an early failure, a cancel or a late reply
/// always finds it; it leaves exactly once. Bodies and continuations are the driver's.
package struct RequestTable: ~Copyable {
  /// What is known of one request.
  package struct Entry: Equatable, Sendable {
    package let number: UInt64
    /// The link that carries it; 0 while none does.
    package fileprivate(set) var link: UInt32 = 0
    package let notifiesCancel: Bool
    /// Whether the peer was told the time that remained when the request was placed on its link.
    package fileprivate(set) var isTimeTold = false
    /// Whether it keeps its place among the others of its kind.
    package let isOrdered: Bool
    /// Whether it has a deadline.
    fileprivate let expires: Bool
    /// What may have come of its earlier sendings, all together.
    package fileprivate(set) var past = Delivery.notSent
    /// How often it has left and come back.
    package fileprivate(set) var returns: UInt8 = 0
    /// Where it stands in the link's stream.
    package fileprivate(set) var placement = StreamPosition.keptBack
    var timer = TimingWheel.Handle.none

    /// What may have come of the present sending, when the link has written so much.
    package func delivery(written: UInt64) -> Delivery {
      guard let begin = placement.begin else { return .notSent }
      return begin < written ? .sent : .notSent
    }
  }

  private struct Load: Equatable {
    let link: UInt32
    var count: Int
  }

  /// The serials that are handed out in turn.
  private let serials: ClosedRange<UInt32>
  private let anchor = Anchor()
  private var nextSerial: UInt32
  /// How many requests there may be at once: half of the serials.
  private let mostAtOnce: Int
  /// The serials that are not handed out again yet; none where there are so many of them that none
  /// comes round in the lifetime of a late answer.
  private var resting = OwedAnswers()
  private let lacksSerials: Bool
  private var created: UInt64 = 0
  var entries = SerialTable<Entry>()
  /// The deadlines of requests that are not young any more, and the times that others wait for.
  var wheel = TimingWheel(now: LinkInstant(nanoseconds: 0))
  var young = YoungDeadlines()
  /// How many requests the link carries that was first given one last.
  private var newest = Load(link: 0, count: 0)
  /// How many each older link carries that carries any.
  private var loads: [Load] = []
  /// The present serials of requests that got another one, by number.
  private var renewed: [UInt64: UInt32] = [:]

  // Waiting
  var waits = SerialTable<Wait>()
  /// Those that may leave at once, the most urgent first; ordered ones are in the lane.
  var ready = IndexedHeap<QueuePosition>()
  /// The same with bodies that go in fragments, which a link may not take while it takes others.
  var readyLarge = IndexedHeap<QueuePosition>()
  var lane = OrderedLane()
  /// The bytes of all that wait.
  package internal(set) var waitingBytes = 0

  /// Requests that have not ended.
  package var count: Int { entries.count }

  /// Makes an empty table; the first request gets the first serial, or the next free one after it.
  package init(serials: ClosedRange<UInt32>, first: UInt32? = nil) {
    precondition(serials.lowerBound > 0 && serials.contains(first ?? serials.lowerBound))
    self.serials = serials
    mostAtOnce = serials.count / 2
    lacksSerials = serials.count < 1 << 24
    nextSerial = first ?? serials.lowerBound
  }

  /// Makes an empty table with the native protocol's serials; the first one is that of a client.
  package init(role: Role, firstSerial: UInt32 = Wire.firstSerial) {
    self.init(
      serials: role.serials, first: role == .server ? firstSerial | Wire.serverBit : firstSerial)
  }

  /// The identity of a request that is to be registered next; nil when half of all serials are in
  /// use.
  package mutating func nextID() -> RequestID? {
    // That many at once come about where a dialect has few.
    guard entries.count < mostAtOnce else { return nil }
    created += 1
    return RequestID(serial: takeSerial(), number: created)
  }

  /// Registers a request that a link carries already.
  package mutating func register(
    _ id: RequestID, deadline: LinkInstant?, isOrdered: Bool = false, notifiesCancel: Bool,
    on link: UInt32, _ placement: StreamPosition, isTimeTold: Bool = false,
    at now: LinkInstant
  ) {
    var entry = Entry(
      number: id.number, notifiesCancel: notifiesCancel, isOrdered: isOrdered,
      expires: deadline != nil)
    entry.link = link
    entry.placement = placement
    entry.isTimeTold = isTimeTold
    entries.insert(entry, for: id.serial)
    load(link, 1)
    if isOrdered { lane.placed(id.number, on: link, isWhole: placement.begin != nil) }
    if let deadline { expire(id, deadline, at: now) }
  }

  /// Registers a request that is then placed on a link, or waits for one.
  package mutating func register(
    _ id: RequestID, deadline: LinkInstant?, isOrdered: Bool = false, notifiesCancel: Bool,
    at now: LinkInstant
  ) {
    entries.insert(
      Entry(
        number: id.number, notifiesCancel: notifiesCancel, isOrdered: isOrdered,
        expires: deadline != nil), for: id.serial)
    if let deadline { expire(id, deadline, at: now) }
  }

  /// The next serial that is not in use, counting up and wrapping.
  @inline(__always)
  private mutating func takeSerial() -> UInt32 {
    while true {
      let serial = nextSerial
      nextSerial = serial == serials.upperBound ? serials.lowerBound : serial + 1
      if !entries.contains(serial), !lacksSerials || !resting.contains(serial) { return serial }
    }
  }

  /// Keeps the serial of a request that was given up after it had left from being handed out while
  /// its answer may still come, which would be taken for that of another.
  ///
  /// Of a quarter of all serials the one that was given up first is free again.
  package mutating func rest(_ serial: UInt32) {
    guard lacksSerials else { return }
    resting.add(serial)
    if resting.count > mostAtOnce / 2 { _ = resting.takeOldest() }
  }

  /// Frees a serial that was given up: its answer has come.
  package mutating func endRest(of serial: UInt32) {
    if resting.count > 0 { resting.remove(serial) }
  }

  /// Frees all serials that were given up: no answer to them can come any more.
  package mutating func endRests() {
    resting = OwedAnswers()
  }

  /// What is known of a request; nil once it has ended.
  package func entry(_ id: RequestID) -> Entry? {
    guard let entry = entries[id.serial], entry.number == id.number else { return nil }
    return entry
  }

  /// The present identity of a request whose serial may have changed.
  package func current(_ id: RequestID) -> RequestID {
    guard !renewed.isEmpty, let serial = renewed[id.number] else { return id }
    return RequestID(serial: serial, number: id.number)
  }
}

// MARK: - On links

extension RequestTable {
  /// Requests that links carry.
  package var carriedCount: Int { newest.count + loads.reduce(0) { $0 + $1.count } }

  /// Requests that one link carries.
  @inline(__always)
  package func carriedCount(by link: UInt32) -> Int {
    newest.link == link ? newest.count : loads.first { $0.link == link }?.count ?? 0
  }

  @inline(__always)
  private mutating func load(_ link: UInt32, _ change: Int) {
    if newest.link == link { newest.count += change } else { loadOther(link, change) }
  }

  private mutating func loadOther(_ link: UInt32, _ change: Int) {
    if let index = loads.firstIndex(where: { $0.link == link }) {
      loads[index].count += change
      if loads[index].count == 0 { loads.remove(at: index) }
    } else {
      if newest.count > 0 { loads.append(newest) }
      newest = Load(link: link, count: change)
    }
  }

  /// Tells that a link carries a request now.
  package mutating func placed(
    _ id: RequestID, on link: UInt32, _ placement: StreamPosition, isTimeTold: Bool = false
  ) {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number,
      entries[slot: slot].link == 0
    else { return }
    entries[slot: slot].link = link
    entries[slot: slot].placement = placement
    entries[slot: slot].isTimeTold = isTimeTold
    load(link, 1)
    if entries[slot: slot].isOrdered {
      lane.placed(id.number, on: link, isWhole: placement.begin != nil)
    }
  }

  /// Tells that a request which its link had kept back has begun to leave.
  package mutating func began(
    _ serial: UInt32, on link: UInt32, at begin: UInt64, ordinal: UInt64
  ) {
    _ = entries.update(serial) { entry in
      guard entry.link == link else { return }
      entry.placement = StreamPosition(begin: begin, ordinal: ordinal)
    }
  }

  /// Tells that a request which its link had kept back has been encoded to its end.
  package mutating func finished(_ serial: UInt32, on link: UInt32) {
    guard let entry = entries[serial], entry.link == link, entry.isOrdered else { return }
    lane.finished(entry.number)
  }

  /// Whether somebody waits for a response with this serial on `link`.
  package func awaits(_ serial: UInt32, on link: UInt32) -> Bool {
    entries[serial]?.link == link
  }

  /// The request that a link carries with this serial.
  package func carried(
    _ serial: UInt32, by link: UInt32
  ) -> (id: RequestID, entry: Entry)? {
    guard let entry = entries[serial], entry.link == link else { return nil }
    return (RequestID(serial: serial, number: entry.number), entry)
  }

  /// The requests that a link carries, in the order of their creation.
  package func carried(by link: UInt32) -> [(id: RequestID, entry: Entry)] {
    var found: [(id: RequestID, entry: Entry)] = []
    guard carriedCount(by: link) > 0 else { return found }
    for serial in entries.keys {
      guard let entry = entries[serial], entry.link == link else { continue }
      found.append((RequestID(serial: serial, number: entry.number), entry))
    }
    found.sort { $0.id < $1.id }
    return found
  }

  /// Takes a request off its link, to be ended or to wait once more, and remembers what may have
  /// come of this sending.
  package mutating func takeBack(_ id: RequestID, _ delivery: Delivery) {
    guard let entry = entry(id), entry.link != 0 else { return }
    detach(entry)
    if delivery == .sent { arrived(entry) }
    _ = entries.update(id.serial) { entry in
      entry.link = 0
      entry.placement = .keptBack
      entry.past = delivery.after(entry.past)
      if delivery != .notSent, entry.returns < .max { entry.returns += 1 }
    }
  }

  @inline(__always)
  private mutating func detach(_ entry: Entry) {
    load(entry.link, -1)
    if entry.isOrdered { lane.left(entry.number) }
  }

  /// Tells that a request may have arrived, for those whose order counts.
  package mutating func arrived(_ entry: Entry) {
    if entry.isOrdered { lane.arrived(entry.number) }
  }

  /// Whether sending a request once more keeps the order of those that have one.
  package func keepsOrder(_ id: RequestID, _ entry: Entry) -> Bool {
    !entry.isOrdered || lane.isUnpassed(id.number)
  }

  /// Gives a request that is on no link another serial, so that no further answer to the old one
  /// can be taken for its own.
  package mutating func renew(_ id: RequestID, deadline: LinkInstant) -> RequestID {
    guard var entry = entries.remove(id.serial) else { return id }
    precondition(entry.number == id.number && entry.link == 0 && !waits.contains(id.serial))
    let serial = takeSerial()
    if entry.timer != .none { wheel.remove(entry.timer) }
    entry.timer = .none
    entries.insert(entry, for: serial)
    renewed[id.number] = serial
    let next = RequestID(serial: serial, number: id.number)
    if entry.expires { young.append(next, deadline) }
    return next
  }
}

// MARK: - Ending

extension RequestTable {
  /// Ends the request that a response on `link` answers; nil when nobody waits for it any more.
  package mutating func answered(
    _ serial: UInt32, on link: UInt32, isRefused: Bool = false
  ) -> RequestID? {
    guard let slot = entries.slot(of: serial), entries[slot: slot].link == link else { return nil }
    if !isRefused, entries[slot: slot].isOrdered { lane.arrived(entries[slot: slot].number) }
    return RequestID(serial: serial, number: remove(serial, at: slot).number)
  }

  /// Ends a request for another reason; nil when it has ended already.
  package mutating func end(_ id: RequestID) -> Entry? {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number
    else { return nil }
    return remove(id.serial, at: slot)
  }

  @inline(__always)
  mutating func remove(_ serial: UInt32, at slot: Int) -> Entry {
    let entry = entries.remove(slot: slot)
    if entry.timer != .none { wheel.remove(entry.timer) }
    if entry.link != 0 {
      detach(entry)
    } else if !waits.isEmpty {
      stopWaiting(serial, entry)
    }
    if !renewed.isEmpty { renewed[entry.number] = nil }
    if entries.isEmpty { young.removeAll() }
    return entry
  }
}
