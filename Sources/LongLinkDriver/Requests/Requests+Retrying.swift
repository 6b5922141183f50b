// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Requests {
  /// Retries a request that the peer refused, if its policy allows and time is left; returns
  /// whether it does. If only a limit of this side prevents it, `objection` names the limit.
  func retry(refusedBy arrival: Arrival, on link: Link, _ objection: inout String?) -> Bool {
    if arrival.code == .preconditionFailed { return retryElsewhere(refusedBy: arrival, on: link) }
    guard arrival.code == .overloaded || arrival.code == .draining,
      let (id, entry) = table.carried(arrival.serial, by: link.id),
      entry.payload.mayRetry, table.keepsOrder(id, entry),
      let time = retryTime(of: entry, refusedBy: arrival, on: link)
    else { return false }
    guard entry.returns < limits.retry.maxRetries else {
      objection = tooManyRetries
      return false
    }
    retry(id, entry.payload, refusedBy: arrival, on: link, at: time)
    return true
  }

  /// Takes a request that the peer has refused off its link, to be sent again at this time.
  func retry(
    _ id: RequestID, _ request: PendingRequest, refusedBy arrival: Arrival, on link: Link,
    at time: LinkInstant
  ) {
    request.channel?.detached()
    table.takeBack(id, .refused)
    let reason = PeerText(utf8: link.connection.framing.isNative ? link.takeBody(of: arrival) : [])
    table.change(id) { $0.wasRefused(with: arrival.code, reason) }
    // With a new serial, because a late response to the old one does not belong to this attempt.
    let next = table.renew(id, deadline: request.deadline)
    if request.runsOnce { onces.renumber(id.serial, to: next.serial) }
    counters.retriedRefused += 1
    if time > loop.now {
      table.wait(next, terms(of: request), until: time, at: loop.now)
      arm()
    } else {
      table.wait(next, terms(of: request))
    }
    wentOff(link)
  }

  /// The time of the retry; nil if it would be too late, or there is no link.
  private func retryTime(
    of entry: RequestTable<PendingRequest>.Entry, refusedBy arrival: Arrival, on link: Link
  ) -> LinkInstant? {
    guard mayWait(entry.payload) else { return nil }
    // The next link leads to another server, or to one that has restarted.
    if arrival.code == .draining, link !== current, !link.connection.settings.isShort {
      return loop.now
    }
    return retryTime(
      of: entry, retry: Int(entry.returns) + 1,
      askedFor: Int64(link.metadata(of: arrival)?.retryAfter ?? 0) * 1_000_000)
  }

  /// The time of a retry with this number, as early as the peer asks, in nanoseconds from now; nil
  /// if it would be too late.
  private func retryTime(
    of entry: RequestTable<PendingRequest>.Entry, retry number: Int, askedFor hint: Int64
  ) -> LinkInstant? {
    let delay = limits.retry.delay(
      time: number, askedFor: min(hint, limits.longestHint.clampedNanoseconds),
      bits: loop.driver.nextRandom())
    let time = loop.now + delay
    return entry.payload.deadline <= time ? nil : time
  }

  /// Whether a request may wait for a link, or need not: there is a link, or there are short links.
  func mayWait(_ request: PendingRequest) -> Bool {
    request.offline == .wait || current != nil || hasShortLinks
  }

  /// The terms of a request that was sent before, so its body has an encoding.
  func terms(of request: PendingRequest) -> WaitTerms {
    (try? request.terms)
      ?? WaitTerms(priority: 0, deadline: request.deadline, bytes: 0)
  }

  /// Retries those of a link's requests that want it and may be retried; the others end with the
  /// error that `make` returns.
  ///
  /// `repeats` allows retries of requests that may have run. They are delayed where the next short
  /// link can follow at once: nothing else holds them back.
  func retryOrEnd(
    _ requests: [(id: RequestID, delivery: Delivery)], of link: Link, resends: Bool, repeats: Bool,
    _ make: (RequestID, PendingRequest, Delivery) -> LongLinkError
  ) {
    var ended: [(PendingRequest, LongLinkError)] = []
    for (id, delivery) in requests {
      guard let entry = table.entry(id) else { continue }
      let request = entry.payload
      var objection: String?
      let time =
        delivery == .sent && link.connection.settings.isShort
        ? retryTime(of: entry, retry: Int(entry.returns), askedFor: link.retryAfter ?? 0)
        : loop.now
      if resends, mayWait(request), table.keepsOrder(id, entry),
        mayRetry(entry, delivery, repeats: repeats, at: time, &objection)
      {
        request.channel?.detached()
        if let time, time > loop.now {
          table.wait(id, terms(of: request), until: time, at: loop.now)
          arm()
        } else {
          table.wait(id, terms(of: request))
        }
      } else if end(id) != nil {
        let error = make(id, request, delivery).noting(objection)
        ended.append((request, error.after(entry.past, request.refusal)))
      }
    }
    for (request, error) in ended { finish(request, .failure(error)) }
    if table.waitingCount > 0 { pump() }
  }

  private var tooManyRetries: String {
    "not retried: retry.maxRetries (\(limits.retry.maxRetries)) is reached"
  }

  /// Whether a request is retried after this delivery of its last attempt; if so, the retry is
  /// counted. If only a limit of this side prevents it, `objection` names the limit. `time` is when
  /// a request that may have run would be sent again; nil if that is too late.
  private func mayRetry(
    _ entry: RequestTable<PendingRequest>.Entry, _ delivery: Delivery, repeats: Bool,
    at time: LinkInstant?, _ objection: inout String?
  ) -> Bool {
    guard entry.payload.mayRetry else { return false }
    switch delivery {
    case .notSent:
      counters.retriedNotSent += 1
      return true
    case .refused:
      guard entry.returns <= limits.retry.maxRetries else {
        objection = tooManyRetries
        return false
      }
      counters.retriedRefused += 1
      return true
    case .sent:
      guard repeats, entry.payload.retry.repeats else { return false }
      guard entry.returns <= limits.retry.maxRetries else {
        objection = tooManyRetries
        return false
      }
      guard time != nil else {
        objection = "not retried: the deadline is before the time of the retry"
        return false
      }
      guard retryTokens.lost() else {
        counters.beyondBudget += 1
        objection = "not retried: the retry budget is spent (retry.budget)"
        return false
      }
      counters.retriedIdempotent += 1
      return true
    case .answered:
      return false
    }
  }
}

extension ResponseCode {
  /// Whether the code, in a goaway on an open connection, lets a client come back: the server is
  /// draining, the client's credential has expired, or the client has newer connections.
  package var isPassing: Bool {
    self == .draining || self == .unauthenticated || self == .conflict
  }

  /// Whether the code says that the peer does not accept who this side is.
  package var deniesAccess: Bool { self == .unauthenticated || self == .forbidden }
}

extension CloseReason {
  /// Whether a request that was lost for this reason may succeed on another connection: neither the
  /// request nor this side was at fault.
  var isPassing: Bool {
    switch self {
    case .closedByPeer, .noResponse, .heartbeatLost, .stalledPeer, .unreadOutput, .memoryLimit,
      .transport, .securityFailed, .closedHere, .left:
      true
    case .goneAway(let code): code.isPassing
    case .violation(let violation):
      violation.rule == .checksumMismatch || violation.rule == .truncatedFrame
    case .handshakeTimeout, .cancelLimit, .handshakeEvicted, .notAccepted: false
    }
  }
}
