// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// What a client is told when it is asked to go.
struct DrainNotice: Sendable {
  let reason: String
  let spread: Duration
  let retryAfter: Duration
  let alternatives: [String]

  /// What the configuration says, where the caller does not.
  init(
    reason: String, _ configuration: ServerConfiguration, spread: Duration?, retryAfter: Duration?,
    alternatives: [Endpoint]?
  ) {
    self.reason = reason
    self.spread = spread ?? configuration.drainSpread
    self.retryAfter = retryAfter ?? configuration.drainRetryAfter
    let named = (alternatives ?? configuration.drainAlternatives).compactMap(\.alternativeText)
    self.alternatives = Array(named.prefix(Wire.alternativesLimit))
  }
}
