// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser

/// The options of a peer's client.
package struct Load: ParsableArguments, Sendable {
  @Option(help: "The server's port on the loopback address.")
  package var port: UInt16
  @Option(help: "Connections.")
  package var connections = 1
  @Option(help: "Requests in flight on each connection.")
  package var inFlight = 1
  @Option(help: "Bytes of each body.")
  package var body = 64
  @Option(help: "Seconds of warm-up, which are not counted.")
  package var warmUp = 0.3
  @Option(help: "Seconds to count.")
  package var seconds = 1.5

  package init() {}

  /// The interval between timed requests: with many small ones in flight, reading the clock each
  /// time would distort the figures.
  package var timedStride: UInt64 { inFlight == 1 || body >= 16_384 ? 1 : 8 }

  /// The interval between responses that are compared to the last byte.
  package static let comparedStride: UInt64 = 8
}
