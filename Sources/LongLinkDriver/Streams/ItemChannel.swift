// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
@_spi(Loop) package import LongLinkTransport
internal import Synchronization

/// This side of one stream, on its loop: the link that carries it, how it has ended, and its two
/// halves.
///
/// The requester makes it with the request and keeps it over retries; the responder makes it when
/// the request arrives. One task reads at a time; any number can write, in the order of their
/// calls.
package final class ItemChannel {
  /// The result of a read.
  package enum Read: Sendable {
    case items([[UInt8]])
    /// There are no more items. The requester also gets the outcome of the request.
    case ended(Outcome)
  }

  /// The result of writing an item.
  package enum Write {
    case done
    case failed(LongLinkError)
    /// The connection has taken the item, and sends it when there are credit and room.
    case taken
    /// The item has to wait for other items, or for the request to be sent.
    case mustWait
  }

  package let loop: EventLoop
  /// The stream's number in this process, from 1. A serial may be used on several connections.
  let number = ItemChannel.count.add(1, ordering: .relaxed).newValue
  /// The type of the request, for errors.
  private let type: MessageType
  /// The method of the request, for errors.
  let method: MethodName?
  /// The directions in which this side may send and receive.
  let shape: StreamShape
  let isRequester: Bool
  /// The requester's window, in bytes; nil for the configured size.
  private let window: Int?
  private let itemTimeout: Int64?
  /// Whether the requester opens the stream again when it moves to another connection.
  let isResuming: Bool
  /// Whether the request was cancelled because there is another connection for the stream.
  private(set) var isReplaced = false
  /// Since when a link carries the request; nil if none does.
  private(set) var carriedSince: LinkInstant?

  private static let count = Atomic<UInt64>(0)

  /// The link that carries the request; nil before it is sent, and when the exchange has ended.
  @safe @exclusivity(unchecked) private(set) var port: StreamPort?
  /// The request's serial on the link that carries or has carried it, and the link's peer.
  private var serial: UInt32?
  private var peer: SocketAddress?
  /// How the exchange has ended; nil while it goes on. For a responder, it is always an error.
  @safe @exclusivity(unchecked) package private(set) var outcome: Outcome?
  /// Whether the requester has ended its items. The exchange goes on.
  private(set) var peerHasEnded = false
  /// Whether the requester's response has begun to arrive, so that no item has a time limit.
  private var isBeingAnswered = false
  /// The link of an ended exchange, as long as items count there that the application has not
  /// taken.
  private var pastPort: LoopBound<StreamPort>?

  // While a half is changed it calls nothing, so it needs no exclusivity checks at run time.
  @safe @exclusivity(unchecked) private(set) var reading = ItemReading()
  @safe @exclusivity(unchecked) var writing = ItemWriting()
  private var timer: LoopTimer?

  /// The functions that wait for the outcome of the requester's exchange.
  private var onOutcome: [(Outcome) -> Void] = []
  /// The callers that wait for the end of the exchange.
  private var awaitsEnd: [(id: UInt64, waiter: Waiter<Void>)] = []
  private var lastID: UInt64 = 0

  /// Makes the channel of a requester.
  package init(
    _ type: MessageType, _ shape: StreamShape, _ options: StreamOptions,
    of method: MethodName? = nil, isResuming: Bool = false, on loop: EventLoop
  ) {
    self.loop = loop
    self.type = type
    self.method = method
    self.shape = shape
    isRequester = true
    self.isResuming = isResuming
    window = options.window
    itemTimeout = options.itemTimeout?.clampedNanoseconds
  }

  /// Makes the channel of a responder, whose request has arrived.
  init(
    _ type: MessageType, _ shape: StreamShape, of method: MethodName?, itemTimeout: Int64?,
    serial: UInt32, on link: Link
  ) {
    loop = link.loop
    self.type = type
    self.method = method
    self.shape = shape
    isRequester = false
    isResuming = false
    window = nil
    self.itemTimeout = itemTimeout
    port = StreamPort(link: link, serial: serial)
    self.serial = serial
    peer = link.peer
    peerHasEnded = !shape.contains(.requestItems)
  }

  deinit {
    guard let pastPort else { return }
    pastPort.loop.execute { pastPort.value.tookUnread(.max) }
  }

  var sendsItems: Bool {
    shape.contains(isRequester ? .requestItems : .responseItems)
  }

  /// The credit and directions that the request asks for, in the form of the core.
  func terms(on link: Link) -> StreamTerms {
    StreamTerms(
      credit: shape.contains(.responseItems)
        ? window ?? link.connection.settings.windows.first : nil,
      largestWindow: window, sendsItems: shape.contains(.requestItems))
  }
}

