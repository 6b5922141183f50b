@_spi(Containers) package import LongLinkCore
package import LongLinkTransport

/// The requests of one side, with what the core does not keep: bodies and whoever waits.
///
/// It lives on its loop. The owner says which link may carry requests; everything that ends a
/// request goes through `finish`, once.
///
/// No access to a stored property is open while another one begins: each call that may lead back
/// here is made after what it needs has been read. So the run-time checks of exclusive access are
/// left out where every request would pay for them.
package final class Requests: TimerHandler {
  let loop: EventLoop
  @safe @exclusivity(unchecked) var dispatch: Dispatch
  @safe @exclusivity(unchecked) var pending = SerialTable<PendingRequest>()
  @safe @exclusivity(unchecked) private var coder = MetadataCoder()
  private var timer: LoopTimer?
  private var armedFor = LinkInstant.distantFuture
  /// The links that carry requests, the newest last.
  @safe @exclusivity(unchecked) var links: [Link] = []
  /// The link that new requests go to.
  @safe @exclusivity(unchecked) package internal(set) var current: Link?
  @safe @exclusivity(unchecked) package var counters = RequestCounters()
  /// Requests that ended here and that the peer still runs, for all that is known.
  @safe @exclusivity(unchecked) var owed = OwedAnswers()
  private var isPumping = false
  let limits: RequestLimits
  /// What is left to send requests again that may have run.
  @safe @exclusivity(unchecked) var retryTokens: RetryTokens
  /// Called when the last request has ended.
  package var onIdle: (() -> Void)?
  /// Called when the last request of a link that takes no new ones has ended.
  package var onRetired: ((Link) -> Void)?
  /// Called when the deadline of a request passes that a link carries, with the link's number.
  package var onExpired: ((UInt32) -> Void)?

  package init(
    role: Role, limits: RequestLimits, serials: ClosedRange<UInt32>? = nil, on loop: EventLoop
  ) {
    self.loop = loop
    self.limits = limits
    retryTokens = RetryTokens(limits.resend.budget)
    dispatch = Dispatch(serials: serials ?? role.serials)
  }

  /// Requests that have not ended.
  package var count: Int { dispatch.count }
  package var waitingCount: Int { dispatch.waitingCount }
  package var waitingBytes: Int { dispatch.waitingBytes }
  package var carriedCount: Int { dispatch.carriedCount }
}

// MARK: - Beginning

extension Requests {
  /// Gives a request its identity and its place in the table; nothing is sent yet.
  @inline(__always)
  package func register(_ options: RequestOptions, defaults: RequestDefaults) -> RequestTicket {
    let now = loop.now
    let deadline = now + (options.deadline.map(\.clampedNanoseconds) ?? defaults.deadline)
    let id = dispatch.create(
      deadline: deadline, isOrdered: options.order == .ordered,
      notifiesCancel: options.cancellation == .notifyServer, at: now)
    counters.submitted += 1
    if deadline < armedFor { arm() }
    return RequestTicket(id: id, deadline: deadline)
  }

  /// Sends a registered request, or lets it wait, as there is a link or not.
  @inline(__always)
  package func launch(
    _ ticket: RequestTicket, _ type: MessageType, _ body: any BodyEncodable & Sendable,
    _ options: RequestOptions, offline: OfflinePolicy, _ completion: Completion
  ) {
    guard ticket.id.serial != 0 else { return turnAway(type, completion) }
    let request = PendingRequest(ticket, type, body, options, offline, completion)
    guard let link = current, hasTurn(ticket.id, request, on: link), hasRoom(link) else {
      pending.insert(request, for: ticket.id.serial)
      wait(ticket.id, request)
      return
    }
    // Into the table last, so that it need not be copied to be sent.
    let step = place(ticket.id, request, on: link)
    pending.insert(request, for: ticket.id.serial)
    follow(step, of: ticket.id, on: link)
  }

  /// Ends a request that could not be registered, since too few serials were free.
  private func turnAway(_ type: MessageType, _ completion: Completion) {
    counters.turnedAway += 1
    let error = LongLinkError(
      .overloaded, doing: "request type=\(type)",
      detail: "half of all serials are in use: \(dispatch.count) requests", peer: current?.peer)
    counters.count(error)
    completion(.failure(error))
  }

  /// Ends a registered request before anything is done for it, unless `launch` would send it.
  package func launch(
    _ ticket: RequestTicket, _ type: MessageType, _ body: any BodyEncodable & Sendable,
    _ options: RequestOptions, _ completion: Completion, failing make: (String) -> LongLinkError
  ) {
    guard ticket.id.serial != 0 else { return turnAway(type, completion) }
    let request = PendingRequest(ticket, type, body, options, .fail, completion)
    pending.insert(request, for: ticket.id.serial)
    guard dispatch.end(ticket.id) != nil else { return }
    finish(ticket.id, .failure(make(operation(ticket.id, request))))
    disarmIfUnused()
  }

  /// Whether the peer takes one more; it is told of requests that nobody waits for when they are
  /// what fills it.
  private func hasRoom(_ link: Link) -> Bool {
    guard link.hasRoom else { return false }
    let limit = link.session.agreement.maxInFlight
    let carried = dispatch.carriedCount(by: link.id)
    if carried + owed.count < limit { return true }
    guard carried < limit, let serial = owed.takeOldest() else { return false }
    _ = link.session.cancel(serial, .keptBack, notifying: true)
    link.writeAtEndOfTurn()
    return true
  }

  /// Whether a new request may go before any that waits, and the link takes one of its size.
  @inline(__always)
  private func hasTurn(_ id: RequestID, _ request: PendingRequest, on link: Link) -> Bool {
    let takesLarge = link.takesLarge
    return dispatch.isNext(
      id, isOrdered: request.isOrdered, on: link.id, takesLarge: takesLarge)
      && (takesLarge || !request.isLarge)
  }

