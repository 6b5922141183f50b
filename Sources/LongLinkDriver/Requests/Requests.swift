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
  @safe @exclusivity(unchecked) var metadataCache = MetadataCache()
  private var timer: LoopTimer?
  private var armedFor = LinkInstant.distantFuture
  /// The links that carry requests, the newest last.
  @safe @exclusivity(unchecked) var links: [Link] = []
  /// The link that new requests go to.
  @safe @exclusivity(unchecked) package internal(set) var current: Link?
  @safe @exclusivity(unchecked) package var counters = RequestCounters()
  /// Requests that ended here and may still run at the peer.
  @safe @exclusivity(unchecked) var owed = OwedAnswers()
  /// What those of the requests state that run once, and have no tickets.
  var onces = OnceRequests()
  /// Where the client's keys are kept, as the last greeting or refusal has said; nil before that.
  var onceTerms: OnceTerms?
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
  #if Operations
  /// The numbers of the last links that requests could go over, for recordings.
  var recordedLinks: [UInt32] = []
  #endif
  /// Whether requests go over short links while there is no link.
  package var hasShortLinks = false
  /// Called when requests may wait that no link carries, if the owner has short links.
  package var onWaiting: (() -> Void)?
  /// Called when a request that sends and receives items is the next for a short link, which cannot
  /// carry it. Returns until when it waits for a link that is being made; nil if there is none.
  package var onTwoWay: (() -> LinkInstant?)?
  /// Requests that wait for a link that is being made, though there are short ones. Some may have
  /// ended.
  private var parked: [RequestID] = []
  /// Called with a link's number when the deadline of a request on that link passes.
  package var onExpired: ((UInt32) -> Void)?
  /// Returns why requests cannot be sent now, for the error of one that has waited too long.
  package var waitReason: (() -> WaitReason?)?

  package init(
    role: Role, limits: RequestLimits, serials: ClosedRange<UInt32>? = nil, on loop: EventLoop
  ) {
    self.loop = loop
    self.limits = limits
    retryTokens = RetryTokens(limits.retry.budget, perSuccess: limits.retry.budgetPerSuccess)
    table = RequestTable(serials: serials ?? role.serials)
    loop.driver.hosts(self)
  }

  /// The number of requests that have not ended.
  package var count: Int { table.count }
  package var waitingCount: Int { table.waitingCount }
  /// Whether there is a link that new requests go to.
  package var hasLink: Bool { current != nil }
  /// Whether new requests go to this link.
  package func isCurrent(_ link: Link) -> Bool { current === link }
  package var waitingBytes: Int { table.waitingBytes }
  package var carriedCount: Int { table.carriedCount }
  /// The number of requests that a link carries.
  package func carriedCount(by link: Link) -> Int { table.carriedCount(by: link.id) }
}

// MARK: - Beginning

