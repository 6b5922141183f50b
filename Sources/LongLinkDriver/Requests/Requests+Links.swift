// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Requests {
  /// Adds a link that is being prepared: it carries only the requests that are made on it.
  package func prepare(_ link: Link) {
    links.append(link)
    noteForRecordings(link)
  }

  /// Makes an open link the current one: new requests go to it, and streams that follow their
  /// client end on the other links.
  package func opened(_ link: Link) {
    // A link that was prepared is in the list already.
    links.removeAll { $0 === link }
    links.append(link)
    noteForRecordings(link)
    current = link
    onceTerms = link.connection.agreement.once ?? onceTerms
    owed = OwedAnswers()
    unpark()
    pump()
    for former in links where former !== link { replaceStreams(of: former) }
  }

  private func replaceStreams(of link: Link) {
    for (id, entry) in table.carried(by: link.id) {
      guard let channel = entry.payload.channel, channel.isResuming else { continue }
      channel.replace()
      cancel(id)
    }
  }

  /// Sends no new requests over a link; those that it carries continue.
  package func retire(_ link: Link) {
    if current === link { current = nil }
  }

  /// Handles that the peer takes no new requests on a link, and did not accept some of those sent.
  ///
  /// These did not run. If another link would be accepted, they wait for it. Otherwise they fail,
  /// because the peer would reject them again.
  package func leaving(
    _ link: Link, accepted: UInt64, code: ResponseCode, reason: String, acceptsNext: Bool
  ) {
    if current === link { current = nil }
    let last = link.connection.ordinals.ordinal(ofAccepted: accepted)
    let unaccepted = table.carried(by: link.id).filter { _, entry in
      entry.position.begin == nil || entry.position.ordinal > last
    }
    // Queued requests first, or they would begin in the room that the others free.
    var taken: [(id: RequestID, delivery: Delivery)] = []
    for isKeptBack in [true, false] {
      for (id, entry) in unaccepted where (entry.position.begin == nil) == isKeptBack {
        // Some may be written while others are withdrawn.
        let written = link.connection.outbox.written
        let isUnsent = link.cancel(id.serial, entry.position, notifying: false)
        let hasLeft = isKeptBack ? !isUnsent : entry.delivery(written: written) == .sent
        // A peer that has sent items has run the handler, whatever its goaway says.
        let hasRun = entry.payload.channel?.hasReceived ?? false
        let delivery: Delivery = hasRun ? .sent : hasLeft ? .refused : .notSent
        taken.append((id, delivery))
        table.takeBack(id, delivery)
        if delivery == .refused {
          table.change(id) { $0.wasRefused(with: code, PeerText(reason)) }
        }
      }
    }
    taken.sort { $0.id < $1.id }
    let cause = link.ending.detail(of: .goneAway(code))
    retryOrEnd(taken, of: link, resends: acceptsNext, repeats: false) { id, request, delivery in
      LongLinkError(
        code == .draining ? .rejected : code.deniesAccess ? .notAccepted : .protocolViolation,
        delivery: delivery,
        doing: operation(id, request), detail: cause, peer: link.peer, response: code)
    }
  }

  /// Handles the end of a link: the requests that it carried end, or wait for the next link.
  package func lost(_ link: Link, _ reason: CloseReason, resends: Bool) {
    if current === link { current = nil }
    links.removeAll { $0 === link }
    if links.isEmpty { table.endRests() }
    // A connection that closes in good order still writes its encoded frames.
    let written = link.connection.isClosed ? link.connection.outbox.written : .max
    let carried = table.carried(by: link.id).map { id, entry in
      (id: id, delivery: entry.delivery(written: written))
    }
    // All leave the link before the first is decided: what later ones may have done counts.
    for (id, delivery) in carried { table.takeBack(id, delivery) }
    let recording = carried.isEmpty ? nil : recording(of: link)
    retryOrEnd(carried, of: link, resends: resends, repeats: reason.isPassing) {
      id, request, delivery in
      LongLinkError.lost(
        reason, delivery: delivery, doing: operation(id, request), peer: link.peer,
        detail: link.ending.detail(of: reason), securityFailure: link.securityFailure,
        retryAfter: link.retryAfter, ofShortLink: link.connection.settings.isShort
      ).with(recording)
    }
    disarmIfUnused()
  }

  /// Fails the waiting requests: all of them, or those with `failUnlessConnecting`.
  package func failWaiting(all: Bool, _ make: (LongLinkError.Operation, [UInt8]) -> LongLinkError) {
    var ended: [(PendingRequest, LongLinkError)] = []
    for (id, _) in table.waitingRequests(where: {
      all || $0.payload.offline == .failUnlessConnecting
    }) {
      guard let entry = end(id) else { continue }
      ended.append(
        (
          entry.payload,
          make(operation(id, entry.payload), []).after(entry.past, entry.payload.refusal)
        ))
    }
    for (request, error) in ended { finish(request, .failure(error)) }
    disarmIfUnused()
  }

  /// Whether a request waits for the response with this serial.
  package func awaits(_ serial: UInt32, on link: Link) -> Bool {
    table.awaits(serial, on: link.id)
  }

  /// Handles news about a request on a link.
  package func heard(_ news: RequestNews, on link: Link) {
    switch news {
    // Nothing joins the fragments of a response that no request waits for.
    case .collect(let serial) where !awaits(serial, on: link):
      link.abandonResponse(serial)
    case .collect(let serial): channel(serial, on: link)?.responseBegan()
    case .began(let serial, let begin, let ordinal):
      table.began(serial, on: link.id, at: begin, ordinal: ordinal)
    case .finished(let serial):
      table.finished(serial, on: link.id)
      if table.waitingCount > 0 { pump() }
    case .stray(let kind, let serial):
      if awaits(serial, on: link) {
        link.rejectStray(kind, serial)
      }
    }
  }
}
