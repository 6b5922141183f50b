// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The content of the goaway with which the server drains a connection.
struct DrainNotice: Sendable {
  let code: ResponseCode
  /// What observers are told.
  let departure: LinkRecord.Departure
  let reason: String
  let spread: Duration
  let retryAfter: Duration
  let alternatives: [String]
  /// Whether the client can have its next connection while it has this one: then an idle connection
  /// stays open until the client leaves it, so that pushes reach the client meanwhile.
  let awaitsMove: Bool

  /// Makes a notice. Where an argument is nil, the configuration's value applies. `goesOn` says
  /// that the server still accepts connections.
  init(
    code: ResponseCode = .draining, reason: String, as departure: LinkRecord.Departure,
    _ configuration: ServerConfiguration, spread: Duration?, retryAfter: Duration?,
    alternatives: [Endpoint]?, goesOn: Bool = false
  ) {
    self.code = code
    self.reason = reason
    self.departure = departure
    self.spread = spread ?? configuration.drain.spread
    self.retryAfter = retryAfter ?? configuration.drain.retryAfter
    let named = (alternatives ?? configuration.drain.alternatives).compactMap(\.alternativeText)
    self.alternatives = Array(named.prefix(Wire.alternativesLimit))
    awaitsMove = code == .draining && (goesOn || !named.isEmpty)
  }
}
