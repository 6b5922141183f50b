// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

extension Requests {
  /// Handles a response. Only here does a request succeed.
  @inline(__always)
  package func answered(_ arrival: Arrival, on link: Link) {
    let isRefused = !arrival.isSuccess && arrival.isRefused
    var objection: String?
    if isRefused, retry(refusedBy: arrival, on: link, &objection) { return }
    guard let slot = table.slot(of: arrival.serial, on: link.id) else {
      // The caller cancelled it, or its deadline passed, while the response was under way.
      counters.lateReplies += 1
      owed.remove(arrival.serial)
      table.endRest(of: arrival.serial)
      if table.waitingCount > 0 { pump() }
      return
    }
    if table.withPayload(at: slot, { $0.runsOnce }) {
      heardOnce(arrival, table.withPayload(at: slot) { $0.ticket }, on: link)
    }
    if arrival.isSuccess {
      let completion = table.succeeded(arrival.serial, at: slot).completion
      counters.succeeded += 1
      retryTokens.succeeded()
      complete(completion, .success(link.takeBody(of: arrival)))
    } else {
      let entry = table.answered(arrival.serial, at: slot, isRefused: isRefused)
      let rejection = rejection(arrival, link.takeBody(of: arrival), entry, link)
      let error = ended(rejection.noting(objection), entry.payload.ticket)
      counters.count(error)
      entry.payload.record?.end(
        error, isRefused: isRefused, isInterrupted: link.metadata(of: arrival)?.interrupted == true)
      complete(entry.payload.completion, .failure(error))
    }
    wentOff(link)
    if table.count == 0 { onIdle?() }
  }

  @inline(__always)
  private func complete(_ completion: Completion, _ outcome: consuming Outcome) {
    switch completion {
    case .observed(let observed): completeObserved(observed, outcome)
    case .waiter(let waiter): waiter(outcome)
    case .function, .handler, .stream: completion(outcome)
    case .distantWaiter:
      completion(outcome)
      loop.expectWork()
    case .pooledWaiter(let waiter):
      if resumptions.add(waiter, outcome) { resumeSoon() }
      loop.expectWork()
    }
  }

  private func completeObserved(_ observed: ObservedCompletion, _ outcome: Outcome) {
    observed.record.end(outcome)
    complete(observed.completion, outcome)
  }

  /// Reports the outcome of a request that ends without a response.
  ///
  /// Within a call that makes a request, a handler that retries would recurse, so it is called in a
  /// job of the loop. At other times it is called here: before its connection has ended.
  func completeWithoutResponse(_ completion: Completion, _ outcome: Outcome) {
    if handlersDeferred > 0, completion.isHandler {
      completion.record?.end(outcome)
      loop.execute { completion(outcome) }
    } else {
      complete(completion, outcome)
    }
  }

  /// Handles that a link carries one request less.
  @inline(__always)
  func wentOff(_ link: Link) {
    if table.waitingCount > 0 { pump() }
    if link !== current, isUnused(link) { onRetired?(link) }
  }

  /// Whether a link carries no request.
  package func isUnused(_ link: Link) -> Bool {
    carriedCount(by: link) == 0
  }

  private func rejection(
    _ arrival: Arrival, _ body: [UInt8], _ entry: RequestTable<PendingRequest>.Entry, _ link: Link
  ) -> LongLinkError {
    let (id, request) = (RequestID(serial: arrival.serial, number: entry.number), entry.payload)
    // A refusal covers only this attempt.
    let past = arrival.isRefused ? entry.past : .notSent
    let hint = link.metadata(of: arrival)?.retryAfter ?? 0
    let retryAfter: Duration? = hint > 0 ? .milliseconds(Int64(hint)) : nil
    let ownCode = link.connection.framing.lastCode
    // The application defines the body of its own codes, and of a dialect's: often a text, but
    // perhaps a message.
    let isText =
      ownCode == nil && !arrival.code.isApplication || PeerText.isPlain(utf8: body)
    let text = isText ? PeerText(utf8: body).description : ""
    let detail = [ownCode?.text, text].compactMap { $0?.isEmpty == false ? $0 : nil }
      .joined(separator: "; the peer says: ")
    if arrival.code == .deadlinePassed, !arrival.isRefused, request.deadline <= loop.now {
      // Both sides watch the deadline, and the peer's response came before this side's timer.
      return error(.deadlineExceeded, id, request, .sent, request.lateness, on: link)
        .after(past).with(recording(of: link))
    }
    return LongLinkError(
      .rejected, delivery: delivery(of: arrival, to: request, on: link),
      doing: operation(id, request), detail: detail, peer: link.peer, response: arrival.code,
      dialectCode: ownCode?.number, body: body, retryAfter: retryAfter
    ).after(past).noting(advice(on: arrival, to: request, past: past, on: link))
  }

