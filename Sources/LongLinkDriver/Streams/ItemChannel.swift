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

  package let loop: EventLoop
  /// The stream's number in this process, from 1: other connections have streams with the same
  /// serial.
  let number = ItemChannel.count.add(1, ordering: .relaxed).newValue
  /// The type of the request, for errors.
  private let type: MessageType
  /// The method of the request, for errors.
  private let method: MethodName?
  /// The directions in which this side may send and receive.
  private let shape: StreamShape
  let isRequester: Bool
  /// The requester's window, if it does not have the configured size.
  private let window: Int?
  private let itemTimeout: Int64?
  /// Whether the requester opens the stream again where its next connection is.
  let isResuming: Bool
  /// Whether the request was cancelled because there is another connection.
  private(set) var isReplaced = false
  /// Since when a link has carried the request; nil before.
  private(set) var carriedSince: LinkInstant?

  private static let count = Atomic<UInt64>(0)

  /// The link that carries the request; nil before it is sent, and when the exchange has ended.
  @safe @exclusivity(unchecked) private(set) var port: StreamPort?
  /// The link's number for the request that it carries or has carried, and its peer.
  private var serial: UInt32?
  private var peer: SocketAddress?
  /// How the exchange has ended: for a responder, always with an error; nil while it has not.
  @safe @exclusivity(unchecked) package private(set) var outcome: Outcome?
  /// Whether the requester has ended its items; the exchange goes on.
  private var peerHasEnded = false
  /// Whether the response to the requester has begun to arrive: no item has a time limit then.
  private var isBeingAnswered = false
  /// The link of an exchange that has ended, while it counts items that the application has not
  /// taken.
  private var pastPort: LoopBound<StreamPort>?

  // Neither half calls anything while it is changed, so that no check at run time is needed.
  @safe @exclusivity(unchecked) private var reading = ItemReading()
  @safe @exclusivity(unchecked) var writing = ItemWriting()
  private var timer: LoopTimer?

  /// Waits for the outcome of the requester's exchange.
  private var onOutcome: [(Outcome) -> Void] = []
  /// Calls that wait for the end of the exchange.
  private var awaitsEnd: [(id: UInt64, waiter: Waiter<Void>)] = []
  private var lastID: UInt64 = 0

  /// Makes the requester's side.
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

  /// Makes the responder's side of a request that has arrived.
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

  /// What the request asks for, as the core needs it.
  func terms(on link: Link) -> StreamTerms {
    StreamTerms(
      credit: shape.contains(.responseItems)
        ? window ?? link.connection.settings.windows.first : nil,
      largestWindow: window, sendsItems: shape.contains(.requestItems))
  }
}

// MARK: - The exchange

extension ItemChannel {
  /// A link carries the request.
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

  /// The request is about to be cancelled, because there is another connection for the stream.
  func replace() { isReplaced = true }

  /// No link carries the request any more; it will be sent again.
  func detached() {
    port = nil
    serial = nil
    if isResuming { (reading.deadline, carriedSince) = (.distantFuture, nil) }
    guard isBeingAnswered else { return }
    isBeingAnswered = false
    if reading.isAwaited { armForReading() }
    if !writing.isEmpty { armForWriting() }
  }

  /// The response has begun to arrive.
  func responseBegan() {
    isBeingAnswered = true
    reading.deadline = .distantFuture
    writing.deadline = .distantFuture
  }

  /// Ends the responder's side.
  func close(_ detail: String) {
    ended(.failure(error(.closed, detail)))
  }

  /// The exchange has ended; for a responder, by a cancel or with its connection.
  func ended(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    let outcome = outcome.mapError { named($0) }
    self.outcome = outcome
    // A handler that goes on regardless must not keep them: a peer could cancel one stream after
    // the other, and each would hold a window.
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

  /// Waits for the end of the exchange; returns the number of the wait, nil if it has ended.
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

  /// Whether an item has come: then the peer has run its handler.
  var hasReceived: Bool { reading.hasReceived }

  /// An item, or the end of the items, has arrived.
  @inline(__always)
  func received(_ item: Arrival, on link: Link) {
    guard item.kind != .end else { return receivedEnd() }
    switch reading.place(cost: item.cost) {
    case .reader(let resume): resume(.items([link.takeBody(of: item)]))
    case .inbox: StreamPort(link: link, serial: item.serial).move(item, to: &reading.inbox)
    case .nowhere: StreamPort(link: link, serial: item.serial).took(item.cost)
    }
  }

  /// The requester has ended its items; the exchange goes on.
  private func receivedEnd() {
    reading.setPeerStuck(false)
    peerHasEnded = true
    wakeReader()
  }

  /// The peer gets no credit for the rest of an item, because whole items were not taken.
  func peerIsStuck() {
    reading.setPeerStuck(true)
    unstick()
  }

  /// Lets a peer go on that is stuck, if the application has all whole items.
  private func unstick() {
    if reading.unsticks() { port?.lent() }
  }

  /// Returns up to `limit` items, or the end; nil if there is nothing yet. Items that were returned
  /// before count as taken.
  package func read(upTo limit: Int) -> Read? {
    takeBack()
    guard let items = reading.next(upTo: limit) else { return end }
    unstick()
    return .items(items)
  }

  /// Returns the next item if it is here, without an array of items around it. Items that were
  /// returned before count as taken.
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

  /// The end of the items, if it has come.
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

  /// Ends a wait of a task that was cancelled.
  package func cancelRead(_ id: UInt64) {
    if let resume = reading.cancel(id) { resume(failedRead(.cancelled, "")) }
  }

  /// The longest wait for an item, as text.
  var itemTimeText: String { "\(Duration.nanoseconds(itemTimeout ?? 0)) (`itemTimeout`)" }

  private func failedRead(_ code: LongLinkError.Code, _ detail: String) -> Read {
    .ended(.failure(error(code, detail).with(itemsReceived: itemsRead)))
  }

  /// Whether the responder's connection is to be left: one of the sides has said so.
  var isDraining: Bool { !isRequester && port?.isDraining ?? false }

  /// The connection is to be left.
  func drains() {
    if let resume = reading.drain() { resume(.ended(.success([]))) }
  }

  /// Drops all items from here on: nobody will read them.
  package func discardItems() { reportTaken(reading.discard()) }
}

// MARK: - Time

extension ItemChannel: TimerHandler {
  private func armForReading() {
    // Nobody can send an item of a stream that waits to be opened again.
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
      // Nobody else gives up an item that the connection has taken.
      writing.onLate?()
    }
    arm()
  }
}
