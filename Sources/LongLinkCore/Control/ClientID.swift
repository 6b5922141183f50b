// SPDX-License-Identifier: Apache-2.0

/// The 16 bytes by which a server recognises a client on all its connections.
///
/// They are a secret: a peer that knows them receives what the server sends to that client. So the
/// description leaves them out.
package struct ClientID: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The number of bytes.
  package static let size = 16

  private let high: UInt64
  private let low: UInt64

  /// Makes an identity from its halves, for example two random numbers.
  package init(_ high: UInt64, _ low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Makes an identity from 16 bytes; nil for any other number.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == ClientID.size else { return nil }
    func half(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(half(0..<8), half(8..<16))
  }

  /// The bytes as they are sent.
  package var bytes: [UInt8] {
    [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
  }

  package var description: String { "a client's secret" }

  /// Nothing, so that a dump of a configuration shows no secret.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
