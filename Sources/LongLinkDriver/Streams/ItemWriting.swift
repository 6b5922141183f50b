// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The sending half of a stream, on its loop: the item that the connection has taken, the items
/// that wait behind it, and the callers that wait until their item is sent.
///
/// It calls nothing: the channel sends the items, and resumes the waiters that it gets back.
struct ItemWriting {
  typealias Sender = Waiter<Result<Void, LongLinkError>>

  private struct Waiting {
    let id: UInt64
    let item: RequestBody
    let waiter: Sender
  }

  /// What has happened to an item that the connection has taken.
  enum Fate {
    case sent
    case waiting
    /// The exchange has ended before the item was sent.
    case lost
  }

  /// Whether an item has been passed to the connection.
  private(set) var hasBegun = false
  /// Whether the connection has taken an item and not encoded all of it yet.
  private(set) var isSending = false
  /// The number of items that the connection has taken to send later.
  private(set) var taken: UInt64 = 0
  /// The number of the last taken item, if the exchange has ended before it was sent.
  private var lost: UInt64?
  /// Whether no item follows the ones that wait.
  private(set) var hasEnd = false
  /// The caller that waits for the item that the connection has taken.
  private var writer: (id: UInt64, waiter: Sender)?
  private var waiting = Queue<Waiting>()
  private var lastID: UInt64 = 0
  /// When the waiting callers fail, and `onLate` is called.
  var deadline = LinkInstant.distantFuture
  /// The functions to call once no item waits, or if the items wait too long.
  private var onWritten: (() -> Void)?
  private(set) var onLate: (() -> Void)?

  /// Whether no item waits, here or in the connection.
  var isFlushed: Bool { !isSending && waiting.isEmpty }

  /// Whether no item waits behind the one that the connection has taken.
  var isEmpty: Bool { waiting.isEmpty }

  /// Whether any caller waits.
  var isAwaited: Bool { writer != nil || !waiting.isEmpty }

  // MARK: Sending

  /// Notes that the connection has encoded an item or, with `isTaken`, will send it later.
  mutating func passed(isTaken: Bool) {
    hasBegun = true
    guard isTaken else { return }
    isSending = true
    taken += 1
  }

  /// Notes that the taken item has been encoded; returns the waiter of its caller.
  mutating func sent() -> Sender? {
    isSending = false
    deadline = .distantFuture
    defer { writer = nil }
    return writer?.waiter
  }

  /// The next item to pass to the connection; nil if none waits, or one is still being sent.
  var next: RequestBody? { isSending ? nil : waiting.first?.item }

  /// Removes the next item, which was passed on or has failed. Returns the waiter of its caller;
  /// nil if the caller goes on waiting because the connection has taken the item.
  mutating func removeNext(isTaken: Bool) -> Sender? {
    guard let write = waiting.popFirst() else { return nil }
    // Each item has a time limit of its own.
    deadline = .distantFuture
    guard isTaken else { return write.waiter }
    writer = (write.id, write.waiter)
    return nil
  }

  /// What has happened to an item that the connection has taken. Taken items are numbered from 1.
  func fate(of item: UInt64) -> Fate {
    if item == lost { return .lost }
    return isSending && item == taken ? .waiting : .sent
  }

  // MARK: Waiting

  /// Waits until the connection has sent the item that it has taken; returns the number of the
  /// wait.
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

  /// Ends a wait. A waiting item is withdrawn; one that the connection has taken is still sent.
  mutating func cancel(_ id: UInt64) -> Sender? {
    var cancelled: Sender?
    if let writer, writer.id == id {
      self.writer = nil
      cancelled = writer.waiter
    }
    let wasNext = writer == nil && waiting.first?.id == id
    if let write = waiting.remove(where: { $0.id == id }) { cancelled = write.waiter }
    // The time of the next item begins now. A handler that has returned also waits for the items.
    if wasNext && !waiting.isEmpty || !isAwaited && onLate == nil { deadline = .distantFuture }
    return cancelled
  }

  /// Sets the functions to call once no item waits, or if the items wait too long.
  mutating func whenWritten(
    _ function: @escaping () -> Void, orLate late: @escaping () -> Void
  ) {
    onWritten = function
    onLate = late
  }

  /// Takes the function to call now that no item waits.
  mutating func takeOnWritten() -> (() -> Void)? {
    defer { onWritten = nil }
    return onWritten
  }

  // MARK: Ends

  /// Notes that no item follows; returns false if that was known already.
  mutating func end() -> Bool {
    defer { hasEnd = true }
    return !hasEnd
  }

  /// Whether the time of the waiting callers is over. If so, it is reset.
  mutating func expires(at now: LinkInstant) -> Bool {
    guard deadline <= now else { return false }
    deadline = .distantFuture
    return true
  }

  /// Notes that the exchange has ended, so that nothing more is sent.
  mutating func exchangeEnded() {
    onWritten = nil
    onLate = nil
    if isSending { lost = taken }
    isSending = false
  }

  /// Takes the next waiter, in order to fail it.
  mutating func removeWaiter() -> Sender? {
    guard let writer else { return waiting.popFirst()?.waiter }
    self.writer = nil
    return writer.waiter
  }
}
