// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

/// The requests of one side, with the bodies and callers that the core does not keep.
///
/// It lives on its loop. The owner decides which link carries requests. A request that has left the
/// table ends in `answered` or in `finish`, once.
///
/// No access to a stored property is open while another one begins: calls that may come back here
/// are made after their arguments have been read. So run-time exclusivity checks are off where
/// every request would pay for them.
package final class Requests: TimerHandler {
  let loop: EventLoop
  @safe @exclusivity(unchecked) var table: RequestTable<PendingRequest>
  @safe @exclusivity(unchecked) private var metadataCache = MetadataCache()
  private var timer: LoopTimer?
  private var armedFor = LinkInstant.distantFuture
  /// The links that carry requests, the newest last.
  @safe @exclusivity(unchecked) var links: [Link] = []
  /// The link that new requests go to.
  @safe @exclusivity(unchecked) package internal(set) var current: Link?
  @safe @exclusivity(unchecked) package var counters = RequestCounters()
  /// Requests that ended here and may still run at the peer.
  @safe @exclusivity(unchecked) var owed = OwedAnswers()
  @safe @exclusivity(unchecked) var resumptions = Resumptions()
  private var isPumping = false
  /// The number of calls on the stack that make requests with completion handlers.
  @safe @exclusivity(unchecked) var handlersDeferred = 0
  let limits: RequestLimits
  /// The tokens that are left for retries of requests that may have run.
  @safe @exclusivity(unchecked) var retryTokens: RetryTokens
  /// Called when the last request has ended.
  @safe @exclusivity(unchecked) package var onIdle: (() -> Void)?
  /// Called when the last request of a retired link has ended.
  @safe @exclusivity(unchecked) package var onRetired: ((Link) -> Void)?
  /// Whether requests go over short links while there is no link.
  package var hasShortLinks = false
  /// Called when requests may wait that no link carries, if the owner has short links.
  package var onWaiting: (() -> Void)?
  /// Called with a link's number when the deadline of a request on that link passes.
  package var onExpired: ((UInt32) -> Void)?
  /// Returns why requests cannot be sent now, for the error of one that has waited too long.
  package var waitReason: (() -> WaitReason?)?

  package init(
    role: Role, limits: RequestLimits, serials: ClosedRange<UInt32>? = nil, on loop: EventLoop
  ) {
    self.loop = loop
    self.limits = limits
    retryTokens = RetryTokens(limits.retry.budget)
    table = RequestTable(serials: serials ?? role.serials)
  }

  /// Requests that have not ended.
  package var count: Int { table.count }
  package var waitingCount: Int { table.waitingCount }
  /// Whether there is a link that new requests go to.
  package var hasLink: Bool { current != nil }
  /// Whether that is `link`.
  package func isCurrent(_ link: Link) -> Bool { current === link }
  package var waitingBytes: Int { table.waitingBytes }
  package var carriedCount: Int { table.carriedCount }
  /// Requests that a link carries.
  package func carriedCount(by link: Link) -> Int { table.carriedCount(by: link.id) }
}

// MARK: - Beginning

