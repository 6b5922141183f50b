// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The CRC-32 of IEEE 802.3 (reflected, polynomial 0x04C11DB7), which is 0xCBF43926 for
/// "123456789".
package enum CRC32 {
  /// Eight tables of 256 numbers. Table k contains the effect of a byte on the sum k bytes later,
  /// so that eight bytes can be processed at once (slicing by 8: Kounavis and Berry, 2005).
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var sum = UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
      tables[byte] = sum
    }
    for index in 256..<8 * 256 {
      let before = tables[index - 256]
      tables[index] = before >> 8 ^ tables[Int(before & 0xFF)]
    }
    return tables
  }()

  /// The checksum of `bytes`, or, with the checksum of the preceding bytes as `continuing`, the
  /// checksum of both together.
  package static func checksum(of bytes: RawSpan, continuing: UInt32 = 0) -> UInt32 {
    // The buffer is used only within the closure.
    unsafe bytes.withUnsafeBytes { unsafe checksum(of: $0, continuing: continuing) }
  }

  /// Returns the checksum of memory whose validity the caller guarantees.
  package static func checksum(of bytes: UnsafeRawBufferPointer, continuing: UInt32 = 0) -> UInt32 {
    unsafe tables.withUnsafeBufferPointer { tables in
      unsafe ~sum(of: bytes, from: ~continuing, tables.baseAddress!)
    }
  }

  private static func sum(
    of bytes: UnsafeRawBufferPointer, from start: UInt32, _ tables: UnsafePointer<UInt32>
  ) -> UInt32 {
    var sum = start
    var index = 0
    // Every index into the tables is a byte plus a multiple of 256 below 8 * 256.
    while index + 8 <= bytes.count {
      let word = UInt64(
        littleEndian: unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let low = UInt32(truncatingIfNeeded: word) ^ sum
      let high = UInt32(truncatingIfNeeded: word >> 32)
      sum =
        unsafe tables[1792 + Int(low & 0xFF)] ^ tables[1536 + Int(low >> 8 & 0xFF)]
        ^ tables[1280 + Int(low >> 16 & 0xFF)] ^ tables[1024 + Int(low >> 24)]
      sum ^=
        unsafe tables[768 + Int(high & 0xFF)] ^ tables[512 + Int(high >> 8 & 0xFF)]
        ^ tables[256 + Int(high >> 16 & 0xFF)] ^ tables[Int(high >> 24)]
      index += 8
    }
    while index < bytes.count {
      sum = unsafe sum >> 8 ^ tables[Int((sum ^ UInt32(bytes[index])) & 0xFF)]
      index += 1
    }
    return sum
  }
}
