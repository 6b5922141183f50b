// SPDX-License-Identifier: Apache-2.0

/// What a server stores in a ticket about the session.
struct TicketFacts: Equatable {
  /// When the client's certificate, or a revocation list for it, expires, in seconds since 1970.
  var expiry: Int64
  /// The time of the full handshake that the session began with, in seconds since 1970.
  var beginning: Int64

  /// The largest accepted difference between the clocks of servers that share keys, in seconds.
  private static let clockDifference: Int64 = 300

  /// Whether a ticket can be used: less than `lifetime` seconds after the full handshake, and
  /// before the expiry. Otherwise the client has to show its certificate again.
  ///
  /// OpenSSL alone would judge each ticket by its own age, not by that of the full handshake.
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
