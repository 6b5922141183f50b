// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

// The commands that owners, requests, handlers and pushes give a link. Each command that can cause
// effects ends in `settle` or, if its caller must first record the result, in `settleAtEndOfTurn`.

extension Link {
  /// Delivers a command's effects to the owner, schedules a write at the end of the turn, and sets
  /// the timer.
  @inline(__always)
  func settle() {
    // If `deliver` is running, it delivers the new effects too.
    if !isDelivering, gate.isHeld || core.hasEffects { deliver() }
    if endsTurn || core.wantsToWrite { writeAtEndOfTurn() }
    arm()
  }

  /// Like `settle`, but the effects are delivered at the end of the turn, after the caller has
  /// recorded the command's result.
  @inline(__always)
  private func settleAtEndOfTurn() {
    if endsTurn || core.wantsToWrite { writeAtEndOfTurn() }
    if !endsTurn, gate.isHeld || core.hasEffects { awaitEndOfTurn() }
  }

  // MARK: Requests of this side

  /// Sends a request. The link must be open, and the body within the peer's limit.
  @inline(__always)
  func request(
    _ serial: UInt32, type: MessageType, metadata: MetadataBlock?, priority: UInt32, count: Int,
    stream: StreamTerms? = nil, at now: LinkInstant,
    _ body: (inout OutputRawSpan) throws(BodyError) -> Void
  ) throws(BodyError) -> OutputPosition {
    recordedRequest(serial, type, metadata, priority, count, stream, at: now)
    do throws(BodyError) {
      let placement = try core.request(
        serial, type: type, metadata: metadata, priority: priority, count: count, stream: stream,
        at: now, body)
      settleAtEndOfTurn()
      return placement
    } catch {
      recordedFailure()
      throw error
    }
  }

  /// Withdraws a request, and returns true if none of its bytes were written. Otherwise sends a
  /// cancel, if `notifying` or if the unwritten rest of the request was withdrawn.
  func cancel(_ serial: UInt32, _ placement: OutputPosition, notifying: Bool) -> Bool {
    recorded(
      .cancel, at: loop.now,
      RecordedNumber.pair(serial, notifying ? RecordedFlags.isNotifying.rawValue : 0),
      placement.begin.map { $0 + 1 } ?? 0, placement.ordinal)
    return command { core, _ in core.cancel(serial, placement, notifying: notifying) }
  }

  /// Reports that a request sent on this link passed its deadline without a response.
  func deadlineMissed() {
    let (now, unacknowledged) = (loop.driver.now, unacknowledgedBytes)
    recorded(.deadlineMissed, at: now, UInt64(max(0, unacknowledged)))
    core.deadlineMissed(at: now, unacknowledged: unacknowledged)
    settleAtEndOfTurn()
  }

  /// Ends the link because a frame of a stream came for a request that has none.
  func rejectStray(_ kind: FrameKind, _ serial: UInt32) {
    recorded(.rejectStray, at: loop.now, UInt64(kind.rawValue), UInt64(serial))
    command { core, _ in core.rejectStray(kind, serial: serial) }
  }

  /// Drops the fragments of a response that no request waits for.
  func abandonResponse(_ serial: UInt32) {
    recorded(.abandonResponse, at: loop.now, UInt64(serial))
    core.abandonResponse(serial)
  }

  /// Notes what a refusal has told this client of its space, and the store's clock.
  func learn(_ terms: OnceTerms) {
    recorded(
      .learn, at: loop.now, numbers: [UInt64(terms.retention), terms.time],
      bytes: terms.space.bytes)
    core.learn(terms)
  }

  // MARK: Streams, and commands without effects

  /// Gives the core a command about a stream.
  @inline(__always)
  func command<Result, Failure>(
    _ body: (inout Connection, LinkInstant) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result = try body(&core, loop.now)
    settleAtEndOfTurn()
    return result
  }

  /// Passes the core a note that has no effects, such as who handles a request.
  func note<Result>(_ body: (inout Connection) -> Result) -> Result { body(&core) }

  // MARK: Requests of the peer

  /// Sends the response of a handler that has returned, unless the request has ended.
  ///
  /// Returns whether a response is sent.
  @inline(__always) @discardableResult
  func respond<Body: BodyEncodable>(
    _ id: InboundID, count: Int, _ body: Body
  ) throws(BodyError) -> Bool {
    recorded(.respond, at: loop.now, id.recorded, UInt64(count))
    do throws(BodyError) {
      let isSent = try core.respond(id, code: .ok, count: count, body)
      if !isSent { reportMemory() }
      settle()
      return isSent
    } catch {
      recordedFailure()
      throw error
    }
  }

  /// Sends a response with a code and bytes, unless the request has ended. `isInterrupting` tells
  /// the peer that the handler may still run.
  @discardableResult
  func respond(
    _ id: InboundID, code: ResponseCode, isRefused: Bool = false, isInterrupting: Bool = false,
    ownCode: UInt32? = nil, metadata: MetadataBlock? = nil, _ body: [UInt8]
  ) -> Bool {
    recordedResponse(id, code, isRefused, isInterrupting, ownCode, metadata, body.count)
    let isSent = core.respond(
      id, code: code, isRefused: isRefused, isInterrupting: isInterrupting, ownCode: ownCode,
      metadata: metadata, body)
    if !isSent { reportMemory() }
    settle()
    return isSent
  }

