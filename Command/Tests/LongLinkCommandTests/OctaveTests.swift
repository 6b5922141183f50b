// SPDX-License-Identifier: Apache-2.0

import Histogram
import Testing

@testable import LongLinkCommand

/// How `longlink bench` groups times.
struct OctaveTests {
  @Test func `each time falls into the power of two that it belongs to`() {
    var histogram = Histogram<UInt64>(numberOfSignificantValueDigits: .three)
    for time in [0, 1, 3, 2_047, 2_048, 4_096, 1 << 40] as [UInt64] { histogram.record(time) }
    #expect(histogram.octaves.map(\.from) == [0, 1, 2, 1_024, 2_048, 4_096, 1 << 40])
    #expect(histogram.octaves.map(\.to) == [1, 2, 4, 2_048, 4_096, 8_192, 1 << 41])
    #expect(histogram.octaves.allSatisfy { $0.count == 1 })
  }

  @Test func `without any time there is nothing to group`() {
    #expect(Histogram<UInt64>(numberOfSignificantValueDigits: .three).octaves.isEmpty)
  }
}
