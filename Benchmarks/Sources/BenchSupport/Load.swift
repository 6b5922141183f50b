// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser

/// What a peer's client is to do.
package struct Load: ParsableArguments, Sendable {
  @Option(help: "Where the peer's server listens on the loopback address.")
  package var port: UInt16
  @Option(help: "Connections.")
  package var connections = 1
  @Option(help: "Requests in flight on each connection.")
  package var inFlight = 1
  @Option(help: "Bytes of each body.")
  package var body = 64
  @Option(help: "Seconds before anything is counted.")
  package var warmUp = 0.3
  @Option(help: "Seconds that are counted.")
  package var seconds = 1.5

  package init() {}

  /// One request in so many is timed: with many small ones in flight the clock would cost more than
  /// it tells.
  package var timedStride: UInt64 { inFlight == 1 || body >= 16_384 ? 1 : 8 }

  /// One answer in so many is compared to the last byte.
  package static let comparedStride: UInt64 = 8
}
