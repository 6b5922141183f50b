// SPDX-License-Identifier: Apache-2.0

/// What goes with a ticket, in seconds since 1970.
struct TicketFacts: Equatable {
  /// When the client's certificate, or a list for it, expires.
  var expiry: Int64
  /// When the full handshake was that all of its tickets go back to.
  var beginning: Int64

  /// How far the clocks of servers that share keys may be apart, in seconds.
  private static let clockDifference: Int64 = 300

  /// Whether a ticket is good: for so many seconds after the full handshake, unless something has
  /// expired. Then the client has to show its certificate, and is told so.
  ///
  /// OpenSSL judges the age of each ticket by a clock of its own, and knows nothing of those
  /// before.
  func isGood(at now: Int64, lifetime: Int64) -> Bool {
    beginning > now - lifetime && beginning <= now + TicketFacts.clockDifference && expiry > now
  }
}

extension TicketFacts {
  /// Reads the facts from the first 16 bytes; nil if there are fewer.
  init?(_ bytes: Span<UInt8>) {
    var rest = bytes.indices
    guard let expiry = bytes.takeNumber(8, from: &rest),
      let beginning = bytes.takeNumber(8, from: &rest)
    else { return nil }
    self.init(expiry: Int64(expiry), beginning: Int64(beginning))
  }

  /// Writes the facts to the first 16 bytes.
  func write(to bytes: inout MutableSpan<UInt8>) {
    for index in 0..<8 {
      bytes[index] = UInt8(truncatingIfNeeded: expiry >> (56 - 8 * index))
      bytes[index + 8] = UInt8(truncatingIfNeeded: beginning >> (56 - 8 * index))
    }
  }
}
