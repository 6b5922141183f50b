// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// What a client or a server wants of one of its transports.
protocol TLSTransportOwner: AnyObject, Sendable {
  /// The handshake is over.
  func transportOpened(_ transport: TLSTransport)
  /// A client's server has given a ticket for later connections.
  func transport(_ transport: TLSTransport, received session: [UInt8])
  /// Whether a closed transport may stay for a while, so that its peer can read its last bytes.
  /// Each call that returns true is followed by one of `lingeringEnded`.
  func mayLinger() -> Bool
  func lingeringEnded()
  /// Whether peers that show a certificate are verified.
  var verifiesPeers: Bool { get }
}

/// The side of a transport, and the name that it verifies.
struct TLSSide: Sendable {
  let isServer: Bool
  /// The name or address that a client verifies; nil for none.
  var name: String?
  /// Where a client keeps the tickets of this server.
  var ticketKey = ""
  /// The number of the client's context that the connection was made with.
  var generation = 0
  /// When the certificate of the session that a client tries to resume expires, or its list.
  var ticketExpiry = Int64.max
  /// The number of tickets that a server gives after a full handshake.
  var tickets: CInt = 0
}