// MARK: - The exchange

extension ItemChannel {
  /// Handles that a link now carries the request.
  func opened(on link: Link, serial: UInt32) {
    port = StreamPort(link: link, serial: serial)
    self.serial = serial
    peer = link.peer
    if isResuming {
      carriedSince = loop.now
      if reading.isAwaited { armForReading() }
    }
    sendWaiting()
  }

  /// Notes that the request will be cancelled because another connection takes over the stream.
  func replace() { isReplaced = true }

  /// Handles that no link carries the request any more. It will be sent again.
  func detached() {
    port = nil
    serial = nil
    if isResuming { (reading.deadline, carriedSince) = (.distantFuture, nil) }
    guard isBeingAnswered else { return }
    isBeingAnswered = false
    if reading.isAwaited { armForReading() }
    if !writing.isEmpty { armForWriting() }
  }

  /// Handles that the response has begun to arrive.
  func responseBegan() {
    isBeingAnswered = true
    reading.deadline = .distantFuture
    writing.deadline = .distantFuture
  }

  /// Ends the responder's side of the exchange.
  func close(_ detail: String) {
    ended(.failure(error(.closed, detail)))
  }

  /// Ends the exchange. A responder's ends early by a cancel, or with its connection.
  func ended(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    let outcome = outcome.mapError { named($0) }
    self.outcome = outcome
    // The items are dropped even if the handler goes on. Otherwise a peer could cancel streams one
    // by one, each of which would retain a window of items.
    if !isRequester { reading.drop() }
    if let port, port.holdsUnread { pastPort = LoopBound(port, on: loop) }
    port = nil
    writing.exchangeEnded()
    wakeReader()
    failWriters(endedError)
    if let timer { loop.cancel(timer) }
    timer = nil
    let waits = onOutcome
    onOutcome = []
    for wait in waits { wait(outcome) }
    for wait in awaitsEnd { wait.waiter(()) }
    awaitsEnd = []
  }

  /// Calls a function once, with the outcome of the requester's exchange.
  package func whenEnded(_ function: @escaping (Outcome) -> Void) {
    if let outcome { function(outcome) } else { onOutcome.append(function) }
  }

  /// Calls a function with the error of a read or write, and with the delivery of the request. The
  /// error has cancelled the request, so this waits until it has ended.
  func settle(_ error: LongLinkError, _ function: @escaping (LongLinkError) -> Void) {
    guard isRequester, error.delivery == .sent else { return function(error) }
    whenEnded { function(error.with(delivery: $0.delivery)) }
  }

  /// Waits for the end of the exchange; returns the number of the wait, or nil if it has ended.
  package func awaitEnd(_ waiter: Waiter<Void>) -> UInt64? {
    guard outcome == nil else {
      waiter(())
      return nil
    }
    lastID += 1
    awaitsEnd.append((lastID, waiter))
    return lastID
  }

  /// Ends the wait of a task that was cancelled.
  package func cancelAwaitEnd(_ id: UInt64) {
    guard let index = awaitsEnd.firstIndex(where: { $0.id == id }) else { return }
    awaitsEnd.remove(at: index).waiter(())
  }

  /// Makes the error of a read or write.
  ///
  /// Only the end of the request decides whether it was sent. Before that, an error says that it
  /// may have been: a request that waits can still be sent, also while it is being cancelled.
  func error(
    _ code: LongLinkError.Code, _ detail: String, delivery: Delivery? = nil
  ) -> LongLinkError {
    named(
      LongLinkError(
        code, delivery: delivery ?? outcome?.delivery ?? .sent,
        doing: .request(type, serial: serial), detail: detail, peer: peer,
        stream: number))
  }

  private func named(_ error: LongLinkError) -> LongLinkError {
    method.map { error.of($0) } ?? error
  }
}

// MARK: - Reading

extension ItemChannel {
  /// The number of items that were read.
  package var itemsRead: UInt64 { reading.count }

  /// Whether items wait for the application.
  var hasWaiting: Bool { !reading.inbox.isEmpty }

  /// Whether any item has arrived. If so, the peer has run its handler.
  var hasReceived: Bool { reading.hasReceived }

  /// Handles an item, or the end of the items, that has arrived.
  @inline(__always)
  func received(_ item: Arrival, on link: Link) {
    guard item.kind != .end else { return receivedEnd() }
    switch reading.place(cost: item.cost) {
    case .reader(let resume): resume(.items([link.takeBody(of: item)]))
    case .inbox: StreamPort(link: link, serial: item.serial).move(item, to: &reading.inbox)
    case .nowhere: StreamPort(link: link, serial: item.serial).took(item.cost)
    }
  }

