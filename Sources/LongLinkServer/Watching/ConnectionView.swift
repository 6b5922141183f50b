// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver
package import LongLinkTransport

/// An open connection, as people who watch the server see it.
package struct ConnectionView: Sendable {
  package let id: UInt64
  package let address: SocketAddress?
  /// The client's own name, as it has sent it.
  package let name: String
  package let principal: String?
  /// Whether one of the sides has said that it leaves the connection.
  package internal(set) var isDraining: Bool
  /// The time since the connection was accepted, in nanoseconds.
  package let age: Int64
  /// The round-trip time in nanoseconds, as the system estimates it; nil if not known.
  package let roundTrip: Int64?
  /// The number of the client's requests that have not ended.
  package let inFlight: Int
  /// The streams with the lowest serials.
  package let streams: [StreamView]
  package let bytesReceived: UInt64
  package let bytesSent: UInt64
  package let features: Features
  /// The version of TLS as OpenSSL names it; nil without security.
  package let security: String?

  /// The most streams that are named in `streams`.
  package static let mostStreams = 16

  init(_ connection: ServerConnection) {
    let link = connection.link
    id = connection.id
    address = link.peer
    name = link.connection.agreement.name
    principal = connection.peer.principalRecord?.name
    isDraining = connection.isLeaving
    age = link.loop.now - connection.admission.accepted
    roundTrip = link.roundTrip
    inFlight = link.connection.inbound.count
    streams = link.streams(most: Self.mostStreams)
    bytesReceived = link.counters.bytesReceived
    bytesSent = link.counters.bytesSent
    features = link.connection.agreement.features
    // The record has what a transport would make anew for each call.
    security = link.record?.security?.version
  }
}

extension ServerConnection {
  /// Whether one of the sides has said that it leaves, or the connection is being closed.
  var isLeaving: Bool { !link.isLive || link.connection.goodbyes.isDraining }
}
