// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTransport

@Suite struct SystemRandomTests {
  /// The numbers of several blocks: none comes twice, and none is the zero that erases.
  @Test func `no number is given twice`() {
    var random = SystemRandom()
    var seen: Set<UInt64> = [0]
    for _ in 0..<1_000 { #expect(seen.insert(random.next()).inserted) }
  }
}
