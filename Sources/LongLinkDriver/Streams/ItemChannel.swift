// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
@_spi(Loop) package import LongLinkTransport
internal import Synchronization

/// This side of one stream, on its loop: the items that wait for the application, and the calls of
/// the application that wait for items or for credit.
///
/// The requester makes it with the request and keeps it over retries; the responder makes it when
/// the request arrives. One task reads at a time; any number can write, in the order of their
/// calls.
package final class ItemChannel {
  /// What a read returned.
  package enum Read: Sendable {
    case items([[UInt8]])
    /// There are no more items. For the requester, with the outcome of the request.
    case ended(Outcome)
  }

  /// What became of an item that was written.
  package enum Write {
    case done
    case failed(LongLinkError)
    /// The connection has taken it, and waits for credit or room.
    case taken
    /// The item has to wait for other items, or for the request to be sent.
    case mustWait
  }

  struct WaitingWrite {
    let id: UInt64
    let item: RequestBody
    let waiter: Waiter<Result<Void, LongLinkError>>
  }

  package let loop: EventLoop
  /// The stream's number in this process, from 1: other connections have streams with the same
  /// serial.
  let number = ItemChannel.count.add(1, ordering: .relaxed).newValue
  /// The type of the request, for errors.
  let type: MessageType
  /// The directions in which this side may send and receive.
  let shape: StreamShape
  let isRequester: Bool
  /// The requester's window, if it does not have the configured size.
  private let window: Int?
  let itemTimeout: Int64?

  private static let count = Atomic<UInt64>(0)

  // The link that carries the request; nil before it is sent, and when the exchange has ended.
  var link: Link?
  var serial: UInt32 = 0
  private var peer: SocketAddress?
  private var hasOpened = false
  /// The outcome of the exchange; for a responder success once the requester's items have ended.
  var outcome: Outcome?
  /// Why the responder's exchange has ended; nil while it has not, and for a requester.
  var closed: LongLinkError?
  /// Whether the response to the requester has begun to arrive: no item has a time limit then.
  private(set) var isBeingAnswered = false

  // Reading
  private var inbox = ItemInbox()
  var reader: (id: UInt64, resume: (Read) -> Void)?
  /// The cost of the items that the last read returned: the application still holds them.
  private var lent = 0
  /// The cost of items that were taken and not reported to the connection yet.
  private var unreported = 0
  /// The number of items that were read.
  package private(set) var itemsRead: UInt64 = 0
  /// Whether items are dropped on arrival, because nobody will read them.
  private var discardsItems = false
  /// Whether an item was dropped.
  private var hasDropped = false
  /// Whether the peer gets no credit for the rest of an item until the application has all whole
  /// ones.
  private var isPeerStuck = false
  /// The link of an exchange that has ended, while it counts items that the application has not
  /// taken.
  private var pastLink: LoopBound<Link>?

  // Writing
  /// Whether an item has been passed to the connection.
  package internal(set) var hasWritten = false
  /// Whether the connection holds an item that it has not encoded to its end.
  var isSending = false
  /// The number of items that the connection has held like that.
  package internal(set) var itemsTaken: UInt64 = 0
  /// The number of the last of them, if the exchange has ended before it was sent.
  private(set) var itemLost: UInt64?
  var writer: (id: UInt64, waiter: Waiter<Result<Void, LongLinkError>>)?
  var waiting = Queue<WaitingWrite>()
  var endsItems = false
  /// Called once no written item waits for the connection.
  var onWritten: (() -> Void)?
  /// Called if written items wait too long for the connection.
  var onLate: (() -> Void)?
  /// Waits for the outcome of the requester's exchange.
  private var onOutcome: [(Outcome) -> Void] = []
  /// Calls that wait for the end of the exchange.
  var awaitsEnd: [(id: UInt64, waiter: Waiter<Void>)] = []

  var lastID: UInt64 = 0
  var timer: LoopTimer?
  var readDeadline = LinkInstant.distantFuture
  var writeDeadline = LinkInstant.distantFuture

  /// Makes the requester's side.
  package init(
    _ type: MessageType, _ shape: StreamShape, _ options: StreamOptions, on loop: EventLoop
  ) {
    self.loop = loop
    self.type = type
    self.shape = shape
    isRequester = true
    window = options.window
    itemTimeout = options.itemTimeout?.clampedNanoseconds
  }

  /// Makes the responder's side of a request that has arrived.
  init(
    _ type: MessageType, _ shape: StreamShape, itemTimeout: Int64?, serial: UInt32, on link: Link
  ) {
    loop = link.loop
    self.type = type
    self.shape = shape
    isRequester = false
    window = nil
    self.itemTimeout = itemTimeout
    self.link = link
    self.serial = serial
    peer = link.peer
    hasOpened = true
    if !shape.contains(.requestItems) { outcome = .success([]) }
  }

  deinit {
    guard let pastLink else { return }
    pastLink.loop.execute { [serial] in pastLink.value.forgetUnread(serial) }
  }

  var sendsItems: Bool {
    shape.contains(isRequester ? .requestItems : .responseItems)
  }

  /// What the request asks for, as the core needs it.
  func terms(on link: Link) -> StreamTerms {
    StreamTerms(
      credit: shape.contains(.responseItems) ? window ?? link.firstWindow : nil,
      largestWindow: window, sendsItems: shape.contains(.requestItems))
  }

  // MARK: The exchange

  /// A link carries the request.
  func opened(on link: Link, serial: UInt32) {
    self.link = link
    self.serial = serial
    peer = link.peer
    hasOpened = true
    sendWaiting()
  }

  /// No link carries the request any more; it will be sent again.
  func detached() {
    link = nil
    hasOpened = false
    guard isBeingAnswered else { return }
    isBeingAnswered = false
    if reader != nil { armForReading() }
    if !waiting.isEmpty { armForWriting() }
  }

  /// The response has begun to arrive.
  func responseBegan() {
    isBeingAnswered = true
    readDeadline = .distantFuture
    writeDeadline = .distantFuture
  }

  /// The exchange has ended; for a responder, by a cancel or with its connection.
  func ended(_ outcome: Outcome) {
    if isRequester {
      guard self.outcome == nil else { return }
      self.outcome = outcome
    } else if case .failure(let error) = outcome, closed == nil {
      closed = error
      // A handler that goes on regardless must not keep them: a peer could cancel one stream after
      // the other, and each would hold a window.
      inbox = ItemInbox()
    }
    if isRequester, let link, link.holdsUnread(serial) { pastLink = LoopBound(link, on: loop) }
    link = nil
    onWritten = nil
    onLate = nil
    wakeReader()
    let failure = endedError
    writer?.waiter(.failure(failure))
    writer = nil
    if isSending { itemLost = itemsTaken }
    isSending = false
    while let write = waiting.popFirst() { write.waiter(.failure(failure)) }
    disarm()
    let waits = onOutcome
    onOutcome = []
    for wait in waits { wait(outcome) }
    for wait in awaitsEnd { wait.waiter(()) }
    awaitsEnd = []
  }

  /// The outcome of the requester's exchange; nil while it has not ended.
  package var outcomeNow: Outcome? { outcome }

  /// Calls a function once with the outcome of the requester's exchange.
  package func whenEnded(_ function: @escaping (Outcome) -> Void) {
    if let outcome { function(outcome) } else { onOutcome.append(function) }
  }

  /// Calls a function with an error of a read or write and the delivery of the request, once that
  /// has ended: it was cancelled because of the error.
  func settle(_ error: LongLinkError, _ function: @escaping (LongLinkError) -> Void) {
    guard isRequester, error.delivery == .sent else { return function(error) }
    whenEnded { function(error.with(delivery: $0.delivery)) }
  }

  /// The requester has ended its items; the exchange goes on.
  private func receivedEnd() {
    outcome = .success([])
    wakeReader()
  }

  /// Makes the error of a read or write.
  ///
  /// Only the end of the request decides whether it was sent. Before that, an error says that it
  /// may have been: a request that waits can still be sent, also while it is being cancelled.
  func error(
    _ code: LongLinkError.Code, _ detail: String, delivery: Delivery? = nil
  ) -> LongLinkError {
    let known = isRequester ? outcome?.delivery : nil
    return LongLinkError(
      code, delivery: delivery ?? known ?? .sent,
      doing: .request(type, serial: hasOpened ? serial : nil), detail: detail, peer: peer,
      stream: number)
  }
}

