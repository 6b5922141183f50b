// SPDX-License-Identifier: Apache-2.0

/// The identity of a request of this side, unique in this process.
@usableFromInline package struct RequestID: Hashable, Comparable, Sendable {
  /// The serial on the wire.
  @usableFromInline package let serial: UInt32
  /// The ordinal of the request, from 1: it distinguishes requests whose serials are equal after a
  /// wrap.
  @usableFromInline package let number: UInt64

  @inlinable package init(serial: UInt32, number: UInt64) {
    self.serial = serial
    self.number = number
  }

  /// An identity that no request has.
  package static let none = RequestID(serial: 0, number: 0)

  /// Orders requests by their creation.
  @inlinable package static func < (lhs: RequestID, rhs: RequestID) -> Bool {
    lhs.number < rhs.number
  }
}

/// The open requests of one side: their serials, deadlines and links, and the order of the waiting
/// ones.
///
/// A request is registered when it is created, so that an early failure, a cancel or a late
/// response finds it; it leaves exactly once. `Payload` is the driver's part of a request: its body
/// and its caller.
///
/// The functions that every request uses are inlinable, because only inlinable ones are specialized
/// for the driver's payload.
@usableFromInline package struct RequestTable<Payload>: ~Copyable {
  /// The state of one request.
  @usableFromInline package struct Entry {
    @usableFromInline package let number: UInt64
    /// The link that carries the request; 0 if none does.
    @usableFromInline package var link: UInt32 = 0
    @usableFromInline package let notifiesCancel: Bool
    /// Whether the peer was told the remaining time.
    @usableFromInline package var isTimeTold = false
    /// Whether the request is ordered among the other ordered requests.
    @usableFromInline package let isOrdered: Bool
    /// Whether the request has a deadline.
    @usableFromInline let expires: Bool
    /// The delivery of the request's earlier attempts together.
    @usableFromInline package var past = Delivery.notSent
    /// The number of attempts that have failed.
    @usableFromInline package var returns: UInt8 = 0
    /// The request's position in the link's stream.
    @usableFromInline package var position = OutputPosition.keptBack
    @usableFromInline var timer = TimingWheel.Handle.none
    /// The driver's part of the request.
    @usableFromInline package var payload: Payload

    @inlinable @inline(__always)
    init(
      number: UInt64, link: UInt32, position: OutputPosition, isTimeTold: Bool,
      isOrdered: Bool, notifiesCancel: Bool, expires: Bool, payload: consuming Payload
    ) {
      self.number = number
      self.link = link
      self.position = position
      self.isTimeTold = isTimeTold
      self.isOrdered = isOrdered
      self.notifiesCancel = notifiesCancel
      self.expires = expires
      self.payload = payload
    }

    /// The delivery of the current attempt, after the link has written this many bytes.
    package func delivery(written: UInt64) -> Delivery {
      guard let begin = position.begin else { return .notSent }
      return begin < written ? .sent : .notSent
    }
  }

  @usableFromInline struct Load: Equatable {
    @usableFromInline let link: UInt32
    @usableFromInline var count: Int
  }

  /// The serials, which are used in turn.
  @usableFromInline let serials: ClosedRange<UInt32>
  private let anchor = Anchor()
  @usableFromInline var nextSerial: UInt32
  /// The largest number of requests: half of the serials.
  @usableFromInline let mostAtOnce: Int
  /// Serials that are not reused yet. Empty if there are so many serials that none is reused in the
  /// lifetime of a late response.
  private var resting = OwedAnswers()
  @usableFromInline let lacksSerials: Bool
  @usableFromInline var created: UInt64 = 0
  @usableFromInline var entries = SerialTable<Entry>()
  /// Deadlines of requests that are no longer young, and times of delayed requests.
  var wheel = TimingWheel(now: LinkInstant(nanoseconds: 0))
  @usableFromInline var young = YoungDeadlines()
  /// The load of the link that became known last.
  @usableFromInline var newest = Load(link: 0, count: 0)
  /// The loads of older links that carry requests.
  private var loads: [Load] = []
  /// The current serials of requests that were given a new one, by ordinal.
  @usableFromInline var renewed: [UInt64: UInt32] = [:]

  // Waiting
  @usableFromInline var waits = SerialTable<RequestWait>()
  /// Waiting requests that may be sent, the most urgent first; ordered ones are in the lane.
  var ready = IndexedHeap<QueuePosition>()
  /// Waiting requests with bodies in fragments, which a link may not take yet; also by urgency.
  var readyLarge = IndexedHeap<QueuePosition>()
  @usableFromInline var lane = OrderedLane()
  /// The bytes of all waiting requests.
  package internal(set) var waitingBytes = 0

  /// The number of requests that have not ended.
  @inlinable package var count: Int { entries.count }

  /// Makes an empty table. The first request gets the serial `first`, or the lowest one.
  package init(serials: ClosedRange<UInt32>, first: UInt32? = nil) {
    precondition(serials.lowerBound > 0 && serials.contains(first ?? serials.lowerBound))
    self.serials = serials
    mostAtOnce = serials.count / 2
    lacksSerials = serials.count < 1 << 24
    nextSerial = first ?? serials.lowerBound
  }

  /// Makes an empty table with the native protocol's serials.
  package init(role: Role, firstSerial: UInt32 = Wire.firstSerial) {
    self.init(
      serials: role.serials, first: role == .server ? firstSerial | Wire.serverBit : firstSerial)
  }

  /// The identity for a new request; nil if half of all serials are in use.
  @inlinable @inline(__always)
  package mutating func nextID() -> RequestID? {
    // Only a dialect has so few serials that this happens.
    guard entries.count < mostAtOnce else { return nil }
    created += 1
    return RequestID(serial: takeSerial(), number: created)
  }

  /// Registers a request that `link` carries already; with 0, one that is sent or queued next.
  @inlinable @inline(__always)
  package mutating func register(
    _ id: RequestID, _ payload: consuming Payload, deadline: LinkInstant?, isOrdered: Bool = false,
    notifiesCancel: Bool, on link: UInt32 = 0, at position: OutputPosition = .keptBack,
    isTimeTold: Bool = false, now: LinkInstant
  ) {
    entries.insert(
      Entry(
        number: id.number, link: link, position: position, isTimeTold: isTimeTold,
        isOrdered: isOrdered, notifiesCancel: notifiesCancel, expires: deadline != nil,
        payload: payload), for: id.serial)
    if link != 0 {
      load(link, 1)
      if isOrdered { lane.placed(id.number, on: link, isWhole: position.begin != nil) }
    }
    if let deadline { expire(id, deadline, at: now) }
  }

  /// The next serial that is not in use, counting up and wrapping.
  @inlinable @inline(__always)
  mutating func takeSerial() -> UInt32 {
    while true {
      let serial = nextSerial
      nextSerial = serial == serials.upperBound ? serials.lowerBound : serial + 1
      if !entries.contains(serial), !lacksSerials || !isResting(serial) { return serial }
    }
  }

  @usableFromInline func isResting(_ serial: UInt32) -> Bool { resting.contains(serial) }

  /// Keeps the serial of an abandoned request from being reused while its response may still come,
  /// which would be taken for that of another request.
  ///
  /// At most a quarter of all serials rest; then the oldest is reused.
  package mutating func rest(_ serial: UInt32) {
    guard lacksSerials else { return }
    resting.add(serial)
    if resting.count > mostAtOnce / 2 { _ = resting.takeOldest() }
  }

  /// Frees the serial of an abandoned request: its response has come.
  package mutating func endRest(of serial: UInt32) {
    if resting.count > 0 { resting.remove(serial) }
  }

  /// Frees the serials of all abandoned requests: no response to them can come any more.
  package mutating func endRests() {
    resting = OwedAnswers()
  }

  /// The state of a request; nil once it has ended.
  package func entry(_ id: RequestID) -> Entry? {
    guard let entry = entries[id.serial], entry.number == id.number else { return nil }
    return entry
  }

  /// The current identity of a request whose serial may have changed.
  package func current(_ id: RequestID) -> RequestID {
    guard !renewed.isEmpty, let serial = renewed[id.number] else { return id }
    return RequestID(serial: serial, number: id.number)
  }
}