  private func wait(_ id: RequestID, _ request: PendingRequest) {
    do throws(BodyError) {
      let terms = try request.terms
      let problem = limits.problem(
        with: terms.bytes, besides: dispatch.waitingCount, of: dispatch.waitingBytes)
      if let problem {
        counters.turnedAway += 1
        fail(id, .overloaded, request, problem)
      } else {
        dispatch.wait(id, terms)
      }
    } catch {
      fail(id, .encodingFailed, request, "\(error)")
    }
  }

  /// What came of handing a request to a link.
  private enum Step {
    case encoded
    case keptBack
    case failed(LongLinkError.Code, String)
  }

  /// Hands a request to a link.
  private func place(_ id: RequestID, _ request: PendingRequest, on link: Link) -> Step {
    if request.deadline <= loop.now { return .failed(.deadlineExceeded, "") }
    if link.session.speaksDialect, let objection = objection(to: request, id, on: link) {
      return .failed(.unsupported, objection)
    }
    do throws(BodyError) {
      if link.session.speaksDialect { try link.session.judge(request.body) }
      var metadata = try metadata(for: request, on: link)
      let size = try request.body.encodedByteCount
      var length = metadata.map { 2 + $0.count + size } ?? size
      if request.extras == nil, !link.session.accepts(bodyOf: length) {
        // The peer can do without the time that remains; the body it needs.
        metadata = nil
        length = size
      }
      guard link.session.accepts(bodyOf: length) else {
        let limit = link.session.agreement.maxBody
        return .failed(.tooLarge, "\(length) bytes, of which the peer accepts \(limit)")
      }
      let placement = try link.session.request(
        id.serial, type: request.type, metadata: metadata,
        priority: request.priority, count: size, at: loop.now
      ) { (span) throws(BodyError) in
        try request.body.encode(into: &span)
      }
      dispatch.placed(id, on: link.id, placement)
      // A dialect may have so few serials that this one was that of a request given up.
      if owed.count > 0 { owed.remove(id.serial) }
      return placement.begin == nil ? .keptBack : .encoded
    } catch {
      return .failed(.encodingFailed, "\(error)")
    }
  }

  /// Why the dialect has no word for a request; nil where it has.
  private func objection(to request: PendingRequest, _ id: RequestID, on link: Link) -> String? {
    guard let dialect = link.session.frameDialect else { return nil }
    if let metadata = request.extras?.metadata, metadata.isMoreThanPriority {
      return "\(dialect.name) has no place for an idempotency key, nor for entries"
    }
    return link.session.objection(toRequest: request.type, serial: id.serial)
  }

  private func follow(_ step: Step, of id: RequestID, on link: Link) {
    switch step {
    case .encoded:
      link.writeAtEndOfTurn()
    case .keptBack:
      link.drain()
      link.writeAtEndOfTurn()
    case .failed(let code, let detail):
      if let request = pending[id.serial] { fail(id, code, request, detail) }
    }
  }

  private func fail(
    _ id: RequestID, _ code: LongLinkError.Code, _ request: PendingRequest, _ detail: String
  ) {
    guard let entry = dispatch.end(id) else { return }
    finish(id, .failure(error(code, id, request, entry.past, detail)))
  }

  private func metadata(
    for request: PendingRequest, on link: Link
  ) throws(BodyError) -> [UInt8]? {
    guard link.session.agreement.features.contains(.metadata) else { return nil }
    // Rounded up, so that the peer does not give up before this side does.
    let remaining = UInt32(clamping: (request.deadline - loop.now + 999_999) / 1_000_000)
    if var metadata = request.extras?.metadata {
      metadata.remaining = remaining
      let bytes = try metadata.encodedBytes()
      guard bytes.count <= Wire.metadataLimit else {
        throw BodyError(.tooLarge, detail: "the metadata has \(bytes.count) bytes")
      }
      return bytes
    }
    return try coder.encode(remaining: remaining)
  }

  /// Sends what waits, as far as the peer takes it.
  package func pump() {
    // What fails at once comes back here; the outer call goes on with the rest.
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    while let link = current, dispatch.hasTurn(on: link.id, takesLarge: link.takesLarge),
      hasRoom(link), let id = dispatch.nextWaiting(on: link.id, takesLarge: link.takesLarge)
    {
      guard let request = pending[id.serial] else { continue }
      follow(place(id, request, on: link), of: id, on: link)
    }
  }
}

// MARK: - Deadlines

extension Requests {
  /// Lets go of the timer, when no request will come any more.
  package func stop() {
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  func arm() {
    guard let deadline = dispatch.deadline, deadline < armedFor else { return }
    if let timer { loop.cancel(timer) }
    armedFor = deadline
    timer = loop.schedule(at: deadline, self, token: 0)
  }

  /// The timer would keep this alive, and its loop awake, long after the last request.
  func disarmIfUnused() {
    guard dispatch.count == 0, let timer else { return }
    loop.cancel(timer)
    self.timer = nil
    armedFor = .distantFuture
  }

  package func timerFired(token: UInt64) {
    timer = nil
    armedFor = .distantFuture
    dispatch.elapsed(to: loop.driver.now)
    while let (id, entry) = dispatch.nextExpired() {
      guard let request = pending[id.serial] else { continue }
      if entry.link != 0 { onExpired?(entry.link) }
      let link = carrier(of: entry)
      if entry.placement.begin != nil { link?.deadlineMissed() }
      let delivery = withdraw(id, entry)
      finish(id, .failure(error(.deadlineExceeded, id, request, delivery, "", on: link)))
    }
    // The time of others has come to be sent again.
    if dispatch.waitingCount > 0 { pump() }
    arm()
  }
}
