// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The content of the goaway with which the server drains a connection.
struct DrainNotice: Sendable {
  let code: ResponseCode
  let reason: String
  let spread: Duration
  let retryAfter: Duration
  let alternatives: [String]

  /// Makes a notice. Where an argument is nil, the configuration's value applies.
  init(
    code: ResponseCode = .draining, reason: String, _ configuration: ServerConfiguration,
    spread: Duration?, retryAfter: Duration?,
    alternatives: [Endpoint]?
  ) {
    self.code = code
    self.reason = reason
    self.spread = spread ?? configuration.drain.spread
    self.retryAfter = retryAfter ?? configuration.drain.retryAfter
    let named = (alternatives ?? configuration.drain.alternatives).compactMap(\.alternativeText)
    self.alternatives = Array(named.prefix(Wire.alternativesLimit))
  }
}
