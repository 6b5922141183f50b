// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The receiving half of a stream, on its loop: the items that wait for the application, or the
/// read that waits for one, and what the connection was not told yet.
///
/// It calls nothing. The channel resumes the reader and makes the report that it returns.
struct ItemReading: ~Copyable {
  typealias Reader = (ItemChannel.Read) -> Void

  /// Where an item goes that arrives.
  enum Place {
    case reader(Reader)
    case inbox
    /// Nobody will read it: it counts as taken.
    case nowhere
  }

  var inbox = ItemInbox()
  private var reader: (id: UInt64, resume: Reader)?
  /// Whether the wait ends when the connection is to be left.
  private var endsWhenDraining = false
  private var lastID: UInt64 = 0
  /// When the wait of the reader fails.
  var deadline = LinkInstant.distantFuture
  /// The number of items that were read.
  private(set) var count: UInt64 = 0
  /// The cost of the items that the last read returned: the application still holds them.
  private var lent = 0
  /// The cost of items that were taken and not reported to the connection yet.
  private var unreported = 0
  /// Whether items are dropped on arrival, because nobody will read them.
  private var discardsItems = false
  /// Whether an item was dropped.
  private var hasDropped = false
  /// Whether the peer gets no credit for the rest of an item until the application has all whole
  /// ones.
  private var isPeerStuck = false

  /// The cost from which on taken items are reported while others wait.
  static let leastReport = 16_384
  /// The cost from which on a read returns no further item.
  static let mostLent = 65_536

  /// Whether a read waits.
  var isAwaited: Bool { reader != nil }

  /// Whether an item has come.
  var hasReceived: Bool { count > 0 || !inbox.isEmpty || hasDropped }

  // MARK: Arrivals

  /// Says where an item goes.
  mutating func place(cost: Int) -> Place {
    isPeerStuck = false
    if let resume = readerWithoutItems() {
      lent = cost
      count += 1
      return .reader(resume)
    }
    guard discardsItems else { return .inbox }
    hasDropped = true
    return .nowhere
  }

  /// Takes the reader that waits, if no item does.
  mutating func readerWithoutItems() -> Reader? { inbox.isEmpty ? takeReader() : nil }

  private mutating func takeReader() -> Reader? {
    guard let reader else { return nil }
    self.reader = nil
    deadline = .distantFuture
    return reader.resume
  }

  /// Notes that the peer gets no credit for the rest of an item, or that its items have ended.
  mutating func setPeerStuck(_ isStuck: Bool) { isPeerStuck = isStuck }

  /// Whether the application has all whole items now, of a peer that is stuck.
  mutating func unsticks() -> Bool {
    guard isPeerStuck, inbox.isEmpty else { return false }
    isPeerStuck = false
    return true
  }

  // MARK: Reads

  /// Counts the items that were returned before as taken. Returns the cost to report, if it is time
  /// for that.
  mutating func takeBack() -> Int? {
    precondition(reader == nil, "only one task may read the items of a stream at a time")
    unreported += lent
    lent = 0
    let isDue = unreported >= ItemReading.leastReport || unreported > 0 && inbox.isEmpty
    return isDue ? takeUnreported() : nil
  }

  private mutating func takeUnreported() -> Int {
    defer { unreported = 0 }
    return unreported
  }

  /// Takes the next item, if it is here.
  mutating func next() -> [UInt8]? {
    guard !inbox.isEmpty else { return nil }
    let (item, cost) = inbox.removeFirst()
    lent += cost
    count += 1
    if inbox.isEmpty { inbox.releaseRoom() }
    return item
  }

  /// Takes up to `limit` items; nil if there is none.
  mutating func next(upTo limit: Int) -> [[UInt8]]? {
    guard !inbox.isEmpty else { return nil }
    var items: [[UInt8]] = []
    items.reserveCapacity(min(limit, inbox.count))
    while items.count < limit, lent < ItemReading.mostLent, let item = next() {
      items.append(item)
    }
    return items
  }

  /// Begins a wait; returns its number.
  mutating func wait(untilDraining: Bool = false, _ resume: @escaping Reader) -> UInt64 {
    lastID += 1
    endsWhenDraining = untilDraining
    reader = (lastID, resume)
    return lastID
  }

  /// Ends a wait that lasts until the connection is to be left.
  mutating func drain() -> Reader? { endsWhenDraining ? takeReader() : nil }

  /// Ends the wait with this number, or any that is due.
  mutating func cancel(_ id: UInt64) -> Reader? { reader?.id == id ? takeReader() : nil }
  mutating func expire(at now: LinkInstant) -> Reader? { deadline <= now ? takeReader() : nil }

  /// Drops all items from here on. Returns the cost of those that count as taken now.
  mutating func discard() -> Int {
    discardsItems = true
    unreported += lent
    lent = 0
    if !inbox.isEmpty { hasDropped = true }
    while !inbox.isEmpty { unreported += inbox.removeFirst().cost }
    return takeUnreported()
  }

  /// Drops the items that wait.
  mutating func drop() { inbox = ItemInbox() }
}
