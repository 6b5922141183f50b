// SPDX-License-Identifier: Apache-2.0

/// What both sides of a connection have said about its end, and how many requests came before.
package struct Goodbyes: Equatable, Sendable {
  private let role: Role
  /// Whether this side takes no new requests. It has sent a goaway if the connection has any.
  package private(set) var isSaid = false
  /// The goaway of the peer: why it takes no new requests; nil while it does.
  package private(set) var ofPeer: GoAway?
  /// The number of the peer's requests whose first frame arrived before this side's goaway.
  package private(set) var requestsAccepted: UInt64 = 0
  /// Whether this side has ended its bytes: it writes nothing more.
  private(set) var hasShutDown = false

  init(_ role: Role) {
    self.role = role
  }

  /// Whether no new requests are taken in one direction or both.
  package var isDraining: Bool { isSaid || ofPeer != nil }

  /// Counts a request of the peer. Returns false if this side takes none any more.
  @inline(__always)
  mutating func acceptRequest() -> Bool {
    guard !isSaid else { return false }
    requestsAccepted += 1
    return true
  }

  /// A goaway of this side.
  func notice(
    _ code: ResponseCode, _ reason: String, spread: UInt32 = 0, retryAfter: UInt32 = 0,
    alternatives: [String] = []
  ) -> GoAway {
    GoAway(
      code: code.rawValue, reason: reason, requestsAccepted: requestsAccepted, spread: spread,
      retryAfter: retryAfter, alternatives: alternatives)
  }

  /// Takes no new requests from now on. Returns false if that is so already.
  mutating func say() -> Bool {
    defer { isSaid = true }
    return !isSaid
  }

  /// Keeps the peer's goaway in a shortened form, and returns that.
  mutating func hear(_ goaway: GoAway) -> GoAway {
    // It is kept until the connection ends, so it must be small; a server needs no alternatives.
    var goaway = goaway
    if role == .server { goaway.alternatives = [] }
    goaway.reason = goaway.reason.cutToName
    ofPeer = goaway
    return goaway
  }

  /// Ends this side's bytes. Returns false if they have ended.
  mutating func shutDown() -> Bool {
    defer { hasShutDown = true }
    return !hasShutDown
  }

  /// Why the connection ends if the peer ends its bytes; nil if the peer has sent no goaway.
  var reasonOfPeer: CloseReason? { ofPeer.map { .goneAway(ResponseCode(wire: $0.code)) } }
}
