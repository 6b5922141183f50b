// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Requests {
  /// Lets a request that the peer refused be sent again, where that is wanted and may help.
  func retry(refusedBy arrival: Arrival, on link: Link) -> Bool {
    guard arrival.code == .overloaded || arrival.code == .draining,
      let (id, entry) = table.carried(arrival.serial, by: link.id),
      entry.payload.retry != .never,
      entry.returns < limits.retry.maxRetries, table.keepsOrder(id, entry),
      let time = retryTime(of: entry, refusedBy: arrival, on: link)
    else { return false }
    let request = entry.payload
    table.takeBack(id, .refused)
    // Whatever the peer still says to the old serial is not the answer to this sending.
    let next = table.renew(id, deadline: request.deadline)
    counters.retriedRefused += 1
    if time > loop.now {
      table.wait(next, terms(of: request), until: time, at: loop.now)
      arm()
    } else {
      table.wait(next, terms(of: request))
    }
    wentOff(link)
    return true
  }

  /// When a refused request may be sent again; nil when that would be too late, or nowhere.
  private func retryTime(
    of entry: RequestTable<PendingRequest>.Entry, refusedBy arrival: Arrival, on link: Link
  ) -> LinkInstant? {
    guard mayWait(entry.payload) else { return nil }
    // The next link leads elsewhere, or to a server that has started anew.
    if arrival.code == .draining, link !== current { return loop.now }
    let asked = min(
      Int64(link.metadata?.retryAfter ?? 0) * 1_000_000, limits.longestHint.clampedNanoseconds)
    let delay = limits.retry.delay(
      time: Int(entry.returns) + 1, askedFor: asked, bits: loop.driver.nextRandom())
    let time = loop.now + delay
    if entry.payload.deadline <= time { return nil }
    return time
  }

  /// Whether a request may wait, or need not, since there is a link for it.
  private func mayWait(_ request: PendingRequest) -> Bool {
    request.offline == .wait || current != nil
  }

  /// The terms of a request that was sent before, so that its body has an encoding.
  private func terms(of request: PendingRequest) -> WaitTerms {
    (try? request.terms)
      ?? WaitTerms(priority: 0, deadline: request.deadline, bytes: 0)
  }

  /// Lets requests that were taken off a link be sent again, as far as each wants that and may; the
  /// others end with the error that is made for them.
  ///
  /// `repeats` tells whether those come into question that may have run.
  func retryOrEnd(
    _ requests: [(id: RequestID, delivery: Delivery)], resends: Bool, repeats: Bool,
    _ make: (RequestID, PendingRequest, Delivery) -> LongLinkError
  ) {
    var ended: [(PendingRequest, LongLinkError)] = []
    for (id, delivery) in requests {
      guard let entry = table.entry(id) else { continue }
      let request = entry.payload
      if resends, mayWait(request), table.keepsOrder(id, entry),
        mayRetry(entry, delivery, repeats: repeats)
      {
        table.wait(id, terms(of: request))
      } else if table.end(id) != nil {
        ended.append((request, make(id, request, delivery).after(entry.past)))
      }
    }
    for (request, error) in ended { finish(request, .failure(error)) }
    if table.waitingCount > 0 { pump() }
  }

  /// Whether a request is sent again after this came of its last sending; if so, it is counted.
  private func mayRetry(
    _ entry: RequestTable<PendingRequest>.Entry, _ delivery: Delivery, repeats: Bool
  ) -> Bool {
    guard entry.payload.retry != .never else { return false }
    switch delivery {
    case .notSent:
      counters.retriedNotSent += 1
      return true
    case .refused:
      guard entry.returns <= limits.retry.maxRetries else { return false }
      counters.retriedRefused += 1
      return true
    case .sent:
      guard repeats, entry.payload.retry.repeats,
        entry.returns <= limits.retry.maxRetries
      else { return false }
      guard retryTokens.lost() else {
        counters.beyondBudget += 1
        return false
      }
      counters.retriedIdempotent += 1
      return true
    case .answered:
      return false
    }
  }
}

extension CloseReason {
  /// Whether what was lost for this reason may fare better on another connection: the requests
  /// themselves are not what the peer complained of, nor this side.
  var isPassing: Bool {
    switch self {
    case .closedByPeer, .heartbeatLost, .stalledPeer, .unreadOutput, .memoryLimit, .transport,
      .closedHere, .left:
      true
    case .goneAway(let code): code == .draining
    case .violation(let violation):
      violation.rule == .checksumMismatch || violation.rule == .truncatedFrame
    case .handshakeTimeout: false
    }
  }
}
