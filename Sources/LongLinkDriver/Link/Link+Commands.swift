// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

// What owners, requests, handlers and pushes have a link do. Each command that sets anything off
// ends in `settle` or, where its caller has to note the outcome first, in `settleAtEndOfTurn`.

extension Link {
  /// Tells the owner what a command has set off, has bytes leave by the end of the turn, and sets
  /// the timer.
  @inline(__always)
  private func settle() {
    // While the owner is being told, whatever is new is told behind that.
    if !isDraining, isHeld || core.hasEffects { drain() }
    if endsTurn || core.wantsToWrite { writeAtEndOfTurn() }
    arm()
  }

  /// Leaves that to the end of the turn, so that the owner hears of nothing before the caller knows
  /// what became of its command.
  @inline(__always)
  private func settleAtEndOfTurn() {
    if endsTurn || core.wantsToWrite { writeAtEndOfTurn() }
    if !endsTurn, isHeld || core.hasEffects { awaitEndOfTurn() }
  }
}

// MARK: - Requests of this side

extension Link {
  /// Sends a request. The link must be open, and the body within the peer's limit.
  @inline(__always)
  func request(
    _ serial: UInt32, type: MessageType, metadata: MetadataBlock?, priority: UInt32, count: Int,
    at now: LinkInstant, _ body: (inout OutputRawSpan) throws(BodyError) -> Void
  ) throws(BodyError) -> StreamPosition {
    let placement = try core.request(
      serial, type: type, metadata: metadata, priority: priority, count: count, at: now, body)
    settleAtEndOfTurn()
    return placement
  }

  /// Takes a request back, or tells the peer when that is asked for or needed; true when no byte of
  /// it had left.
  func cancel(_ serial: UInt32, _ placement: StreamPosition, notifying: Bool) -> Bool {
    let isUnsent = core.cancel(serial, placement, notifying: notifying)
    settleAtEndOfTurn()
    return isUnsent
  }

  /// Collects no more fragments of a response that nobody waits for.
  func abandonResponse(_ serial: UInt32) {
    core.abandonResponse(serial)
  }

  /// Tells that a request which had left on this link was not answered in its time.
  func deadlineMissed() {
    core.deadlineMissed(at: loop.driver.now, unacknowledged: unacknowledgedBytes)
    settleAtEndOfTurn()
  }
}

// MARK: - Requests of the peer

extension Link {
  /// Lets the response to a request be as urgent as that was.
  func setPriority(_ priority: UInt32, of serial: UInt32) {
    core.setPriority(priority, of: serial)
  }

  /// Answers a request; false when no answer is owed any more, and `handlerReturned` is to be told.
  @inline(__always)
  func respond<Body: BodyEncodable>(
    _ serial: UInt32, count: Int, _ body: Body
  ) throws(BodyError) -> Bool {
    let isOwed = try core.respond(serial, code: .ok, count: count, body)
    settle()
    return isOwed
  }

  /// Answers a request with bytes, in the same way.
  func respond(
    _ serial: UInt32, code: ResponseCode, isRefused: Bool = false, ownCode: UInt32? = nil,
    metadata: MetadataBlock? = nil, _ body: [UInt8]
  ) -> Bool {
    let isOwed = core.respond(
      serial, code: code, isRefused: isRefused, ownCode: ownCode, metadata: metadata, body)
    settle()
    return isOwed
  }

  /// Tells that a request is about to be answered before its handler has returned.
  func outlives(_ serial: UInt32) {
    core.outlives(serial)
  }

  /// Tells that the handler of a request has returned to which no answer was owed any more.
  func handlerReturned(bytes: Int) {
    core.handlerReturned(bytes: bytes)
    followMemory()
  }
}

// MARK: - Pushes

extension Link {
  /// Sends a one-way message. The link must be open, and the body within the peer's limit.
  @inline(__always)
  func push<Failure>(
    _ type: MessageType, priority: UInt32 = 0, count: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    try core.push(type, priority: priority, count: count, at: loop.now, body)
    settle()
  }

  /// Sends a one-way message whose whole frame was encoded before.
  func push(_ type: MessageType, _ body: [UInt8], encoded frame: [UInt8]) {
    core.push(type, body, encoded: frame)
    settle()
  }
}

// MARK: - Counting

extension Link {
  /// Counts what handlers and pushes do.
  @inline(__always)
  func count(_ change: (inout ConnectionCounters) -> Void) {
    if let totals { change(&totals.counters) } else { change(&core.counters) }
  }

  /// Adds what the link has counted, now that it has ended, and what it counts from here on.
  package func count(in totals: ConnectionTotals) {
    totals.counters += core.counters
    self.totals = totals
  }
}

// MARK: - The connection

extension Link {
  /// Sends a ping and returns the number by which `.ponged` will name it.
  package func ping() -> UInt64 {
    let id = core.ping(at: loop.driver.now)
    settleAtEndOfTurn()
    return id
  }

  /// Asks the peer for a sign of life.
  package func probe() {
    core.probe(at: loop.driver.now, unacknowledged: unacknowledgedBytes)
    settleAtEndOfTurn()
  }

  /// Sets how long this side itself lets a silence last, in nanoseconds.
  package func setPace(_ interval: Int64) {
    core.setPace(interval)
    followDeadline()
  }

  /// Says that nothing new is taken here; what runs goes on.
  package func goAway(
    code: ResponseCode, reason: String, spread: UInt32, retryAfter: UInt32, alternatives: [String]
  ) {
    core.goAway(
      code: code, reason: reason, spread: spread, retryAfter: retryAfter,
      alternatives: alternatives)
    settle()
  }

  /// Ends the link on purpose once what is encoded has left.
  package func shutDown() {
    core.shutDown(at: loop.now)
    settle()
  }

  /// Ends the link in good order if no request of either side is under way on it, and nothing is
  /// kept back.
  package func shutDownIfUnused(by requests: Requests?) {
    guard requestsRunning == 0, !core.outbox.holdsBack, requests?.isUnused(self) ?? true
    else { return }
    shutDown()
  }

  /// Ends the link at once.
  package func close(_ reason: CloseReason) {
    core.close(reason)
    settle()
  }

  /// Ends the connection, which holds the most while the server's memory is short.
  package func evict() {
    core.evict(at: loop.now)
    settle()
    followMemory()
  }
}
