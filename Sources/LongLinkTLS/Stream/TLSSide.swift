// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// The client or server that a transport belongs to.
protocol TLSTransportOwner: AnyObject, Sendable {
  /// Called when the handshake is complete.
  func transportOpened(_ transport: TLSTransport)
  /// Called on a client when the server has given a ticket, as a session to resume later.
  func transport(_ transport: TLSTransport, received session: [UInt8])
  /// Whether a closed transport may stay for a while, so that its peer can read its last bytes.
  /// Each call that returns true is followed by one of `lingeringEnded`.
  func mayLinger() -> Bool
  func lingeringEnded()
  /// Whether peers that show a certificate are verified.
  var verifiesPeers: Bool { get }
}

/// The facts of a transport that depend on its side: the name to verify, and tickets.
struct TLSSide: Sendable {
  let isServer: Bool
  /// The name or address that a client verifies; nil for none.
  var name: String?
  /// The key under which a client stores the tickets of this server.
  var ticketKey = ""
  /// The client's `generation` of the context that the connection was made with.
  var generation = 0
  /// When the session that a client tries to resume expires with its certificate or revocation
  /// list, in seconds since 1970.
  var ticketExpiry = Int64.max
  /// The number of tickets that a server issues after a full handshake.
  var tickets: CInt = 0
}
