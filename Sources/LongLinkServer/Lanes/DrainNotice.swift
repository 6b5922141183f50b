// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The content of the goaway that drains a client.
struct DrainNotice: Sendable {
  let code: ResponseCode
  let reason: String
  let spread: Duration
  let retryAfter: Duration
  let alternatives: [String]

  /// Makes a notice; the configuration's values apply where an argument is nil.
  init(
    code: ResponseCode = .draining, reason: String, _ configuration: ServerConfiguration,
    spread: Duration?, retryAfter: Duration?,
    alternatives: [Endpoint]?
  ) {
    self.code = code
    self.reason = reason
    self.spread = spread ?? configuration.drainSpread
    self.retryAfter = retryAfter ?? configuration.drainRetryAfter
    let named = (alternatives ?? configuration.drainAlternatives).compactMap(\.alternativeText)
    self.alternatives = Array(named.prefix(Wire.alternativesLimit))
  }
}
