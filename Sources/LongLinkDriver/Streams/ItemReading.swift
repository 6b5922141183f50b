// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The receiving half of a stream, on its loop: items that wait for the application, or a read that
/// waits for an item, and the cost that was not reported to the connection yet.
///
/// It calls nothing: it returns readers and costs, which the channel resumes and reports.
struct ItemReading: ~Copyable {
  typealias Reader = (ItemChannel.Read) -> Void

  /// Where an item that arrives has to go.
  enum Place {
    case reader(Reader)
    case inbox
    /// The application will not read the item, so it counts as taken.
    case nowhere
  }

  var inbox = ItemInbox()
  private var reader: (id: UInt64, resume: Reader)?
  /// Whether the waiting read ends when the connection is being left.
  private var endsWhenDraining = false
  private var lastID: UInt64 = 0
  /// When the waiting read fails with `deadlineExceeded`.
  var deadline = LinkInstant.distantFuture
  /// The number of items that were read.
  private(set) var count: UInt64 = 0
  /// The cost of the items that the last read returned: the application still holds them.
  private var lent = 0
  /// The cost of items that were taken and not reported to the connection yet.
  private var unreported = 0
  /// Whether items are dropped on arrival, because the application will not read them.
  private var discardsItems = false
  /// Whether any item was dropped.
  private var hasDropped = false
  /// Whether the peer lacks credit for the rest of an item until the application has taken all
  /// whole items.
  private var isPeerStuck = false

  /// The cost, in bytes, from which on taken items are reported even while others wait.
  static let leastReport = 16_384
  /// The cost, in bytes, from which on a read returns no further item.
  static let mostLent = 65_536

  /// Whether a read waits.
  var isAwaited: Bool { reader != nil }

  /// Whether any item has arrived.
  var hasReceived: Bool { count > 0 || !inbox.isEmpty || hasDropped }

  // MARK: Arrivals

  /// Returns where an item that arrives has to go. If a reader waits, the item counts as read.
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

  /// Takes the waiting reader, if no item waits.
  mutating func readerWithoutItems() -> Reader? { inbox.isEmpty ? takeReader() : nil }

  private mutating func takeReader() -> Reader? {
    guard let reader else { return nil }
    self.reader = nil
    deadline = .distantFuture
    return reader.resume
  }

  /// Notes whether the peer lacks credit for the rest of an item.
  mutating func setPeerStuck(_ isStuck: Bool) { isPeerStuck = isStuck }

  /// Whether a stuck peer may get credit, because the application has taken all whole items.
  mutating func unsticks() -> Bool {
    guard isPeerStuck, inbox.isEmpty else { return false }
    isPeerStuck = false
    return true
  }

  // MARK: Reads

  /// Counts the items of earlier reads as taken. Returns the cost to report to the connection; nil
  /// if it is too early for a report.
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

  /// Takes the next item; nil if none has arrived.
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

  /// Takes the waiting reader if its wait ends when the connection is being left.
  mutating func drain() -> Reader? { endsWhenDraining ? takeReader() : nil }

  /// Takes the waiting reader, if its wait has this number, or its deadline has passed.
  mutating func cancel(_ id: UInt64) -> Reader? { reader?.id == id ? takeReader() : nil }
  mutating func expire(at now: LinkInstant) -> Reader? { deadline <= now ? takeReader() : nil }

  /// Drops all items from now on. Returns the cost of the items that count as taken now.
  mutating func discard() -> Int {
    discardsItems = true
    unreported += lent
    lent = 0
    if !inbox.isEmpty { hasDropped = true }
    while !inbox.isEmpty { unreported += inbox.removeFirst().cost }
    return takeUnreported()
  }

  /// Drops the items that wait, without counting them as taken.
  mutating func drop() { inbox = ItemInbox() }
}