  /// Handles the end of the requester's items. The exchange goes on.
  private func receivedEnd() {
    reading.setPeerStuck(false)
    peerHasEnded = true
    wakeReader()
  }

  /// Notes that the peer lacks credit for the rest of an item until whole items are taken.
  func peerIsStuck() {
    reading.setPeerStuck(true)
    unstick()
  }

  /// Gives a stuck peer credit, if the application has taken all whole items.
  private func unstick() {
    if reading.unsticks() { port?.lent() }
  }

  /// Returns up to `limit` items, or the end; nil if nothing has arrived. Items of earlier reads
  /// count as taken from now on.
  package func read(upTo limit: Int) -> Read? {
    takeBack()
    guard let items = reading.next(upTo: limit) else { return end }
    unstick()
    return .items(items)
  }

  /// Returns the next item; nil if none has arrived. Needs no array of items. Items of earlier
  /// reads count as taken from now on.
  @inline(__always)
  func readOne() -> [UInt8]? {
    takeBack()
    guard let item = reading.next() else { return nil }
    unstick()
    return item
  }

  @inline(__always)
  private func takeBack() {
    if let cost = reading.takeBack() { reportTaken(cost) }
  }

  private func reportTaken(_ cost: Int) {
    port?.took(cost)
    guard let pastPort else { return }
    pastPort.value.tookUnread(cost)
    if !hasWaiting {
      pastPort.value.tookUnread(.max)
      self.pastPort = nil
    }
  }

  /// The end of the items, if all were read; nil if more may come.
  private var end: Read? {
    guard let outcome else { return peerHasEnded ? .ended(.success([])) : nil }
    guard isRequester else { return .ended(outcome) }
    return .ended(outcome.mapError { $0.with(itemsReceived: itemsRead) })
  }

  private func wakeReader() {
    guard let end else { return }
    reading.readerWithoutItems()?(end)
  }

  /// Waits for items or the end; returns the number of the wait, by which it can be cancelled.
  package func wait(
    untilDraining: Bool = false, _ resume: @escaping (Read) -> Void
  ) -> UInt64 {
    let id = reading.wait(untilDraining: untilDraining, resume)
    armForReading()
    return id
  }

  /// Ends the wait of a task that was cancelled.
  package func cancelRead(_ id: UInt64) {
    if let resume = reading.cancel(id) { resume(failedRead(.cancelled, "")) }
  }

  /// The longest wait for an item, as text.
  var itemTimeText: String { "\(Duration.nanoseconds(itemTimeout ?? 0)) (`itemTimeout`)" }

  private func failedRead(_ code: LongLinkError.Code, _ detail: String) -> Read {
    .ended(.failure(error(code, detail).with(itemsReceived: itemsRead)))
  }

  /// Whether the responder's connection is being left: one side has sent a goaway.
  var isDraining: Bool { !isRequester && port?.isDraining ?? false }

  /// Handles that the connection is being left, which ends reads that asked for it.
  func drains() {
    if let resume = reading.drain() { resume(.ended(.success([]))) }
  }

  /// Drops all items from now on, because the application will not read them.
  package func discardItems() { reportTaken(reading.discard()) }
}

// MARK: - Time

extension ItemChannel: TimerHandler {
  private func armForReading() {
    // While a stream waits to be opened again, no peer can send its items.
    guard let itemTimeout, !isBeingAnswered, !isResuming || port != nil else { return }
    reading.deadline = loop.now + itemTimeout
    arm()
  }

  func armForWriting() {
    guard let itemTimeout, writing.deadline == .distantFuture, !isBeingAnswered else { return }
    writing.deadline = loop.now + itemTimeout
    arm()
  }

  private func arm() {
    guard timer == nil else { return }
    let deadline = min(reading.deadline, writing.deadline)
    guard deadline != .distantFuture else { return }
    timer = loop.schedule(at: deadline, self, token: 0)
  }

  package func timerFired(token: UInt64) {
    timer = nil
    let now = loop.driver.now
    if let resume = reading.expire(at: now) {
      resume(failedRead(.deadlineExceeded, "no item came within \(itemTimeText)"))
    }
    if writing.expires(at: now) {
      failWriters(error(.deadlineExceeded, "the peer took no item within \(itemTimeText)"))
      // Only this gives up an item that the connection has taken.
      writing.onLate?()
    }
    arm()
  }
}
