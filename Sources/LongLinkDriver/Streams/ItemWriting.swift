// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The sending half of a stream, on its loop: the item that the connection has taken, those that
/// wait behind it, and the calls that wait until theirs is sent.
///
/// It calls nothing. The channel sends the items, and resumes the waiters that it returns.
struct ItemWriting {
  typealias Sender = Waiter<Result<Void, LongLinkError>>

  private struct Waiting {
    let id: UInt64
    let item: RequestBody
    let waiter: Sender
  }

  /// What became of an item that the connection has taken.
  enum Fate {
    case sent
    case waiting
    /// The exchange has ended before.
    case lost
  }

  /// Whether an item has been passed to the connection.
  private(set) var hasBegun = false
  /// Whether the connection holds an item that it has not encoded to its end.
  private(set) var isSending = false
  /// The number of items that the connection has held like that.
  private(set) var taken: UInt64 = 0
  /// The number of the last of them, if the exchange has ended before it was sent.
  private var lost: UInt64?
  /// Whether no item follows those that wait.
  private(set) var hasEnd = false
  /// The call whose item the connection holds.
  private var writer: (id: UInt64, waiter: Sender)?
  private var waiting = Queue<Waiting>()
  private var lastID: UInt64 = 0
  /// When the calls that wait fail, and `onLate` is called.
  var deadline = LinkInstant.distantFuture
  /// Called once no item waits, or if the items wait too long.
  private var onWritten: (() -> Void)?
  private(set) var onLate: (() -> Void)?

  /// Whether no item waits, here or in the connection.
  var isFlushed: Bool { !isSending && waiting.isEmpty }

  /// Whether no item waits here.
  var isEmpty: Bool { waiting.isEmpty }

  /// Whether a call waits.
  var isAwaited: Bool { writer != nil || !waiting.isEmpty }

  // MARK: Sending

  /// Notes that the connection has encoded an item, or `taken` it to send it later.
  mutating func passed(isTaken: Bool) {
    hasBegun = true
    guard isTaken else { return }
    isSending = true
    taken += 1
  }

  /// Notes that the item that the connection held has been encoded; returns who waits for that.
  mutating func sent() -> Sender? {
    isSending = false
    deadline = .distantFuture
    defer { writer = nil }
    return writer?.waiter
  }

  /// The next item that waits, if the connection holds none.
  var next: RequestBody? { isSending ? nil : waiting.first?.item }

  /// Removes the next item, which was passed on or has failed. Returns who waits, unless that waits
  /// on for what the connection has taken.
  mutating func removeNext(isTaken: Bool) -> Sender? {
    guard let write = waiting.popFirst() else { return nil }
    // The next one has its own time.
    deadline = .distantFuture
    guard isTaken else { return write.waiter }
    writer = (write.id, write.waiter)
    return nil
  }

  /// What became of an item that the connection took, by its number among them.
  func fate(of item: UInt64) -> Fate {
    if item == lost { return .lost }
    return isSending && item == taken ? .waiting : .sent
  }

  // MARK: Waiting

  /// Waits until the connection has sent the item that it holds; returns the number of the wait.
  mutating func wait(_ waiter: Sender) -> UInt64 {
    lastID += 1
    writer = (lastID, waiter)
    return lastID
  }

  /// Adds an item behind those that wait; returns the number of the wait.
  mutating func append(_ item: RequestBody, _ waiter: Sender) -> UInt64 {
    lastID += 1
    waiting.append(Waiting(id: lastID, item: item, waiter: waiter))
    return lastID
  }

  /// Ends a wait. An item that waits here is withdrawn; one that the connection holds is sent.
  mutating func cancel(_ id: UInt64) -> Sender? {
    var cancelled: Sender?
    if let writer, writer.id == id {
      self.writer = nil
      cancelled = writer.waiter
    }
    let wasNext = writer == nil && waiting.first?.id == id
    if let write = waiting.remove(where: { $0.id == id }) { cancelled = write.waiter }
    // The next one's time begins now. A handler that has returned waits for the items, too.
    if wasNext && !waiting.isEmpty || !isAwaited && onLate == nil { deadline = .distantFuture }
    return cancelled
  }

  /// Sets what to call once no item waits, or if the items wait too long.
  mutating func whenWritten(
    _ function: @escaping () -> Void, orLate late: @escaping () -> Void
  ) {
    onWritten = function
    onLate = late
  }

  /// Takes what to call now that no item waits.
  mutating func takeOnWritten() -> (() -> Void)? {
    defer { onWritten = nil }
    return onWritten
  }

  // MARK: Ends

  /// Notes that no item follows; false if that is known.
  mutating func end() -> Bool {
    defer { hasEnd = true }
    return !hasEnd
  }

  /// Whether the time of those that wait is over.
  mutating func expires(at now: LinkInstant) -> Bool {
    guard deadline <= now else { return false }
    deadline = .distantFuture
    return true
  }

  /// Notes that the exchange has ended.
  mutating func exchangeEnded() {
    onWritten = nil
    onLate = nil
    if isSending { lost = taken }
    isSending = false
  }

  /// Takes the next call that waits, to fail it.
  mutating func removeWaiter() -> Sender? {
    guard let writer else { return waiting.popFirst()?.waiter }
    self.writer = nil
    return writer.waiter
  }
}