extension Requests {
  /// Sends a request, or queues it if there is no link or no room.
  package func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion, defaults: RequestDefaults
  ) -> RequestID {
    let now = loop.now
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion) }
    let request = PendingRequest(
      type, body, options, until: deadline, offline: options.offline ?? defaults.offline,
      on: loop, completion)
    let isOrdered = options.order == .ordered
    guard let link = current, isNext(id, request, isOrdered: isOrdered, on: link), hasRoom(link)
    else {
      register(id, request, options, at: now)
      wait(id, request)
      return id
    }
    // Into the table last, so it is neither looked up nor copied to be sent.
    switch send(id, request, on: link, at: now) {
    case .sent(let position, let isTimeTold):
      table.register(
        id, request, deadline: request.limit, isOrdered: isOrdered,
        notifiesCancel: options.notifiesCancel, on: link.id, at: position,
        isTimeTold: isTimeTold, now: now)
      if deadline < armedFor { arm() }
      // Once it is in the table: items may wait to be sent.
      request.channel?.opened(on: link, serial: id.serial)
    case .failed(let code, let detail):
      register(id, request, options, at: now)
      fail(id, code, detail)
    }
    return id
  }

  /// When a request ends without a response; a stream has no deadline unless it was given one.
  @inline(__always)
  private func deadline(
    of completion: borrowing Completion, _ options: borrowing RequestOptions, at now: LinkInstant,
    _ defaults: RequestDefaults
  ) -> LinkInstant {
    if let timeout = options.timeout { return now + timeout.clampedNanoseconds }
    return completion.isStream ? .distantFuture : now + defaults.timeout
  }

  /// Fails a request that cannot even wait, and counts it.
  package func failAtOnce(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    defaults: RequestDefaults, _ make: (LongLinkError.Operation) -> LongLinkError
  ) -> RequestID {
    let now = loop.now
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion) }
    let request = PendingRequest(
      type, body, options, until: deadline, offline: .failUnlessConnecting, on: loop, completion)
    register(id, request, options, at: now)
    guard table.end(id) != nil else { return id }
    finish(request, .failure(make(operation(id, request))))
    disarmIfUnused()
    return id
  }

  /// Adds a request to the table that no link carries yet.
  private func register(
    _ id: RequestID, _ request: PendingRequest, _ options: borrowing RequestOptions,
    at now: LinkInstant
  ) {
    table.register(
      id, request, deadline: request.limit, isOrdered: options.order == .ordered,
      notifiesCancel: options.notifiesCancel, now: now)
    if request.deadline < armedFor { arm() }
  }

  /// Fails a request for which no serial is free.
  private func turnAway(_ type: MessageType, _ completion: Completion) -> RequestID {
    counters.turnedAway += 1
    let error = LongLinkError(
      .overloaded, doing: .request(type),
      detail: "half of all serials are in use: \(table.count) requests", peer: current?.peer)
    counters.count(error)
    completeWithoutResponse(completion, .failure(error))
    return .none
  }

  /// Whether the peer takes one more request. If abandoned requests fill it, the oldest is
  /// cancelled.
  @inline(__always)
  private func hasRoom(_ link: Link) -> Bool {
    guard link.hasRoom else { return false }
    let limit = link.maxInFlight
    let carried = table.carriedCount(by: link.id)
    return carried + owed.count < limit || makesRoom(link, carried: carried, of: limit)
  }

  private func makesRoom(_ link: Link, carried: Int, of limit: Int) -> Bool {
    guard carried < limit, let serial = owed.takeOldest() else { return false }
    _ = link.cancel(serial, .keptBack, notifying: true)
    return true
  }

  /// Whether a new request may overtake the waiting ones, and the link takes one of its size.
  @inline(__always)
  private func isNext(
    _ id: RequestID, _ request: borrowing PendingRequest, isOrdered: Bool, on link: Link
  ) -> Bool {
    let takesLarge = link.takesLarge
    return table.isNext(id, isOrdered: isOrdered, on: link.id, takesLarge: takesLarge)
      && (takesLarge || !request.isLarge)
  }

  private func wait(_ id: RequestID, _ request: PendingRequest) {
    do throws(BodyError) {
      let terms = try request.terms
      let problem = limits.problem(
        with: terms.bytes, besides: table.waitingCount, of: table.waitingBytes)
      if let problem {
        counters.turnedAway += 1
        fail(id, .overloaded, problem)
      } else {
        table.wait(id, terms)
      }
    } catch {
      fail(id, .encodingFailed, "\(error)")
    }
  }

  /// The result of handing a request to a link.
  private enum Step {
    case sent(StreamPosition, isTimeTold: Bool)
    case failed(LongLinkError.Code, String)
  }

  /// Hands a request to a link.
  private func send(
    _ id: RequestID, _ request: borrowing PendingRequest, on link: Link, at now: LinkInstant
  ) -> Step {
    if request.deadline <= now { return .failed(.deadlineExceeded, "") }
    let terms = request.channel?.terms(on: link)
    if let terms, let (code, detail) = objection(to: terms, on: link) {
      return .failed(code, detail)
    }
    if !link.isNative, let objection = objection(to: request, id, on: link) {
      return .failed(.unsupported, objection)
    }
    do throws(BodyError) {
      try request.body.validate(for: link)
      var metadata = try metadata(for: request, terms, on: link, at: now)
      let size = try request.body.encodedByteCount
      var length = metadata.map { 2 + $0.count + size } ?? size
      if request.extras == nil, !link.accepts(bodyOf: length) {
        // The peer can do without the remaining time, but not without the body.
        metadata = nil
        length = size
      }
      guard link.accepts(bodyOf: length) else {
        let limit = link.maxBody
        return .failed(.tooLarge, "\(length) bytes, of which the peer accepts \(limit)")
      }
      let position = try link.request(
        id.serial, type: request.type, metadata: metadata,
        priority: request.priority, count: size, stream: terms, at: now
      ) { (span) throws(BodyError) in
        try request.body.encode(into: &span)
      }
      // A dialect may have so few serials that this one belonged to an abandoned request.
      if owed.count > 0 { owed.remove(id.serial) }
      // The peer of a stream is told of a cancel in any case: it may wait for credit.
      return .sent(position, isTimeTold: metadata != nil && terms == nil)
    } catch {
      return .failed(.encodingFailed, "\(error)")
    }
  }

  /// Why a link cannot carry a stream; nil if it can.
  private func objection(
    to terms: StreamTerms, on link: Link
  ) -> (LongLinkError.Code, String)? {
    guard !link.isShort || terms.credit == nil || !terms.sendsItems else {
      return (.unsupported, "a short link carries items in one direction only")
    }
    guard link.features.contains(.streams) else {
      return (
        .unsupported, link.isNative ? "the peer has no streams" : "the dialect has no streams"
      )
    }
    guard terms.credit.map({ link.hasWindow(of: $0) }) ?? true else {
      return (.overloaded, "the windows of all streams would exceed the connection's limit")
    }
    return nil
  }

  /// Why the dialect cannot express a request; nil if it can.
  private func objection(
    to request: borrowing PendingRequest, _ id: RequestID, on link: Link
  ) -> String? {
    guard let dialect = link.dialect else { return nil }
    if let metadata = request.extras?.metadata, metadata.isMoreThanPriority {
      return "\(dialect.name) has no place for an idempotency key, nor for metadata"
    }
    return link.objection(toRequest: request.type, serial: id.serial)
  }

  private func fail(_ id: RequestID, _ code: LongLinkError.Code, _ detail: String) {
    guard let entry = table.end(id) else { return }
    finish(entry.payload, .failure(error(code, id, entry.payload, entry.past, detail)))
  }

  @inline(__always)
  private func metadata(
    for request: borrowing PendingRequest, _ terms: StreamTerms?, on link: Link,
    at now: LinkInstant
  ) throws(BodyError) -> MetadataBlock? {
    guard link.features.contains(.metadata) else { return nil }
    // Rounded up, so that the peer does not give up first.
    let remaining = request.limit.map { UInt32(clamping: ($0 - now + 999_999) / 1_000_000) }
    if var metadata = request.extras?.metadata {
      metadata.remaining = remaining
      metadata.credit = terms?.credit.map { UInt32(clamping: $0) }
      metadata.items = terms?.sendsItems ?? false
      let block = try metadata.encodedBlock()
      guard block.count <= Wire.metadataLimit else {
        throw BodyError(.tooLarge, detail: "the metadata has \(block.count) bytes")
      }
      return block
    }
    return try remaining.map { (time) throws(BodyError) in try metadataCache.encode(remaining: time)
    }
  }

  /// Sends waiting requests while the peer takes them.
  package func pump() {
    // A request that fails at once comes back here; the outer call continues.
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    while let link = current, table.hasNext(on: link.id, takesLarge: link.takesLarge),
      hasRoom(link), sendNext(over: link) != nil
    {}
    if current == nil { onWaiting?() }
  }

  /// Takes the most urgent waiting request that may go to a link, and sends it or fails it; returns
  /// whether it was sent, nil if there is none.
  private func sendNext(over link: Link) -> Bool? {
    guard let id = table.nextWaiting(on: link.id, takesLarge: link.takesLarge) else { return nil }
    guard let request = table.entry(id)?.payload else { return false }
    switch send(id, request, on: link, at: loop.now) {
    case .sent(let position, let isTimeTold):
      table.placed(id, on: link.id, position, isTimeTold: isTimeTold)
      request.channel?.opened(on: link, serial: id.serial)
      return true
    case .failed(let code, let detail):
      fail(id, code, detail)
      return false
    }
  }

  /// The number of waiting requests that could each go to a short link of its own now.
  package var readyCount: Int { table.readyCount }

  /// Sends the most urgent waiting request over a short link, which has to be open. Returns false
  /// if there is none that it can carry.
  package func carry(over link: Link) -> Bool {
    links.append(link)
    while let isSent = sendNext(over: link) {
      if isSent { return true }
    }
    links.removeAll { $0 === link }
    return false
  }
}