extension Requests {
  /// Fails a request with `failure` if that is not nil; otherwise submits it and then calls `next`.
  ///
  /// No completion handler is called before this returns, not even if `next` ends the request.
  package func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion, defaults: RequestDefaults,
    failure: ((LongLinkError.Operation) -> LongLinkError)?, next: () -> Void = {}
  ) -> RequestID {
    handlersDeferred &+= 1
    defer { handlersDeferred &-= 1 }
    if let failure {
      return failAtOnce(type, body, copy options, completion, defaults: defaults, failure)
    }
    let id = submit(type, body, options, completion, defaults: defaults)
    next()
    return id
  }

  /// Sends a request, or queues it if there is no link or no room.
  ///
  /// A completion handler is not called before this returns.
  package func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion, defaults: RequestDefaults
  ) -> RequestID {
    handlersDeferred &+= 1
    defer { handlersDeferred &-= 1 }
    let now = loop.now
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion, options.ticket) }
    let request = PendingRequest(
      type, body, options, from: now, until: deadline, offline: options.offline ?? defaults.offline,
      completion)
    if request.runsOnce { beginOnce(id, options) }
    let isOrdered = options.isOrdered == true
    guard let link = current, isNext(id, request, isOrdered: isOrdered, on: link), hasRoom(link)
    else {
      register(id, request, options, at: now)
      wait(id, request)
      return id
    }
    // Into the table last, so it is neither looked up nor copied to be sent.
    do throws(Unsendable) {
      let sent = try send(id, request, on: link, at: now)
      let (limit, channel) = (request.limit, request.channel)
      table.register(
        id, consume request, deadline: limit, isOrdered: isOrdered,
        notifiesCancel: options.notifiesCancel, on: link.id, at: sent.position,
        isTimeTold: sent.isTimeTold, now: now)
      if deadline < armedFor { arm() }
      // Once it is in the table: items may wait to be sent.
      channel?.opened(on: link, serial: id.serial)
    } catch {
      register(id, request, options, at: now)
      fail(id, error)
    }
    return id
  }

  /// Queues a request, and sends it no earlier than in `delay` nanoseconds.
  package func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    defaults: RequestDefaults, after delay: Int64
  ) -> RequestID {
    let now = loop.now
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion, options.ticket) }
    let request = PendingRequest(
      type, body, options, from: now, until: deadline, offline: options.offline ?? defaults.offline,
      completion)
    if request.runsOnce { beginOnce(id, options) }
    register(id, request, options, at: now)
    wait(id, request, until: now + delay)
    arm()
    return id
  }

  /// Returns the deadline of a request; a stream has none unless it was given one.
  @inline(__always)
  func deadline(
    of completion: borrowing Completion, _ options: borrowing RequestOptions, at now: LinkInstant,
    _ defaults: RequestDefaults
  ) -> LinkInstant {
    if let timeout = options.timeout { return now + timeout.clampedNanoseconds }
    return completion.isStream ? .distantFuture : now + defaults.timeout
  }

  /// Fails a request that cannot even wait, and counts it.
  private func failAtOnce(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    defaults: RequestDefaults, _ make: (LongLinkError.Operation) -> LongLinkError
  ) -> RequestID {
    let now = loop.now
    let deadline = deadline(of: completion, options, at: now, defaults)
    counters.submitted += 1
    guard let id = table.nextID() else { return turnAway(type, completion, options.ticket) }
    let request = PendingRequest(
      type, body, options, from: now, until: deadline, offline: .failUnlessConnecting, completion)
    if request.runsOnce { beginOnce(id, options) }
    register(id, request, options, at: now)
    guard end(id) != nil else { return id }
    finish(request, .failure(make(operation(id, request))))
    disarmIfUnused()
    return id
  }

  /// Adds a request to the table that no link carries yet.
  func register(
    _ id: RequestID, _ request: PendingRequest, _ options: borrowing RequestOptions,
    at now: LinkInstant
  ) {
    table.register(
      id, request, deadline: request.limit, isOrdered: options.isOrdered == true,
      notifiesCancel: options.notifiesCancel, now: now)
    if request.deadline < armedFor { arm() }
  }

  /// Whether the peer takes one more request. If abandoned requests fill it, the oldest is
  /// cancelled.
  @inline(__always)
  private func hasRoom(_ link: Link) -> Bool {
    guard link.hasRoom else { return false }
    let limit = link.connection.agreement.maxInFlight
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
    let takesLarge = !link.connection.marks.isAboveLarge
    return table.isNext(id, isOrdered: isOrdered, on: link.id, takesLarge: takesLarge)
      && (takesLarge || !request.isLarge)
  }

  private func wait(
    _ id: RequestID, _ request: PendingRequest, until time: LinkInstant? = nil
  ) {
    do throws(BodyError) {
      let terms = try request.terms
      let problem = limits.problem(
        with: terms.bytes, besides: table.waitingCount, of: table.waitingBytes)
      if let problem {
        counters.turnedAway += 1
        fail(id, Unsendable(.overloaded, problem))
      } else if let time {
        table.wait(id, terms, until: time, at: loop.now)
      } else {
        table.wait(id, terms)
      }
    } catch {
      fail(id, Unsendable(error))
    }
  }

  func fail(_ id: RequestID, _ reason: Unsendable) {
    guard let entry = end(id) else { return }
    let error = error(reason.code, id, entry.payload, entry.past, reason.detail)
    finish(entry.payload, .failure(error))
  }

  /// Sends waiting requests while the peer takes them.
  package func pump() {
    // A request that fails at once comes back here; the outer call continues.
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    repeat {
      while let link = current,
        table.hasNext(on: link.id, takesLarge: !link.connection.marks.isAboveLarge),
        hasRoom(link), sendNext(over: link) != nil
      {}
      guard current == nil else { return }
      // The owner may have found a link.
      onWaiting?()
    } while current != nil
  }

  /// Takes the most urgent waiting request that may go to a link, and sends it or fails it; returns
  /// whether it was sent, nil if there is none.
  private func sendNext(over link: Link) -> Bool? {
    guard let id = table.nextWaiting(on: link.id, takesLarge: !link.connection.marks.isAboveLarge)
    else { return nil }
    guard let request = table.entry(id)?.payload else { return false }
    do throws(Unsendable) {
      let sent = try send(id, request, on: link, at: loop.now)
      table.placed(id, on: link.id, sent.position, isTimeTold: sent.isTimeTold)
      request.channel?.opened(on: link, serial: id.serial)
      return true
    } catch {
      fail(id, error)
      return false
    }
  }

  /// The number of waiting requests that could each go to a short link of its own now.
  package var readyCount: Int { table.readyCount }

  /// Sends the most urgent waiting request over a short link, which has to be open. Returns false
  /// if there is none that it can carry.
  package func carry(over link: Link) -> Bool {
    links.append(link)
    while true {
      if let until = waitOfNext(besides: link) {
        guard current == nil, until > loop.now, park(over: link, until: until) else { break }
      } else if let isSent = sendNext(over: link) {
        if isSent { return true }
      } else {
        break
      }
    }
    links.removeAll { $0 === link }
    return false
  }

  /// The time until which the next waiting request waits for another link than a short one; nil if
  /// the short one takes it, or nothing else does.
  private func waitOfNext(besides link: Link) -> LinkInstant? {
    guard let id = table.firstWaiting(on: link.id, takesLarge: !link.connection.marks.isAboveLarge),
      let channel = table.entry(id)?.payload.channel, channel.terms(on: link).isTwoWay
    else { return nil }
    return onTwoWay?()
  }

  /// Lets the next request wait until a time, so that others go over short links meanwhile.
  private func park(over link: Link, until time: LinkInstant) -> Bool {
    guard let id = table.nextWaiting(on: link.id, takesLarge: !link.connection.marks.isAboveLarge),
      let request = table.entry(id)?.payload
    else { return false }
    if parked.count > 2 * table.waitingCount { parked.removeAll { !table.isDelayed($0) } }
    table.wait(id, terms(of: request), until: time, at: loop.now)
    parked.append(id)
    arm()
    return true
  }

  /// Ends the wait of the requests that are parked, so that they can be sent over any link.
  package func unpark() {
    for id in parked { table.endDelay(of: id) }
    parked = []
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

  /// Disarms the timer after the last request: it would keep this object alive, and its loop awake.
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
    onces.releaseStorage()
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
      if request.runsOnce { onces.end(id.serial) }
      finish(request, .failure(expired(id, request, delivery, on: link)))
    }
    // The delay of retries may be over.
    if table.waitingCount > 0 { pump() }
    arm()
    if table.count == 0 { releaseStorage() }
  }
}
