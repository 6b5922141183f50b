// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import Testing

@Suite struct CRC32Tests {
  /// The definition, bit by bit.
  private func reference(_ bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
    }
    return ~sum
  }

  private func checksum(_ bytes: ArraySlice<UInt8>, continuing: UInt32 = 0) -> UInt32 {
    unsafe bytes.withUnsafeBytes { unsafe CRC32.checksum(of: $0, continuing: continuing) }
  }

  @Test func `the check value is that of the standard`() {
    let bytes = Array("123456789".utf8)
    #expect(checksum(bytes[...]) == 0xCBF4_3926)
    #expect(checksum([]) == 0)
  }

  @Test func `every length is summed like the definition`() {
    var dice = Seeded(1)
    for length in 0..<200 {
      let bytes = dice.bytes(length)
      #expect(checksum(bytes[...]) == reference(bytes))
    }
  }

  @Test func `a split anywhere changes nothing`() {
    var dice = Seeded(2)
    let bytes = dice.bytes(300)
    let whole = reference(bytes)
    for cut in 0...300 {
      #expect(checksum(bytes[cut...], continuing: checksum(bytes[..<cut])) == whole)
    }
  }
}
