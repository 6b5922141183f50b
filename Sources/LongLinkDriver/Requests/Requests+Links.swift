// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Requests {
  /// Tells that a link is open: new requests go to it from now on.
  package func opened(_ link: Link) {
    links.append(link)
    current = link
    owed = OwedAnswers()
    pump()
  }

  /// Tells that a link takes nothing new from this side; what it carries goes on.
  package func retire(_ link: Link) {
    if current === link { current = nil }
  }

  /// Tells that the peer takes nothing new on a link, and which requests it did not accept.
  ///
  /// Those did not run. They wait for the next link when the peer drains; a peer that complains of
  /// them would only complain again.
  package func leaving(_ link: Link, accepted: UInt64, code: ResponseCode, reason: String) {
    if current === link { current = nil }
    let last = link.ordinal(ofAccepted: accepted)
    let unaccepted = table.carried(by: link.id).filter { _, entry in
      entry.position.begin == nil || entry.position.ordinal > last
    }
    // What is kept back goes first, or it would begin in the room of the others.
    var taken: [(id: RequestID, delivery: Delivery)] = []
    for isKeptBack in [true, false] {
      for (id, entry) in unaccepted where (entry.position.begin == nil) == isKeptBack {
        // Some may be written while others are taken back.
        let written = link.bytesWritten
        let isUnsent = link.cancel(id.serial, entry.position, notifying: false)
        let hasLeft = isKeptBack ? !isUnsent : entry.delivery(written: written) == .sent
        taken.append((id, hasLeft ? .refused : .notSent))
        table.takeBack(id, hasLeft ? .refused : .notSent)
      }
    }
    taken.sort { $0.id < $1.id }
    let isDraining = code == .draining
    retryOrEnd(taken, resends: isDraining, repeats: false) { id, request, delivery in
      LongLinkError(
        isDraining ? .rejected : .protocolViolation, delivery: delivery,
        doing: operation(id, request), detail: "the peer went away: \(PeerText(reason))",
        peer: link.peer, response: code)
    }
  }

  /// Tells that a link carries nothing any more: what it carried ends, or waits for the next one.
  package func lost(_ link: Link, _ reason: CloseReason, resends: Bool) {
    if current === link { current = nil }
    links.removeAll { $0 === link }
    if links.isEmpty { table.endRests() }
    // A connection that closes in good order still writes what it has encoded.
    let written = link.isClosed ? link.bytesWritten : .max
    let carried = table.carried(by: link.id).map { id, entry in
      (id: id, delivery: entry.delivery(written: written))
    }
    // All are off the link before the first one is judged: what later ones may have done counts.
    for (id, delivery) in carried { table.takeBack(id, delivery) }
    retryOrEnd(carried, resends: resends, repeats: reason.isPassing) { id, request, delivery in
      .lost(reason, delivery: delivery, doing: operation(id, request), peer: link.peer)
    }
    disarmIfUnused()
  }

  /// Ends the requests that wait; those that chose to fail without a link, or all.
  package func failWaiting(all: Bool, _ make: (LongLinkError.Operation, [UInt8]) -> LongLinkError) {
    var ended: [(PendingRequest, LongLinkError)] = []
    for (id, _) in table.waitingRequests(where: {
      all || $0.payload.offline == .failUnlessConnecting
    }) {
      guard let entry = table.end(id) else { continue }
      ended.append((entry.payload, make(operation(id, entry.payload), []).after(entry.past)))
    }
    for (request, error) in ended { finish(request, .failure(error)) }
    disarmIfUnused()
  }

  /// Whether somebody waits for the response with this serial.
  package func awaits(_ serial: UInt32, on link: Link) -> Bool {
    table.awaits(serial, on: link.id)
  }

  /// Stops a link from collecting the fragments of a response that nobody waits for.
  package func collect(_ serial: UInt32, on link: Link) {
    if !table.awaits(serial, on: link.id) { link.abandonResponse(serial) }
  }

  /// Tells that a request which its link had kept back has been encoded to its end.
  package func finishedSending(_ serial: UInt32, on link: Link) {
    table.finished(serial, on: link.id)
    if table.waitingCount > 0 { pump() }
  }

  /// Tells that a request which its link had kept back has begun to leave.
  package func began(_ serial: UInt32, on link: Link, at begin: UInt64, ordinal: UInt64) {
    table.began(serial, on: link.id, at: begin, ordinal: ordinal)
  }
}
