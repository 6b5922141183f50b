// SPDX-License-Identifier: Apache-2.0

// Requests that run once. The connection agrees on the terms and refuses malformed requests; its
// owner decides about all others, by its table and its store.

extension Connection {
  /// Whether this is a server with a store, whose client has asked that its requests can run once.
  package var asksForOnce: Bool {
    settings.role == .server
      && agreement.features.subtracting(carriage.lacking).contains(.once)
  }

  /// Notes that this client's requests cannot run once here.
  mutating func withholdOnce() {
    guard asksForOnce, !carriage.lacksOnce() else { return }
    agreement.features.remove(.once)
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
    if let refusal = onceRefusal(of: request) { return refusal }
    return try streamRefusal(of: request)
  }

  /// Why a request that is to run once is refused: no store, or malformed; nil for all others.
  private func onceRefusal(of request: Arrival) -> Refusal? {
    guard request.hasMetadata, inbox.metadata.last.keySpace != nil else { return nil }
    return onceRefusal(for: inbox.metadata.last)
  }

  private func onceRefusal(for metadata: ReceivedMetadata) -> Refusal? {
    // Only clients ask for it.
    guard settings.role == .server else { return nil }
    guard agreement.once != nil else { return .unkept }
    let isValid =
      (1...Wire.onceKeyLimit).contains(metadata.idempotencyKey.count) && metadata.keyTime > 0
      && metadata.credit == nil && !metadata.items
    return isValid ? nil : .malformedOnce
  }

  /// Notes what a refusal has told this client of its space, and the store's clock.
  package mutating func learn(_ terms: OnceTerms) {
    if agreement.once != nil { agreement.once = terms }
  }

  /// Throws if a response has the refused mark although it is about an earlier request.
  func validateReplay(_ response: Arrival) throws(Violation) {
    guard response.hasMetadata, inbox.metadata.last.replayed, response.isRefused,
      response.kind == .response, agreement.once != nil
    else { return }
    throw Violation(
      .tagNotAllowed, kind: FrameKind.response.rawValue, serial: response.serial,
      value: UInt64(response.tag))
  }
}