// MARK: - Reading

extension ItemChannel {
  /// An item, or the end of the items, has arrived.
  @inline(__always)
  func received(_ item: Arrival, on link: Link) {
    isPeerStuck = false
    if item.kind == .end {
      receivedEnd()
    } else if let reader, inbox.isEmpty {
      self.reader = nil
      readDeadline = .distantFuture
      lent = item.cost
      itemsRead += 1
      reader.resume(.items([link.takeBody(of: item)]))
    } else if discardsItems {
      hasDropped = true
      link.tookItems(serial, cost: item.cost)
    } else {
      link.moveItem(item, to: &inbox)
    }
  }

  /// Returns up to `limit` items, or the end; nil if there is nothing yet. Items that were returned
  /// before count as taken.
  package func read(upTo limit: Int) -> Read? {
    takeBack()
    if inbox.isEmpty { return end }
    var items: [[UInt8]] = []
    items.reserveCapacity(min(limit, inbox.count))
    while items.count < limit, !inbox.isEmpty, lent < 65_536 {
      let (item, cost) = inbox.removeFirst()
      items.append(item)
      lent += cost
    }
    itemsRead += UInt64(items.count)
    if inbox.isEmpty { emptied() }
    return .items(items)
  }

  /// Returns the next item if it is here, without an array of items around it. Items that were
  /// returned before count as taken.
  @inline(__always)
  func readOne() -> [UInt8]? {
    takeBack()
    guard !inbox.isEmpty else { return nil }
    let (item, cost) = inbox.removeFirst()
    lent = cost
    itemsRead += 1
    if inbox.isEmpty { emptied() }
    return item
  }

