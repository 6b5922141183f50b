// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTLS

/// What a server writes into its tickets, and reads in those that come back.
@Suite struct TicketFactsTests {
  @Test func `facts have 16 bytes, which servers that share keys agree on`() {
    let facts = TicketFacts(expiry: 0x0102_0304_0506_0708, beginning: -2)
    var bytes = [UInt8](repeating: 9, count: 18)
    var span = bytes.mutableSpan
    facts.write(to: &span)
    #expect(bytes == Array(1...8) + [UInt8](repeating: 0xFF, count: 7) + [0xFE, 9, 9])
    for count in 0...18 {
      let start = Array(bytes.prefix(count))
      let read = TicketFacts(start.span)
      #expect(read == (count < 16 ? nil : facts), "\(count)")
    }
  }

  @Test func `a ticket is good as long as its session and its certificate`() {
    let cases: [(expiry: Int64, beginning: Int64, isGood: Bool)] = [
      (1_001, 1_000, true), (.max, 1_000, true),
      // The session lasts for 100 s.
      (.max, 901, true), (.max, 900, false), (.max, 0, false), (.max, .min, false),
      // Another server's clock may be ahead by 300 s.
      (.max, 1_300, true), (.max, 1_301, false), (.max, .max, false),
      // The certificate.
      (1_000, 1_000, false), (999, 1_000, false), (.min, 1_000, false), (0, 0, false),
    ]
    for (expiry, beginning, isGood) in cases {
      let facts = TicketFacts(expiry: expiry, beginning: beginning)
      #expect(facts.isGood(at: 1_000, lifetime: 100) == isGood, "\(facts)")
    }
  }
}