// MARK: - Deadlines

extension Requests {
  /// Cancels the timer when no more requests will come, and resumes the waiting tasks.
  package func stop() {
    if let timer { loop.cancel(timer) }
    timer = nil
    resumptions.resumeAtOnce()
  }

  func arm() {
    guard let deadline = table.deadline, deadline < armedFor else { return }
    if let timer { loop.cancel(timer) }
    armedFor = deadline
    timer = loop.schedule(at: deadline, self, token: 0)
  }

  /// The timer would keep this object alive, and its loop awake, long after the last request.
  func disarmIfUnused() {
    guard table.count == 0, let timer else { return }
    loop.cancel(timer)
    self.timer = nil
    armedFor = .distantFuture
    releaseStorage()
  }

  /// Frees memory that is unused while there are no requests.
  private func releaseStorage() {
    table.releaseStorage()
    resumptions.releaseStorage()
  }

  package func timerFired(token: UInt64) {
    timer = nil
    armedFor = .distantFuture
    table.elapsed(to: loop.driver.now)
    while let (id, entry) = table.nextExpired() {
      if entry.link != 0 { onExpired?(entry.link) }
      let link = carrier(of: entry)
      if entry.position.begin != nil { link?.deadlineMissed() }
      // A peer that knows the remaining time stops by itself, and its response is a sign of life.
      let delivery = withdraw(
        id, entry, notifying: entry.notifiesCancel && !entry.isTimeTold)
      let request = entry.payload
      finish(request, .failure(expired(id, request, delivery, on: link)))
    }
    // The delay of retries may be over.
    if table.waitingCount > 0 { pump() }
    arm()
    if table.count == 0 { releaseStorage() }
  }
}
