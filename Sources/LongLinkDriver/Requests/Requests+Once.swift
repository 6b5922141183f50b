// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

// Requests that run once: the core decides what they state; here it is asked for each attempt.

/// What errors say of requests that run once.
private enum OnceText {
  static let notKept =
    "the server keeps no records of this client's requests: it needs a store (`once`), and the "
    + "client a principal, by `authenticate`, or an identity, `identity.client`"

  static func tooLong(_ count: Int) -> String {
    "the key has \(count) bytes, of which \(Wire.onceKeyLimit) are allowed"
  }
}

extension Requests {
  /// Notes a new request that runs once, before it is sent.
  func beginOnce(_ id: RequestID, _ options: borrowing RequestOptions) {
    if let ticket = options.ticket { return ticket.begin() }
    let key = options.idempotencyKey
    onces.begin(
      id.serial,
      key.isEmpty ? .fixed(loop.driver.nextRandom(), loop.driver.nextRandom()) : OnceKey(key))
  }

  /// Asks for a decision about a request that runs once. `body` also learns whether the request may
  /// have run.
  private func decide<Result>(
    _ id: RequestID, _ ticket: OnceTicket?, _ body: (inout OnceState, Bool) -> Result
  ) -> Result? {
    let mayHaveRun = table.past(of: id) == .sent
    if let ticket { return ticket.change(mayHaveRun: mayHaveRun, body) }
    return onces.change(id.serial) { body(&$0, mayHaveRun) }
  }

  /// What a request states that runs once. Throws if it must not be sent over this link.
  func statement(
    of id: RequestID, _ ticket: OnceTicket?, on link: Link, at now: LinkInstant
  ) throws(Unsendable) -> OnceStatement {
    guard link.connection.settings.role == .client else {
      throw Unsendable(.unsupported, "only a client's requests run once")
    }
    let agreed = link.connection.agreement.once
    let isShort = link.connection.settings.isShort
    if !isShort { onceTerms = agreed ?? onceTerms }
    let terms = isShort ? onceTerms : agreed
    let attempt = decide(id, ticket) { state, mayHaveRun in
      state.attempt(under: terms, isShort: isShort, mayHaveRun: mayHaveRun, at: now)
    }
    switch attempt {
    case .states(let statement):
      guard statement.key.count <= Wire.onceKeyLimit else {
        throw Unsendable(.tooLarge, OnceText.tooLong(statement.key.count))
      }
      return statement
    case .notKept, nil:
      throw Unsendable(.unsupported, OnceText.notKept)
    }
  }

  /// Sends a request again whose space or time the server has refused, unless it may have run.
  func retryElsewhere(refusedBy arrival: Arrival, on link: Link) -> Bool {
    guard let (id, entry) = table.carried(arrival.serial, by: link.id), entry.payload.runsOnce,
      let space = link.metadata(of: arrival)?.keySpace, space != .none,
      let time = link.metadata(of: arrival)?.keyTime, time > 0
    else { return false }
    let now = loop.now
    let terms = OnceTerms(space: space, retention: 1, time: time, readAt: now)
    link.learn(terms)
    onceTerms = terms
    guard entry.payload.mayRetry, mayWait(entry.payload), table.keepsOrder(id, entry),
      entry.payload.deadline > now,
      decide(id, entry.payload.ticket, { $0.takesOver(mayHaveRun: $1) }) == true
    else { return false }
    retry(id, entry.payload, refusedBy: arrival, on: link, at: now)
    return true
  }

  /// Notes a response that ends a request that runs once.
  func heardOnce(_ arrival: Arrival, _ ticket: OnceTicket?, on link: Link) {
    onces.end(arrival.serial)
    if link.connection.settings.isShort { onceTerms = link.connection.agreement.once ?? onceTerms }
    if !arrival.isRefused {
      ticket?.answered(isReplayed: link.metadata(of: arrival)?.replayed == true)
    }
    if arrival.isSuccess { ticket?.end(.answered) }
  }

  /// What a response that is no success says of a request.
  func delivery(of arrival: Arrival, to request: PendingRequest, on link: Link) -> Delivery {
    guard !arrival.isRefused else { return .refused }
    let metadata = link.metadata(of: arrival)
    // The peer may have responded in its handler's place, and the handler may still run.
    if metadata?.interrupted == true { return .sent }
    // Without the mark of an earlier answer, the one that waited gave up: the handler may run on.
    let hasGivenUp =
      request.runsOnce && arrival.code == .deadlinePassed && metadata?.replayed != true
    return hasGivenUp ? .sent : .answered
  }

  /// What a response means for a request that runs once, for people; nil if it needs no words.
  func advice(
    on arrival: Arrival, to request: PendingRequest, past: Delivery, on link: Link
  ) -> String? {
    guard request.runsOnce else { return nil }
    switch (arrival.code, arrival.isRefused) {
    case (.gone, false) where link.metadata(of: arrival)?.interrupted == true:
      return "the request has run, or may have, and its response is not kept: find out what it has "
        + "done before you make it again under another key"
    case (.preconditionFailed, true):
      return past == .sent
        ? "the answers of this client are kept elsewhere now, or this request's time is over: it "
          + "would run again"
        : "the request is of another store, retention or user, or its time is not near the server's"
    case (.conflict, true):
      return "the key was used for other bytes, and that request may have run: a retry with the "
        + "key is refused again"
    default: return nil
    }
  }

  /// Ends the use of a ticket, if there is one. Returns the error with what other uses may have
  /// done.
  func ended(_ error: LongLinkError, _ ticket: OnceTicket?) -> LongLinkError {
    guard let ticket else { return error }
    let whole = error.covering(ticket)
    ticket.end(whole.delivery)
    return whole
  }

  /// Makes a ticket of a request that is yet to be sent, with a random key unless one is given.
  package func ticket(_ key: [UInt8]) throws(LongLinkError) -> OnceTicket {
    let link = current
    guard let terms = link == nil ? onceTerms : link?.connection.agreement.once else {
      throw LongLinkError(
        .unsupported, doing: "ticket",
        detail: link == nil
          ? "where the server keeps answers is not known yet: a request that runs once finds it out"
          : OnceText.notKept, peer: link?.peer)
    }
    guard key.count <= Wire.onceKeyLimit else {
      throw LongLinkError(.tooLarge, doing: "ticket", detail: OnceText.tooLong(key.count))
    }
    return OnceTicket(
      OnceStatement(
        key: OnceKey(key.isEmpty ? loop.randomKey() : key), space: terms.space,
        time: terms.time(at: loop.driver.now)))
  }
}

extension LongLinkError {
  /// Returns the error with a delivery that also covers earlier requests with the ticket, if there
  /// is one.
  package func covering(_ ticket: OnceTicket?) -> LongLinkError {
    ticket?.mayHaveRun == true ? after(.sent) : self
  }
}
