/// Names one request of this side for as long as the process runs.
package struct RequestID: Hashable, Sendable {
  /// The serial on the wire.
  package let serial: UInt32
  /// The count of requests created before this one: it tells serials apart after a wrap.
  package let number: UInt64

  /// Names no request.
  package static let none = RequestID(serial: 0, number: 0)
}

/// The requests of one side that have not ended: serials, deadlines, and on which link each one is.
///
/// A request is registered when it is created, so that an early failure, a cancel or a late reply
/// always finds it; it leaves exactly once. Bodies and continuations are the driver's.
package struct Dispatch: Equatable {
  /// What is known of one request.
  package struct Entry: Equatable, Sendable {
    package let number: UInt64
    /// The link that carries it; 0 while it waits for one.
    package fileprivate(set) var link: UInt32 = 0
    /// Where it stands in the link's stream.
    package fileprivate(set) var placement = RequestPlacement.keptBack
    package let notifiesCancel: Bool
    /// Whether it is in the queue of those that wait for a link or for room on it.
    fileprivate var isQueued = false
    fileprivate var timer = TimingWheel.Handle.none

    /// What may have happened to it, when the link has written so much.
    package func delivery(written: UInt64) -> Delivery {
      guard let begin = placement.begin else { return .notSent }
      return begin < written ? .sent : .notSent
    }
  }

  private let role: Role
  private var entries = SerialTable<Entry>()
  private var wheel: TimingWheel?
  private var nextSerial = Wire.firstSerial
  private var created: UInt64 = 0
  private var waiting = Queue<RequestID>()
  /// Requests that wait for a link or for room on it.
  package private(set) var waitingCount = 0
  /// Requests that a link carries.
  package private(set) var carriedCount = 0
  /// Requests that have not ended.
  package var count: Int { entries.count }
  /// The memory of those that wait, in requests; some of them may have ended.
  package var queueLength: Int { waiting.count }

  /// Makes an empty table; the first request gets the first serial, or the next free one after it.
  package init(role: Role, firstSerial: UInt32 = Wire.firstSerial) {
    precondition(Role.client.owns(firstSerial))
    self.role = role
    nextSerial = firstSerial
  }

  /// When `elapsed(to:)` wants to be called; nil when no deadline runs.
  package var deadline: LinkInstant? { wheel?.nextDeadline }

  /// Registers a request. It is then placed on a link, or waits for one.
  package mutating func create(
    deadline: LinkInstant?, notifiesCancel: Bool, at now: LinkInstant
  ) -> RequestID {
    let serial = takeSerial()
    let id = RequestID(serial: serial, number: created)
    var entry = Entry(number: created, notifiesCancel: notifiesCancel)
    created += 1
    if let deadline {
      if wheel == nil { wheel = TimingWheel(now: now) }
      entry.timer = wheel!.insert(UInt64(serial), at: deadline)
    }
    entries.insert(entry, for: serial)
    return id
  }

  /// The next serial that is not in use, counting up and wrapping.
  private mutating func takeSerial() -> UInt32 {
    precondition(entries.count < Int(Wire.serverBit) / 2, "too many requests at once")
    while true {
      let serial = role == .server ? nextSerial | Wire.serverBit : nextSerial
      nextSerial = nextSerial == Wire.serverBit - 1 ? Wire.firstSerial : nextSerial + 1
      if !entries.contains(serial) { return serial }
    }
  }

  /// What is known of a request; nil once it has ended.
  package func entry(_ id: RequestID) -> Entry? {
    guard let entry = entries[id.serial], entry.number == id.number else { return nil }
    return entry
  }

  /// Puts a request at the end of those that wait.
  package mutating func wait(_ id: RequestID) {
    guard enqueue(id) else { return }
    waiting.append(id)
  }

  private mutating func enqueue(_ id: RequestID) -> Bool {
    let isNew = entries.update(id.serial) { entry in
      guard entry.number == id.number, !entry.isQueued else { return false }
      entry.isQueued = true
      return true
    }
    guard isNew == true else { return false }
    waitingCount += 1
    return true
  }

  /// The next request that waits and has not ended; it is taken from the queue.
  package mutating func nextWaiting() -> RequestID? {
    while let id = waiting.popFirst() {
      guard let entry = entry(id), entry.isQueued else {
        continue  // It ended while it waited: a deadline or a cancel took it out.
      }
      _ = entries.update(id.serial) { $0.isQueued = false }
      waitingCount -= 1
      return id
    }
    return nil
  }

  /// Tells that a link carries a request now.
  package mutating func placed(
    _ id: RequestID, on link: UInt32, _ placement: RequestPlacement
  ) {
    let isPlaced = entries.update(id.serial) { entry in
      guard entry.number == id.number, entry.link == 0 else { return false }
      entry.link = link
      entry.placement = placement
      return true
    }
    if isPlaced == true { carriedCount += 1 }
  }

  /// Tells that a request which its link had kept back has begun to leave.
  package mutating func began(
    _ serial: UInt32, on link: UInt32, at begin: UInt64, ordinal: UInt64
  ) {
    _ = entries.update(serial) { entry in
      guard entry.link == link else { return }
      entry.placement = RequestPlacement(begin: begin, ordinal: ordinal)
    }
  }

  /// Whether somebody waits for a response with this serial on `link`.
  package func awaits(_ serial: UInt32, on link: UInt32) -> Bool {
    entries[serial]?.link == link
  }

  /// Ends the request that a response on `link` answers; nil when nobody waits for it any more.
  package mutating func answered(_ serial: UInt32, on link: UInt32) -> RequestID? {
    guard let entry = entries[serial], entry.link == link else { return nil }
    remove(serial, entry)
    return RequestID(serial: serial, number: entry.number)
  }

  /// Ends a request for another reason; nil when it has ended already.
  package mutating func end(_ id: RequestID) -> Entry? {
    guard let entry = entry(id) else { return nil }
    remove(id.serial, entry)
    return entry
  }

  private mutating func remove(_ serial: UInt32, _ entry: Entry) {
    if entry.timer != .none { wheel?.remove(entry.timer) }
    if entry.link != 0 { carriedCount -= 1 }
    entries.remove(serial)
    if entry.isQueued {
      waitingCount -= 1
      forgetEnded()
    }
  }

  /// Drops the identities of those that ended while they waited, once they are the most: without a
  /// link nobody takes them from the queue.
  private mutating func forgetEnded() {
    guard waiting.count > 2 * waitingCount + 64 else { return }
    let entries = entries
    waiting.removeAll { id in
      guard let entry = entries[id.serial] else { return true }
      return entry.number != id.number || !entry.isQueued
    }
  }

  /// Moves the clock; what is past its deadline comes out of `nextExpired()`.
  package mutating func elapsed(to now: LinkInstant) {
    wheel?.advance(to: now)
  }

  /// A request whose deadline has passed, ended by this call.
  package mutating func nextExpired() -> (id: RequestID, entry: Entry)? {
    while let key = wheel?.popExpired() {
      let serial = UInt32(key)
      guard let entry = entries[serial] else { continue }
      remove(serial, entry)
      return (RequestID(serial: serial, number: entry.number), entry)
    }
    return nil
  }

  /// The requests that a link carries, in the order of their creation.
  package func carried(by link: UInt32) -> [(id: RequestID, entry: Entry)] {
    collect { $0.link == link }
  }

  /// The requests that wait for a link, in the order of their creation.
  package var waitingRequests: [(id: RequestID, entry: Entry)] {
    collect { $0.isQueued }
  }

  private func collect(
    where matches: (Entry) -> Bool
  ) -> [(id: RequestID, entry: Entry)] {
    var found: [(id: RequestID, entry: Entry)] = []
    for serial in entries.keys {
      guard let entry = entries[serial], matches(entry) else { continue }
      found.append((RequestID(serial: serial, number: entry.number), entry))
    }
    found.sort { $0.id.number < $1.id.number }
    return found
  }

  /// Takes requests that certainly did not run off their link, to wait in front of all others.
  package mutating func requeue(_ ids: [RequestID]) {
    for id in ids.reversed() {
      let wasCarried = entries.update(id.serial) { entry in
        guard entry.number == id.number, entry.link != 0 else { return false }
        entry.link = 0
        entry.placement = .keptBack
        return true
      }
      if wasCarried == true { carriedCount -= 1 }
      if enqueue(id) { waiting.prepend(id) }
    }
  }
}