  /// Cancels a request on behalf of its caller.
  package func cancel(_ id: RequestID) {
    let id = table.current(id)
    guard let entry = end(id) else { return }
    let (request, link) = (entry.payload, carrier(of: entry))
    let delivery = withdraw(id, entry, notifying: entry.notifiesCancel)
    finish(request, .failure(error(.cancelled, id, request, delivery, "", on: link)))
  }

  /// The link that carries a request; nil while none does.
  func carrier(of entry: RequestTable<PendingRequest>.Entry) -> Link? {
    entry.link == 0 ? nil : links.first { $0.id == entry.link }
  }

  /// Takes an ended request off its link and returns its delivery. `notifying` sends a cancel even
  /// if the peer does not need one.
  func withdraw(
    _ id: RequestID, _ entry: RequestTable<PendingRequest>.Entry, notifying: Bool
  ) -> Delivery {
    guard let link = carrier(of: entry) else { return entry.past }
    let written = link.connection.outbox.written
    let isUnsent = link.cancel(id.serial, entry.position, notifying: notifying)
    if !isUnsent, !notifying, link === current { owed.add(id.serial) }
    if !isUnsent { table.rest(id.serial) }
    // A queued request may have begun, and the notice of it not have arrived yet.
    let hasBegun = !isUnsent && link.isOpen && entry.position.begin == nil
    let delivery = hasBegun ? .sent : entry.delivery(written: written)
    if delivery == .sent { table.arrived(entry) }
    if link !== current, isUnused(link) { onRetired?(link) }
    return delivery.after(entry.past)
  }

  /// Fails a request for which no serial is free.
  func turnAway(
    _ type: MessageType, _ completion: Completion, _ ticket: OnceTicket?
  ) -> RequestID {
    counters.turnedAway += 1
    let error = LongLinkError(
      .overloaded, doing: .request(type),
      detail: "half of all serials are in use: \(table.count) requests", peer: current?.peer
    ).covering(ticket)
    counters.count(error)
    completeWithoutResponse(completion, .failure(error))
    return .none
  }

  /// Removes a request from the table; nil if it has ended.
  func end(_ id: RequestID) -> RequestTable<PendingRequest>.Entry? {
    guard let entry = table.end(id) else { return nil }
    if entry.payload.runsOnce { onces.end(id.serial) }
    return entry
  }

  /// Reports the outcome of a request that has left the table.
  func finish(_ request: PendingRequest, _ outcome: Outcome) {
    let outcome = outcome.mapError { ended($0, request.ticket) }
    if case .failure(let error) = outcome { counters.count(error) }
    completeWithoutResponse(request.completion, outcome)
    if table.waitingCount > 0 { pump() }
    if table.count == 0 { onIdle?() }
  }

  func operation(_ id: RequestID, _ request: PendingRequest) -> LongLinkError.Operation {
    .request(request.type, serial: id.serial)
  }

  func error(
    _ code: LongLinkError.Code, _ id: RequestID, _ request: PendingRequest, _ delivery: Delivery,
    _ detail: String, on link: Link? = nil
  ) -> LongLinkError {
    LongLinkError(
      code, delivery: delivery, doing: operation(id, request), detail: detail,
      peer: (link ?? current ?? links.last)?.peer)
  }

  /// The error of a request whose deadline has passed.
  func expired(
    _ id: RequestID, _ request: PendingRequest, _ delivery: Delivery, on link: Link?
  ) -> LongLinkError {
    let refusal = request.refusal.map { "an earlier sending was refused \($0)" }
    guard link == nil, let reason = waitReason?() else {
      return error(.deadlineExceeded, id, request, delivery, request.lateness, on: link)
        .noting(refusal).with(recording(of: link))
    }
    return LongLinkError(
      .deadlineExceeded, delivery: delivery, doing: operation(id, request), detail: reason.detail,
      peer: reason.peer, response: reason.response, systemError: reason.systemError,
      closeReason: reason.closeReason, securityFailure: reason.securityFailure
    ).noting(request.lateness).noting(refusal).with(reason.recording)
  }

  /// The state of a request; nil once it has ended.
  package func state(of id: RequestID) -> RequestState? {
    guard let entry = table.entry(table.current(id)) else { return nil }
    guard let link = carrier(of: entry), let begin = entry.position.begin else { return .created }
    return begin < link.connection.outbox.written ? .waiting : .sending
  }
}

/// The reason why requests cannot be sent, for the error of a request that has waited too long.
package struct WaitReason {
  package let detail: String
  package let peer: SocketAddress?
  package let systemError: Int32?
  package let securityFailure: SecurityFailure?
  package let response: ResponseCode?
  package let closeReason: CloseReason?
  package let recording: LinkRecording?

  package init(
    _ detail: String, peer: SocketAddress? = nil, systemError: Int32? = nil,
    securityFailure: SecurityFailure? = nil, response: ResponseCode? = nil,
    closeReason: CloseReason? = nil, recording: LinkRecording? = nil
  ) {
    self.recording = recording
    self.detail = detail
    self.peer = peer
    self.systemError = systemError
    self.securityFailure = securityFailure
    self.response = response
    self.closeReason = closeReason
  }
}
