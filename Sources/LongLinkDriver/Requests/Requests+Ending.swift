// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

extension Requests {
  /// Takes a response: the one place where a request succeeds.
  @inline(__always)
  package func answered(_ arrival: Arrival, on link: Link) {
    if arrival.isRefused, retry(refusedBy: arrival, on: link) { return }
    guard let slot = table.slot(of: arrival.serial, on: link.id) else {
      // Its caller cancelled it, or its deadline passed, while the response was on its way.
      counters.lateReplies += 1
      owed.remove(arrival.serial)
      table.endRest(of: arrival.serial)
      if table.waitingCount > 0 { pump() }
      return
    }
    let entry = table.answered(arrival.serial, at: slot, isRefused: arrival.isRefused)
    let body = link.takeBody(of: arrival)
    if arrival.code == .ok {
      counters.succeeded += 1
      retryTokens.succeeded()
      complete(entry.payload.completion, .success(body))
    } else {
      let error = rejection(arrival, body, entry, link)
      counters.count(error)
      complete(entry.payload.completion, .failure(error))
    }
    wentOff(link)
    if table.count == 0 { onIdle?() }
  }

  @inline(__always)
  private func complete(_ completion: Completion, _ outcome: Outcome) {
    switch completion {
    case .waiter, .function, .handler:
      completion(outcome)
    case .distantWaiter:
      completion(outcome)
      loop.expectWork()
    case .pooledWaiter(let waiter):
      if resumptions.add(waiter, outcome) { resumeSoon() }
      loop.expectWork()
    }
  }

  /// Reports the outcome of a request that ends without a response, maybe within the call that
  /// makes it. A handler that retries from there would come back here, one call deeper each time.
  func completeLater(_ completion: Completion, _ outcome: Outcome) {
    if case .handler(let handler) = completion {
      loop.execute { handler(outcome) }
    } else {
      complete(completion, outcome)
    }
  }

  /// Tells that a link carries one request less.
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
    // The peer vouches for this sending alone.
    let past = arrival.isRefused ? entry.past : .notSent
    let hint = link.metadata?.retryAfter ?? 0
    let retryAfter: Duration? = hint > 0 ? .milliseconds(Int64(hint)) : nil
    let dialectCode = link.dialectCode
    // The bodies of a dialect are the application's, whatever the code.
    let text = arrival.code.isApplication ? "" : PeerText(utf8: body).description
    let detail = dialectCode.map(\.summary) ?? text
    if arrival.code == .deadlinePassed, !arrival.isRefused, request.deadline <= loop.now {
      // Both sides watch the deadline. The peer's word of it came before this side's own timer.
      return error(.deadlineExceeded, id, request, .sent, detail, on: link).after(past)
    }
    return LongLinkError(
      .rejected, delivery: arrival.isRefused ? .refused : .answered,
      doing: operation(id, request), detail: detail, peer: link.peer, response: arrival.code,
      dialectCode: dialectCode, body: body, retryAfter: retryAfter
    ).after(past)
  }

  /// Ends a request because its caller wants no answer any more.
  package func cancel(_ id: RequestID) {
    let id = table.current(id)
    guard let entry = table.end(id) else { return }
    let (request, link) = (entry.payload, carrier(of: entry))
    let delivery = withdraw(id, entry, notifying: entry.notifiesCancel)
    finish(request, .failure(error(.cancelled, id, request, delivery, "", on: link)))
  }

  /// The link that carries a request; nil while none does.
  func carrier(of entry: RequestTable<PendingRequest>.Entry) -> Link? {
    entry.link == 0 ? nil : links.first { $0.id == entry.link }
  }

  /// Takes an ended request off its link and says what may have happened to it. `notifying` tells
  /// whether the peer is told also where that is not needed.
  func withdraw(
    _ id: RequestID, _ entry: RequestTable<PendingRequest>.Entry, notifying: Bool
  ) -> Delivery {
    guard let link = carrier(of: entry) else { return entry.past }
    let written = link.bytesWritten
    let isUnsent = link.cancel(id.serial, entry.position, notifying: notifying)
    if !isUnsent, !notifying, link === current { owed.add(id.serial) }
    if !isUnsent { table.rest(id.serial) }
    // One that was kept back may have begun without word of it having come yet.
    let hasBegun = !isUnsent && link.isOpen && entry.position.begin == nil
    let delivery = hasBegun ? .sent : entry.delivery(written: written)
    if delivery == .sent { table.arrived(entry) }
    if link !== current, isUnused(link) { onRetired?(link) }
    return delivery.after(entry.past)
  }

  /// Reports the outcome of a request that has left the table.
  func finish(_ request: PendingRequest, _ outcome: Outcome) {
    if case .failure(let error) = outcome { counters.count(error) }
    completeLater(request.completion, outcome)
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

  /// Where a request stands; nil once it has ended.
  package func state(of id: RequestID) -> RequestState? {
    guard let entry = table.entry(table.current(id)) else { return nil }
    guard let link = carrier(of: entry), let begin = entry.position.begin else { return .created }
    return begin < link.bytesWritten ? .waiting : .sending
  }
}

extension LongLinkError {
  /// The error of a request that was sent before, of which this tells the last sending alone.
  package func after(_ past: Delivery) -> LongLinkError {
    let whole = delivery.after(past)
    guard whole != delivery else { return self }
    let note = whole == .sent ? "an earlier sending may have run" : "an earlier sending was refused"
    return LongLinkError(
      code, delivery: whole, doing: doing, detail: detail.isEmpty ? note : "\(detail); \(note)",
      peer: peer, response: response, dialectCode: dialectCode, body: body,
      retryAfter: retryAfter, systemError: systemError, closeReason: closeReason)
  }

  /// The same failure under another code.
  package func with(_ code: Code) -> LongLinkError {
    LongLinkError(
      code, delivery: delivery, doing: doing, detail: detail, peer: peer, response: response,
      dialectCode: dialectCode, body: body, retryAfter: retryAfter, systemError: systemError,
      closeReason: closeReason)
  }
}