  /// The application has all whole items.
  private func emptied() {
    inbox.releaseRoom()
    if isPeerStuck { unstick() }
  }

  private func unstick() {
    isPeerStuck = false
    link?.lentItems(serial)
  }

  /// The peer gets no credit for the rest of an item, because whole items were not taken.
  func peerIsStuck() {
    isPeerStuck = true
    if inbox.isEmpty { unstick() }
  }

  /// Whether items wait for the application.
  var hasWaiting: Bool { !inbox.isEmpty }

  /// Whether an item has come: then the peer has run its handler.
  var hasReceived: Bool { itemsRead > 0 || !inbox.isEmpty || hasDropped }

  /// Counts the items that were returned before as taken.
  @inline(__always)
  private func takeBack() {
    precondition(reader == nil, "only one task may read the items of a stream at a time")
    unreported += lent
    lent = 0
    if unreported >= 16_384 || unreported > 0 && inbox.isEmpty { reportTaken() }
  }

  private func reportTaken() {
    let cost = unreported
    unreported = 0
    link?.tookItems(serial, cost: cost)
    guard let pastLink else { return }
    pastLink.value.tookUnread(serial, cost: cost)
    if inbox.isEmpty {
      pastLink.value.forgetUnread(serial)
      self.pastLink = nil
    }
  }

  /// The end of the items, if it has come.
  private var end: Read? {
    if let closed { return .ended(.failure(closed)) }
    guard let outcome else { return nil }
    return .ended(outcome.mapError { $0.with(itemsReceived: itemsRead) })
  }

  /// Waits for items or the end; returns the number of the wait, by which it can be cancelled.
  package func wait(_ resume: @escaping (Read) -> Void) -> UInt64 {
    lastID += 1
    reader = (lastID, resume)
    armForReading()
    return lastID
  }

  /// Ends a wait of a task that was cancelled.
  package func cancelRead(_ id: UInt64) {
    guard let reader, reader.id == id else { return }
    self.reader = nil
    readDeadline = .distantFuture
    reader.resume(.ended(.failure(error(.cancelled, "").with(itemsReceived: itemsRead))))
  }

  private func wakeReader() {
    guard let reader, inbox.isEmpty, let end else { return }
    self.reader = nil
    readDeadline = .distantFuture
    reader.resume(end)
  }

  /// Drops all items from here on: nobody will read them.
  package func discardItems() {
    discardsItems = true
    unreported += lent
    lent = 0
    if !inbox.isEmpty { hasDropped = true }
    while !inbox.isEmpty { unreported += inbox.removeFirst().cost }
    reportTaken()
  }
}