  /// Reports that a handler has returned after its request had ended.
  func handlerReturned(from id: InboundID) {
    recorded(.handlerReturned, at: loop.now, id.recorded)
    core.inbound.handlerReturned(from: id)
    reportMemory()
  }

  /// Gives the response to a request of the peer the priority of the request.
  func setPriority(_ priority: UInt32, of serial: UInt32) {
    recorded(.setPriority, at: loop.now, UInt64(serial), UInt64(priority))
    core.inbound.setPriority(priority, of: serial)
  }

  // MARK: Pushes

  /// Sends a one-way message. The link must be open, and the body within the peer's limit.
  @inline(__always)
  func push<Failure>(
    _ type: MessageType, priority: UInt32 = 0, count: Int,
    _ body: (inout OutputRawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    recorded(.push, at: loop.now, RecordedNumber.pair(type.rawValue, priority), UInt64(count))
    do throws(Failure) {
      try core.push(type, priority: priority, count: count, at: loop.now, body)
      settle()
    } catch {
      recordedFailure()
      throw error
    }
  }

  /// Sends a one-way message whose frame is already encoded.
  func push(_ type: MessageType, _ body: [UInt8], encoded frame: [UInt8]) {
    recorded(.encodedPush, at: loop.now, UInt64(type.rawValue), UInt64(body.count))
    core.push(type, body, encoded: frame)
    settle()
  }

  // MARK: Counting

  /// Changes the counters of the link, or its totals once the link has ended.
  @inline(__always)
  func count(_ change: (inout ConnectionCounters) -> Void) {
    if let totals { change(&totals.counters) } else { change(&core.counters) }
  }

  /// Adds the counters of this ended link to `totals`, where it counts from now on.
  package func count(in totals: ConnectionTotals) {
    totals.counters += core.counters
    self.totals = totals
  }

  // MARK: The connection

  /// Sends a ping and returns its number, which `.ponged` carries.
  package func ping() -> UInt64 {
    let now = loop.driver.now
    recorded(.ping, at: now)
    return command { core, _ in core.ping(at: now) }
  }

  /// Sends a ping that the peer must answer within the heartbeat's timeout.
  package func probe() {
    let (now, unacknowledged) = (loop.driver.now, unacknowledgedBytes)
    recorded(.probe, at: now, UInt64(max(0, unacknowledged)))
    core.probe(at: now, unacknowledged: unacknowledged)
    settleAtEndOfTurn()
  }

  /// Sets the interval of this side's pings, in nanoseconds. It can be at most the agreed interval.
  package func setPace(_ interval: Int64) {
    recorded(.setPace, at: loop.now, UInt64(bitPattern: interval))
    core.setPace(interval)
    rescheduleTimer()
  }

  /// Sends a goaway: new requests are refused, running ones continue.
  package func goAway(
    code: ResponseCode, reason: String, spread: UInt32, retryAfter: UInt32, alternatives: [String]
  ) {
    recorded(
      .goAway, at: loop.now,
      numbers: [
        UInt64(code.rawValue), RecordedNumber.pair(spread, retryAfter), UInt64(alternatives.count),
      ],
      bytes: Array(([reason] + alternatives).joined(separator: "\0").utf8))
    core.goAway(
      code: code, reason: reason, spread: spread, retryAfter: retryAfter,
      alternatives: alternatives)
    settle()
  }

  /// Closes the link once its encoded frames are written. A short link sends `notice` first.
  package func shutDown(saying notice: (code: ResponseCode, reason: String)? = nil) {
    recorded(
      .shutDown, at: loop.now, numbers: [notice.map { UInt64($0.code.rawValue) + 1 } ?? 0],
      bytes: Array((notice?.reason ?? "").utf8))
    core.shutDown(at: loop.now, saying: notice)
    settle()
  }

  /// Closes the link with `shutDown` if neither side has a request in flight on it and no message
  /// waits to be encoded.
  package func shutDownIfUnused(by requests: Requests?) {
    if isUnused(by: requests) { shutDown() }
  }

  /// Leaves the link if it is unused and all was written; the server then closes it.
  package func leaveIfUnused(by requests: Requests) {
    guard isUnused(by: requests), core.outbox.isEmpty else { return }
    recorded(.leave, at: loop.now)
    core.leave(at: loop.now)
    settle()
    rescheduleTimer()
  }

  private func isUnused(by requests: Requests?) -> Bool {
    core.inbound.count == 0 && !core.outbox.holdsBack && requests?.isUnused(self) ?? true
  }

  /// Closes the link at once.
  package func close(_ reason: CloseReason) {
    recorded(
      .close, at: loop.now, RecordedReason.encode(reason).kind,
      RecordedReason.encode(reason).value)
    core.close(reason)
    settle()
  }

  /// Closes the connection, because the server's memory is short and this connection holds the
  /// most.
  package func evict() {
    recorded(.evict, at: loop.now)
    core.evict(at: loop.now)
    settle()
    reportMemory()
  }
}
