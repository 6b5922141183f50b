// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
import LongLinkTransport

// The limits of what clients may do, in the form in which the server uses them.

extension ServerConfiguration {
  /// The largest burst of a token bucket.
  private static let mostPerSecond = 1_000_000
  /// How many seconds' worth may come at once: of connections and short links, and of cancels.
  private static let connectionBurst = 4
  private static let cancelBurst = 10

  /// The rates at which one address may open connections, and short links.
  var addressRates: (connections: TokenBucket.Rate, shortLinks: TokenBucket.Rate) {
    (
      rate(addresses.maxConnectionRate, burst: ServerConfiguration.connectionBurst),
      rate(addresses.maxShortLinkRate, burst: ServerConfiguration.connectionBurst)
    )
  }

  /// The rate at which a client may cancel requests; nil for no limit.
  var cancelRate: TokenBucket.Rate? {
    limits.maxCancelsPerSecond.map { rate($0, burst: ServerConfiguration.cancelBurst) }
  }

  /// The number of bytes and frames per second that are read from a client.
  var readLimits: ReadLimits {
    ReadLimits(
      bytesPerSecond: limits.maxBytesPerSecond, framesPerSecond: limits.maxFramesPerSecond)
  }

  private func rate(_ number: Int, burst seconds: Int) -> TokenBucket.Rate {
    TokenBucket.Rate(
      perSecond: number, burst: min(seconds * number, ServerConfiguration.mostPerSecond))
  }

  /// Throws if one of these limits is out of range.
  func validateLimits() throws(LongLinkError) {
    try atLeast(1, addresses.maxConnections, "addresses.maxConnections")
    try validateRate(addresses.maxConnectionRate, "addresses.maxConnectionRate")
    try validateRate(addresses.maxShortLinkRate, "addresses.maxShortLinkRate")
    try atLeast(1, limits.maxHandshakes, "limits.maxHandshakes")
    if let rate = limits.maxCancelsPerSecond {
      try validateRate(rate, "limits.maxCancelsPerSecond")
    }
    // With less, the client's system might see no progress for so long that it gives up.
    if let rate = limits.maxBytesPerSecond {
      try atLeast(16_384, rate, "limits.maxBytesPerSecond")
    }
    if let rate = limits.maxFramesPerSecond { try atLeast(100, rate, "limits.maxFramesPerSecond") }
  }

  private func validateRate(_ value: Int, _ field: String) throws(LongLinkError) {
    try atLeast(1, value, field)
    if value > ServerConfiguration.mostPerSecond {
      throw .configuration(field, "\(value) is above 1,000,000 per second")
    }
  }
}