// MARK: - On links

extension RequestTable {
  /// The number of requests that links carry.
  package var carriedCount: Int { newest.count + loads.reduce(0) { $0 + $1.count } }

  /// The number of requests that one link carries.
  @inlinable @inline(__always)
  package func carriedCount(by link: UInt32) -> Int {
    newest.link == link ? newest.count : olderCount(by: link)
  }

  @usableFromInline func olderCount(by link: UInt32) -> Int {
    loads.first { $0.link == link }?.count ?? 0
  }

  @inlinable @inline(__always)
  mutating func load(_ link: UInt32, _ change: Int) {
    if newest.link == link { newest.count += change } else { loadOther(link, change) }
  }

  @usableFromInline mutating func loadOther(_ link: UInt32, _ change: Int) {
    if let index = loads.firstIndex(where: { $0.link == link }) {
      loads[index].count += change
      if loads[index].count == 0 { loads.remove(at: index) }
    } else {
      if newest.count > 0 { loads.append(newest) }
      newest = Load(link: link, count: change)
    }
  }

  /// Records that a link carries a request now.
  package mutating func placed(
    _ id: RequestID, on link: UInt32, _ position: OutputPosition, isTimeTold: Bool = false
  ) {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number,
      entries[slot: slot].link == 0
    else { return }
    entries[slot: slot].link = link
    entries[slot: slot].position = position
    entries[slot: slot].isTimeTold = isTimeTold
    load(link, 1)
    if entries[slot: slot].isOrdered {
      lane.placed(id.number, on: link, isWhole: position.begin != nil)
    }
  }

