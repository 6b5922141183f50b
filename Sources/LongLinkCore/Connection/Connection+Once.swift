// SPDX-License-Identifier: Apache-2.0

// Requests that run once. The connection agrees on the terms and refuses malformed requests; its
// owner decides about all others, by its table and its store.

extension Connection {
  /// Whether this is a server with a store, whose client has asked that its requests can run once.
  package var asksForOnce: Bool {
    settings.role == .server
      && agreement.features.subtracting(carriage.lacking).contains(.once)
  }

  /// Whether the peer has more requests here than it may. A request that runs once is delivered
  /// nevertheless: the owner answers it only if it knows the answer already, and else refuses it
  /// with 429.
  package var isOverloaded: Bool {
    inbound.isFull(at: settings.maxInFlight + 1) || requestBytes > settings.maxRequestBytes
  }

  /// Whether a request is to run once. Reads its metadata where such requests are agreed on.
  mutating func isOnce(_ request: Arrival) throws(Violation) -> Bool {
    guard agreement.once != nil, settings.role == .server, request.hasMetadata else { return false }
    try inbox.readMetadata(of: request)
    return inbox.metadata.last.keySpace != nil
  }

  /// Why a whole request is refused because of its metadata; nil if it is not. Opens the request's
  /// stream, if it asks for one.
  @inline(__always)
  mutating func refusal(of request: Arrival) throws(Violation) -> Refusal? {
    // Only clients ask for requests that run once.
    if request.hasMetadata, inbox.metadata.last.keySpace != nil, settings.role == .server,
      let refusal = agreement.refusal(byOnceOf: inbox.metadata.last)
    {
      return refusal
    }
    return try streamRefusal(of: request)
  }

  /// Notes what a refusal has told this client of its space, and the store's clock.
  package mutating func learn(_ terms: OnceTerms) {
    if agreement.once != nil { agreement.once = terms }
  }
}
