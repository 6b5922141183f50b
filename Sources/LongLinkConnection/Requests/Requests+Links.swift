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
    var requeued: [RequestID] = []
    var ended: [(RequestID, PendingRequest, Delivery)] = []
    let last = link.session.ordinal(ofAccepted: accepted)
    for (id, entry) in dispatch.carried(by: link.id)
    where entry.placement.begin == nil || entry.placement.ordinal > last {
      _ = link.session.cancel(id.serial, entry.placement, notifying: false)
      guard let request = pending[id.serial] else { continue }
      if code == .draining, request.offline == .wait {
        requeued.append(id)
      } else if dispatch.end(id) != nil {
        ended.append((id, request, entry.placement.begin == nil ? .notSent : .refused))
      }
    }
    dispatch.requeue(requeued)
    counters.resent += UInt64(requeued.count)
    for (id, request, delivery) in ended {
      finish(
        id,
        .failure(
          LongLinkError(
            code == .draining ? .rejected : .protocolViolation, delivery: delivery,
            doing: operation(id, request), detail: "the peer went away: \(reason)",
            peer: link.peer, response: code)))
    }
  }

  /// Tells that a link carries nothing any more: what it carried ends, or waits for the next one.
  package func lost(_ link: Link, _ reason: CloseReason, resends: Bool) {
    if current === link { current = nil }
    links.removeAll { $0 === link }
    // A session that closes in good order still writes what it has encoded.
    let written = link.session.isClosed ? link.session.outbox.written : .max
    var requeued: [RequestID] = []
    var ended: [(RequestID, PendingRequest, Delivery)] = []
    for (id, entry) in dispatch.carried(by: link.id) {
      guard let request = pending[id.serial] else { continue }
      let delivery = entry.delivery(written: written)
      if delivery == .notSent, resends, request.offline == .wait {
        requeued.append(id)
      } else if dispatch.end(id) != nil {
        ended.append((id, request, delivery))
      }
    }
    dispatch.requeue(requeued)
    counters.resent += UInt64(requeued.count)
    for (id, request, delivery) in ended {
      finish(
        id,
        .failure(
          .lost(reason, delivery: delivery, doing: operation(id, request), peer: link.peer)))
    }
    disarmIfUnused()
  }

  /// Ends the requests that wait for a link; those that chose to fail offline, or all.
  package func failWaiting(all: Bool, _ make: (String, [UInt8]) -> LongLinkError) {
    for (id, _) in dispatch.waitingRequests {
      guard let request = pending[id.serial], all || request.offline == .fail else { continue }
      guard dispatch.end(id) != nil else { continue }
      finish(id, .failure(make(operation(id, request), [])))
    }
    disarmIfUnused()
  }

  /// Ends everything that is still carried, without waiting for its link.
  package func failCarried(_ reason: CloseReason) {
    for link in links { lost(link, reason, resends: false) }
  }

  /// Stops a link from collecting the fragments of a response that nobody waits for.
  package func collect(_ serial: UInt32, on link: Link) {
    if !dispatch.awaits(serial, on: link.id) { link.session.abandonResponse(serial) }
  }

  /// Tells that a request which its link had kept back has begun to leave.
  package func began(_ serial: UInt32, on link: Link, at begin: UInt64, ordinal: UInt64) {
    dispatch.began(serial, on: link.id, at: begin, ordinal: ordinal)
  }
}