  /// Records that a queued request has begun to be sent.
  package mutating func began(
    _ serial: UInt32, on link: UInt32, at begin: UInt64, ordinal: UInt64
  ) {
    _ = entries.update(serial) { entry in
      guard entry.link == link else { return }
      entry.position = OutputPosition(begin: begin, ordinal: ordinal)
    }
  }

  /// Records that a queued request has been encoded to its end.
  package mutating func finished(_ serial: UInt32, on link: UInt32) {
    guard let entry = entries[serial], entry.link == link, entry.isOrdered else { return }
    lane.finished(entry.number)
  }

  /// Whether `link` carries a request with this serial.
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

  /// Takes a request off its link, to end or to wait again, and records the delivery of this
  /// attempt.
  package mutating func takeBack(_ id: RequestID, _ delivery: Delivery) {
    guard let entry = entry(id), entry.link != 0 else { return }
    detach(id.number, isOrdered: entry.isOrdered, from: entry.link)
    if delivery == .sent { arrived(entry) }
    _ = entries.update(id.serial) { entry in
      entry.link = 0
      entry.position = .keptBack
      entry.past = delivery.after(entry.past)
      if delivery != .notSent, entry.returns < .max { entry.returns += 1 }
    }
  }

  @inlinable @inline(__always)
  mutating func detach(_ number: UInt64, isOrdered: Bool, from link: UInt32) {
    load(link, -1)
    if isOrdered { lane.removed(number) }
  }

  /// Records that a request may have arrived, if it is ordered.
  package mutating func arrived(_ entry: Entry) {
    if entry.isOrdered { lane.arrived(entry.number) }
  }

  /// Changes the driver's part of a request.
  package mutating func change(_ id: RequestID, _ body: (inout Payload) -> Void) {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number
    else { return }
    body(&entries[slot: slot].payload)
  }

  /// Whether a retry of a request keeps the order of the ordered ones.
  package func keepsOrder(_ id: RequestID, _ entry: Entry) -> Bool {
    !entry.isOrdered || lane.isUnpassed(id.number)
  }

  /// Gives another serial to a request that no link carries, so that a late response to the old
  /// serial is not taken for its own.
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
  /// The slot of the request that a response on `link` answers; nil if it has ended.
  @inlinable @inline(__always)
  package func slot(of serial: UInt32, on link: UInt32) -> Int? {
    guard let slot = entries.slot(of: serial), entries[slot: slot].link == link else { return nil }
    return slot
  }

  /// Looks at the driver's part of the request in a slot from `slot(of:on:)`, without a copy.
  @inlinable @inline(__always)
  package func withPayload<Result>(
    at slot: Int, _ body: (borrowing Payload) -> Result
  ) -> Result { body(entries[slot: slot].payload) }

  /// Ends the request in a slot from `slot(of:on:)`, because its response has come.
  @inlinable @inline(__always)
  package mutating func answered(_ serial: UInt32, at slot: Int, isRefused: Bool = false) -> Entry {
    if !isRefused, entries[slot: slot].isOrdered { lane.arrived(entries[slot: slot].number) }
    return remove(serial, at: slot)
  }

  /// Ends the request in a slot, because a response that is no rejection has come. Of the entry,
  /// only the driver's part is moved.
  @inlinable @inline(__always)
  package mutating func succeeded(_ serial: UInt32, at slot: Int) -> Payload {
    answered(serial, at: slot).payload
  }

  /// Ends a request for another reason; nil if it has ended already.
  package mutating func end(_ id: RequestID) -> Entry? {
    guard let slot = entries.slot(of: id.serial), entries[slot: slot].number == id.number
    else { return nil }
    return remove(id.serial, at: slot)
  }

  @inlinable @inline(__always)
  mutating func remove(_ serial: UInt32, at slot: Int) -> Entry {
    // Read in place: the entry is large, and moved once.
    let (number, link) = (entries[slot: slot].number, entries[slot: slot].link)
    let (timer, isOrdered) = (entries[slot: slot].timer, entries[slot: slot].isOrdered)
    if timer != .none { removeTimer(timer) }
    if link != 0 {
      detach(number, isOrdered: isOrdered, from: link)
    } else if !waits.isEmpty {
      stopWaiting(serial, isOrdered: isOrdered)
    }
    if !renewed.isEmpty { renewed[number] = nil }
    if entries.count == 1 { young.removeAll() }
    return entries.remove(slot: slot)
  }
}
