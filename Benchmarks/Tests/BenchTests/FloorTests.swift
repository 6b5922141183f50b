// SPDX-License-Identifier: Apache-2.0

import CFloor
import Testing

@Suite struct FloorTests {
  @Test func `the floor's checksum is that of RFC 1950`() {
    // Around what is summed up at once, and what 32 bits can hold.
    let lengths = Array(0...200) + [1_024, 5_439, 5_440, 5_504, 5_552, 5_568, 11_008, 65_536]
    for length in lengths {
      for factor in [0, 1, 31] {
        let frame = (0..<16 + length).map { UInt8(truncatingIfNeeded: $0 &* factor &- 1) }
        #expect(
          floor_checksum(frame, length) == EchoServer.checksum(Array(frame[..<12] + frame[16...])),
          "\(length) bytes, \(factor)")
      }
    }
  }
}
